"""Read conf files: from text to policy, with the place of every problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct
from msgspec.structs import replace

from pumice.framework.plugin.errors import PolicyError, did_you_mean
from pumice.framework.plugin.on_demand import OnDemand
from pumice.framework.plugin.policy_file import Policy, read_policy
from pumice.framework.plugin.registry import Registry
from pumice.runtime.files.documents import yaml_documents
from pumice.runtime.policy.conf_quotes import hint_on_quotes
from pumice.runtime.problems.problem import Problem, not_utf8, unforeseen

SIZE_MAX = 1 << 20
#: The key of the conf in Volcano's ConfigMap.
CONF_KEY = "volcano-scheduler.conf"
#: The name of KAI's conf in a folder. KAI's own files name no dialect.
KAI_CONF = "kai.conf"
_KAI_DIALECT = "dialect: kai"
HIDDEN = "(not shown)"
_SECRET = ("password", "token", "secret")
#: Sections that are not the core's: functions that yield their problems, used if a conf has them.
_SECTIONS: OnDemand[Callable[[Mapping[str, Any]], Iterator[str]]] = OnDemand(
    {
        "metrics": "pumice.runtime.usage.settings:source_problems",
        "usageDBConfig": "pumice.runtime.usage.history_settings:history_problems",
    },
    lambda name, problems: problems,
)
#: Kinds of documents that represent a policy file: functions that return it, and what a policy file cannot express.
_KINDS: OnDemand[Callable[[Mapping[str, Any], str], tuple[Any, tuple[str, ...]]]] = OnDemand(
    {"SchedulingShard": "pumice.runtime.policy.shards:conf_of_shard"}, lambda name, read: read
)


class LoadedPolicy(Struct, frozen=True):
    """The policy of a conf, its ``text``, and the ``document`` in it that is the policy file. ``left_out``: actions
    that a lenient reading ignored. ``added_dialect``: the file names no dialect, and the text has one."""

    policy: Policy
    text: str
    left_out: tuple[str, ...] = ()
    added_dialect: bool = False
    document: Mapping[str, Any] = {}


def policy_of(
    text: str, registry: Registry, *, where: str = "conf", strict: bool = True, unset_switches: bool = True
) -> Policy:
    """Return the policy of a conf text. Raises: PolicyError with all problems."""
    return loaded_from_text(text, registry, where=where, strict=strict, unset_switches=unset_switches).policy


def load_policy(path: Path, registry: Registry, *, strict: bool = True) -> Policy:
    """Return the policy of a conf file. Raises: PolicyError, also if the file cannot be read."""
    return loaded_from_file(path, registry, strict=strict).policy


def loaded_from_file(path: Path, registry: Registry, *, strict: bool = True) -> LoadedPolicy:
    """Return the policy of a conf file, and what was left out. Raises: PolicyError, also if the file cannot be read."""
    try:
        raw = conf_bytes(path)
    except OSError as error:
        raise PolicyError([f"{path}: cannot be read: {error.strerror or error}"]) from None
    return loaded_from_bytes(raw, registry, where=str(path), strict=strict, is_kai=path.name == KAI_CONF)


def conf_bytes(path: Path) -> bytes:
    """Return the bytes of a conf file, one more than are allowed if there are more. Raises: OSError."""
    with path.open("rb") as file:
        return file.read(SIZE_MAX + 1)


def loaded_from_bytes(
    raw: bytes, registry: Registry, *, where: str, strict: bool = True, is_kai: bool = False
) -> LoadedPolicy:
    """Return the policy in the bytes of a file. ``is_kai``: without a dialect it is KAI's. Raises: PolicyError."""
    return loaded_from_text(conf_text(raw, where), registry, where=where, strict=strict, is_kai=is_kai)


