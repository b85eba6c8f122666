"""Policies in every form that a caller may write: a file, the text of one, a dialect's name, Python functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from pumice.framework.plugin.errors import PolicyError
from pumice.framework.plugin.plugin import PLUGIN_ATTRIBUTE
from pumice.framework.plugin.policy_file import Policy
from pumice.framework.plugin.registry import Registry
from pumice.library.errors import InputError
from pumice.runtime.policy.conf import (
    KAI_CONF,
    conf_bytes,
    conf_text,
    document_of,
    loaded_from_text,
    with_kai_dialect,
)
from pumice.runtime.policy.languages import builtin_registry
from pumice.runtime.policy.user_plugins import with_plugins_of

DEFAULT = "default"


PluginFunction = Callable[..., object]


class PolicySource(Struct, frozen=True):
    """A policy that was read. ``text``: its file. ``functions``: plugins that the caller wrote in Python.
    ``left_out``: actions that a lenient reading ignored."""

    name: str
    text: str
    policy: Policy
    functions: tuple[PluginFunction, ...] = ()
    left_out: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<policy {self.name}: {self.policy.dialect.name}>"


#: A policy in any form: ``default``, the path or the text of a policy file, functions and classes under ``@plugin``,
#: several of these, or one that was read.
PolicyLike = str | Path | PolicySource | PluginFunction | Sequence[str | Path | PluginFunction]


def policy(
    *parts: str | Path | PluginFunction, plugins_dir: str | Path | None = None, strict: bool = True, name: str = ""
) -> PolicySource:
    """Return a policy of a policy file and of plugins in Python.

    ``parts``: at most one policy file (its path, or its text, in which at least one line ends; Volcano's default policy
    without one), and functions or classes under ``@plugin``. A plugin that the file does not name is asked in a tier of
    its own, before all others. ``plugins_dir``: a folder with further plugins, which are executed. ``strict`` False
    ignores unknown parts of the file. Raises: PolicyError with all problems, InputError.
    """
    functions = tuple(part for part in parts if not isinstance(part, str | Path))
    files = [part for part in parts if isinstance(part, str | Path)]
    if len(files) > 1:
        raise InputError(f"policy: found {len(files)} policy files, wanted at most one")
    if odd := [part for part in functions if not hasattr(part, PLUGIN_ATTRIBUTE)]:
        raise InputError(f"policy: found {odd[0]!r:.80}, wanted a function or class under @plugin")
    text, where = _text_of(files[0] if files else DEFAULT)
    registry = builtin_registry()
    if plugins_dir is not None:
        registry = with_plugins_of(Path(plugins_dir), registry)
    if functions:
        text, registry = _with_functions(text, where, functions, registry)
    read = loaded_from_text(text, registry, where=where, strict=strict)
    named = " + ".join([where, *(getattr(each, PLUGIN_ATTRIBUTE).name for each in functions)])
    return PolicySource(name or named, read.text, read.policy, functions, read.left_out)


def policy_of(given: PolicyLike | None, found: Sequence[Path] = ()) -> PolicySource:
    """Return the policy that a caller means. ``found``: policy files in the input, used if None is given.

    Raises: PolicyError, InputError.
    """
    match given:
        case PolicySource():
            return given
        case None if len(found) > 1:
            raise InputError(f"several policy files: {', '.join(map(str, found))}; give one as policy=")
        case None:
            return policy(*found)
        case str() | Path():
            return policy(given)
        case Sequence():
            return policy(*given)
        case _ if callable(given):
            return policy(given)
        case _:
            raise InputError(f"policy: found {given!r:.80}, wanted a policy file, its text, or functions under @plugin")


def _text_of(given: str | Path) -> tuple[str, str]:
    """Return (text, how messages call it). Raises: InputError, PolicyError."""
    if isinstance(given, str) and "\n" in given:
        return given, "policy"
    if given == DEFAULT and not Path(given).exists():
        from pumice.volcano.table import DEFAULT_CONF

        return DEFAULT_CONF, DEFAULT
    path = Path(given)
    if path.is_dir():
        raise InputError(f"{path}: found a folder, wanted a policy file, or the word {DEFAULT}")
    return _raw(path), str(path)


def _raw(path: Path) -> str:
    try:
        text = conf_text(conf_bytes(path), str(path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    return with_kai_dialect(text, str(path)) if path.name == KAI_CONF else text


def _with_functions(
    text: str, where: str, functions: Sequence[PluginFunction], registry: Registry
) -> tuple[str, Registry]:
    """Return the text with a first tier of the functions that it does not name, and the registry with all of them."""
    document = document_of(text, where)
    if not isinstance(document, Mapping) or "kind" in document:
        raise PolicyError([f"{where}: plugins in Python need a plain policy file, not an object that contains one"])
    dialect = document.get("dialect", "volcano")
    if dialect not in registry.dialects:
        loaded_from_text(text, registry, where=where)  # raises, and says which there are
    specs = [getattr(each, PLUGIN_ATTRIBUTE) for each in functions]
    if taken := [spec.name for spec in specs if registry.plugin(dialect, spec.name) is not None]:
        raise PolicyError([f"{where}: plugin {taken[0]}: a built-in or installed plugin has this name"])
    tiers = document.get("tiers") or list(registry.dialects[dialect].default_tiers)
    named = set(_names(tiers))
    own = [{"name": spec.name} for spec in specs if spec.name not in named]
    if own:
        document = {**document, "tiers": [{"plugins": own}, *tiers]}
    return yaml.safe_dump(document, sort_keys=False), registry.with_plugins(dialect, functions)


def _names(tiers: Any) -> list[str]:
    tiers = tiers if isinstance(tiers, list) else []
    plugins = [each.get("plugins") for each in tiers if isinstance(each, Mapping)]
    return [
        str(plugin["name"])
        for listed in plugins
        if isinstance(listed, list)
        for plugin in listed
        if isinstance(plugin, Mapping) and "name" in plugin
    ]
