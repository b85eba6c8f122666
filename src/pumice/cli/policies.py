"""Choose the policy of a command: that of ``--conf``, of a folder in the input, or the default one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from pumice.cli.errors import STDIN_NAME, InputError
from pumice.cli.output import say
from pumice.cli.params import STDIN, require_there, stdin_bytes

if TYPE_CHECKING:
    from pumice.framework.plugin.policy_file import Policy
    from pumice.framework.plugin.registry import Registry
    from pumice.kube.scheduler.reload import ConfFile
    from pumice.runtime.policy.conf import LoadedPolicy

CONF_HELP = (
    "Policy file in the format of volcano-scheduler.conf (- is standard input). Default: the one in an input folder, "
    "else Volcano's default."
)
LENIENT_HELP = (
    "Unknown parts of the policy file, actions too, are errors; or each is ignored with a warning. Volcano ignores "
    "them silently."
)


def plugins_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--plugins-dir``, which is passed on as ``plugins_dir``, "" for none."""
    return click.option(
        "--plugins-dir",
        default="",
        metavar="DIR",
        help="Folder with your plugins: *.py files with functions or classes under @plugin. They are executed.",
    )(command)


def registry_of(plugins_dir: str) -> Registry:
    """Return all built-in plugins, and those of a folder if one is given. Raises: PolicyError."""
    from pumice.runtime.policy.languages import builtin_registry
    from pumice.runtime.policy.user_plugins import with_plugins_of

    registry = builtin_registry()
    return with_plugins_of(Path(plugins_dir), registry) if plugins_dir else registry


class PolicyChoice(NamedTuple):
    """``where``: the file it comes from, or ``default``. ``text``: what is in it. ``left_out``: actions that it names
    and that are not run."""

    policy: Policy
    where: str
    text: str
    left_out: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Return ``where``, and which actions are left out."""
        return f"{self.where}, without {', '.join(self.left_out)}" if self.left_out else self.where


def choose_policy(
    conf: Path | None,
    found: Sequence[Path],
    *,
    strict: bool,
    plugins_dir: str = "",
    tell: bool = True,
    is_kai: bool = False,
) -> PolicyChoice:
    """Return the policy. Say where it comes from if the command line does not, and what was left out of it.

    ``tell`` False: say nothing. ``is_kai``: the objects are KAI's, so KAI's default is used without a policy file.
    Raises: PolicyError, InputError.
    """
    from pumice.kai.table import DEFAULT_CONF as KAI_DEFAULT_CONF
    from pumice.runtime.policy.conf import loaded_from_file, loaded_from_text
    from pumice.volcano.table import DEFAULT_CONF

    registry = registry_of(plugins_dir)
    if conf is None and len(found) > 1:
        raise InputError(f"several policy files: {', '.join(map(str, found))}; name one with --conf")
    if conf is None and found:
        conf = found[0]
        if tell:
            say(f"note: policy: {conf}")
    if conf is None and is_kai:
        if tell:
            say("note: policy: KAI's default, because queues and PodGroups are KAI's; choose another with --conf")
        return _chosen(loaded_from_text(KAI_DEFAULT_CONF, registry, where="default"), "KAI's default", tell=tell)
    if conf is None:
        return _chosen(loaded_from_text(DEFAULT_CONF, registry, where="default"), "default", tell=tell)
    if str(conf) == STDIN:
        read = loaded_from_text(stdin_policy(), registry, where=STDIN_NAME, strict=strict)
        return _chosen(read, STDIN_NAME, tell=tell)
    require_there((str(conf),))
    read = loaded_from_file(conf, registry, strict=strict)
    if read.added_dialect and tell:
        say(f"note: {conf} names no dialect and is read with dialect: kai, because of its name")
    return _chosen(read, str(conf), tell=tell)


def stdin_policy() -> str:
    """Return the text of the policy file that standard input has. Raises: PolicyError if it is not UTF-8,
    InputError."""
    from pumice.runtime.policy.conf import SIZE_MAX, conf_text

    return conf_text(stdin_bytes(SIZE_MAX + 1), STDIN_NAME)


def watched_policy(conf: Path | None, plugins_dir: str, *, strict: bool = True) -> ConfFile:
    """Return the policy of a scheduler that runs, by default Volcano's. Standard input is read once: it never changes.
    Raises: PolicyError, InputError."""
    from pumice.kube.scheduler.reload import ConfFile
    from pumice.volcano.table import DEFAULT_CONF

    registry = registry_of(plugins_dir)
    if str(conf) == STDIN:
        return ConfFile(None, registry, stdin_policy(), strict=strict, default_name=STDIN_NAME)
    return ConfFile(conf, registry, DEFAULT_CONF, strict=strict)


def saved_policy(text: str, where: str, *, strict: bool, plugins_dir: str = "", tell: bool = True) -> PolicyChoice:
    """Return the policy of a text that was read before, such as that of a snapshot. Raises: PolicyError."""
    from pumice.runtime.policy.conf import loaded_from_text

    return _chosen(loaded_from_text(text, registry_of(plugins_dir), where=where, strict=strict), where, tell=tell)


def _chosen(read: LoadedPolicy, where: str, *, tell: bool = True) -> PolicyChoice:
    for warning in read.policy.warnings if tell else ():
        say(f"warning: {warning}")
    if tell and read.left_out:
        say(f"warning: THIS IS NOT THE POLICY OF {where}: it runs without {', '.join(read.left_out)}")
    return PolicyChoice(read.policy, where, read.text, read.left_out)