def conf_text(raw: bytes, where: str) -> str:
    """Return the text in the bytes of a conf file. Raises: PolicyError if they are not UTF-8."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PolicyError([f"{where}: {not_utf8(error)}"]) from None


def loaded_from_text(
    text: str,
    registry: Registry,
    *,
    where: str = "conf",
    strict: bool = True,
    unset_switches: bool = True,
    is_kai: bool = False,
) -> LoadedPolicy:
    """Return the policy of a conf text, of a ConfigMap that contains one, or of a SchedulingShard of KAI.

    ``is_kai``: a text without a dialect is KAI's.

    A lenient reading ignores unknown actions and says so in the policy's warnings; at least one must be known. Raises:
    PolicyError with all problems.
    """
    if len(text) > SIZE_MAX:
        raise PolicyError([f"{where}: found {len(text)} characters, wanted at most {SIZE_MAX}"])
    try:
        whole = with_kai_dialect(text, where) if is_kai else text
        found = _loaded(whole, registry, where, strict, unset_switches)
        return found if whole == text else replace(found, added_dialect=True)
    except PolicyError:
        raise
    except Exception as error:
        raise PolicyError([f"{where}: {unforeseen(error)}"]) from error


def _loaded(text: str, registry: Registry, where: str, strict: bool, unset_switches: bool) -> LoadedPolicy:
    document = document_of(text, where)
    inner = _conf_in(document, where)
    if inner is not None:
        where, text = inner
        document = document_of(text, where)
    kind = document.get("kind") if isinstance(document, Mapping) else None
    document, no_policy = _KINDS[kind](document, where) if isinstance(kind, str) and kind in _KINDS else (document, ())
    left_out = {} if strict else _unknown_actions(document, registry)
    try:
        policy = read_policy(_without(document, left_out), registry, strict=strict, unset_switches=unset_switches)
    except PolicyError as error:
        problems = (problem + hint_on_quotes(document, problem) for problem in error.problems)
        raise PolicyError(f"{where}{problem.removeprefix('conf')}" for problem in problems) from None
    unusable = tuple(_in_sections(policy))
    if unusable and strict:
        raise PolicyError(f"{where}: {problem}" for problem in unusable)
    warnings = (*(f"actions: {why} (ignored)" for why in left_out.values()), *unusable, *no_policy)
    policy = replace(policy, warnings=warnings + policy.warnings) if warnings else policy
    return LoadedPolicy(policy, text, tuple(left_out), document=document)


def _in_sections(policy: Policy) -> Iterator[str]:
    for name in _SECTIONS:
        section = policy.metrics if name == "metrics" else policy.section(name)
        yield from (f"{name}: {problem}" for problem in (_SECTIONS[name](section) if section else ()))


def document_of(text: str, where: str) -> Any:
    """Return the one document of a conf text, None if it has none. Raises: PolicyError."""
    found = list(yaml_documents(where, text))
    if len(found) > 1:
        raise PolicyError([f"{where}: found {len(found)} documents, wanted one"])
    for document in found:
        if isinstance(document, Problem):
            raise PolicyError([f"{where}: {document.what}"])
        return document.obj
    return None


def with_kai_dialect(text: str, where: str) -> str:
    """Return a conf text with KAI's dialect, if it names none. Raises: PolicyError."""
    document = document_of(text, where)
    # A ConfigMap contains the conf, and a SchedulingShard is KAI's in any case.
    if not isinstance(document, Mapping) or document.keys() & {"dialect", "kind"}:
        return text
    whole = f"{text.rstrip()}\n{_KAI_DIALECT}\n"
    # A text in which a line more means something else is left as it is: a mapping in braces.
    try:
        return whole if document_of(whole, where) == {**document, "dialect": "kai"} else text
    except PolicyError:
        return text


def _conf_in(document: Any, where: str) -> tuple[str, str] | None:
    """Return (where, text) of the conf in a ConfigMap, None for other documents. Raises: PolicyError."""
    if not isinstance(document, Mapping) or document.get("kind") != "ConfigMap":
        return None
    data = document.get("data")
    texts = {str(k): held for k, held in data.items() if isinstance(held, str)} if isinstance(data, Mapping) else {}
    key = CONF_KEY if CONF_KEY in texts else next(iter(texts), "")
    if not texts or (key != CONF_KEY and len(texts) > 1):
        found = ", ".join(list(texts)[:10]) or "none"
        raise PolicyError([f"{where}: ConfigMap: found the keys {found}, wanted {CONF_KEY}, or one key alone"])
    return f"{where}: data[{key}]", texts[key]


# -- lenient


def _unknown_actions(document: Any, registry: Registry) -> dict[str, str]:
    """Return why each named action does not exist, by name; none if the conf is not valid that far, or if no action
    would be left."""
    names = _action_names(document)
    dialect = document.get("dialect", "volcano") if names else ""
    if not isinstance(dialect, str) or dialect not in registry.dialects:
        return {}
    found = {}
    for name in names:
        if registry.action(dialect, name) is None:
            hint = did_you_mean(name, registry.actions(dialect))
            found[name] = registry.why_missing(dialect, name) or f'unknown action "{name}"{hint}'
    return found if len(found) < len(set(names)) else {}


def _action_names(document: Any) -> list[str]:
    text = document.get("actions") if isinstance(document, Mapping) else None
    return [part.strip() for part in text.split(",")] if isinstance(text, str) else []


def _without(document: Any, names: Mapping[str, str]) -> Any:
    if not names:
        return document
    left = [name for name in _action_names(document) if name not in names]
    return {**document, "actions": ", ".join(left)}


# -- what may be shown


def without_secrets(value: Any) -> Any:
    """Return the values with those under keys that sound like a password hidden."""
    if isinstance(value, Mapping):
        return {key: HIDDEN if _is_secret(key, held) else without_secrets(held) for key, held in value.items()}
    return [without_secrets(each) for each in value] if isinstance(value, list) else value


def _is_secret(key: object, held: Any) -> bool:
    return isinstance(held, str | int | float) and any(word in str(key).lower() for word in _SECRET)


def shown_text(text: str) -> str:
    """Return the text of a valid conf as it may be logged and dumped: unchanged, or written again without passwords.

    Of a ConfigMap, only the conf in it is shown: if it is read as text, a password in it has no key.
    """
    document = document_of(text, "conf")
    inner = _conf_in(document, "conf")
    if inner is not None:
        return shown_text(inner[1])
    shown = without_secrets(document)
    return text if shown == document else yaml.safe_dump(shown, sort_keys=False)
