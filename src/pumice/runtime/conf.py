"""Reading a conf file: text to policy, with the place of every problem."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from pumice.framework.errors import PolicyError
from pumice.framework.policy import Policy, read_policy
from pumice.framework.registry import Registry
from pumice.runtime.documents import yaml_documents
from pumice.runtime.problems import Problem, unforeseen

SIZE_MAX = 1 << 20
HIDDEN = "(not shown)"
_SECRET = ("password", "token", "secret")


def policy_of(
    text: str, registry: Registry, *, where: str = "conf", strict: bool = True, unset_switches: bool = True
) -> Policy:
    """The policy a conf text stands for. Raises: PolicyError naming every problem."""
    if len(text) > SIZE_MAX:
        raise PolicyError([f"{where}: found {len(text)} characters, wanted at most {SIZE_MAX}"])
    document = _document_of(text, where)
    try:
        return read_policy(document, registry, strict=strict, unset_switches=unset_switches)
    except PolicyError as error:
        raise PolicyError(f"{where}{problem.removeprefix('conf')}" for problem in error.problems) from None
    except Exception as error:
        raise PolicyError([f"{where}: {unforeseen(error)}"]) from error


def _document_of(text: str, where: str) -> Any:
    """The one document of a conf text; None for a text without any. Raises: PolicyError."""
    found = list(yaml_documents(where, text))
    if len(found) > 1:
        raise PolicyError([f"{where}: found {len(found)} documents, wanted one"])
    for document in found:
        if isinstance(document, Problem):
            raise PolicyError([f"{where}: {document.what}"])
        return document.obj
    return None


def load_policy(path: Path, registry: Registry, *, strict: bool = True) -> Policy:
    """The policy of a conf file. Raises: PolicyError, also when the file cannot be read."""
    try:
        with path.open("rb") as file:
            text = file.read(SIZE_MAX + 1).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError([f"{path}: cannot be read: {error}"]) from None
    return policy_of(text, registry, where=str(path), strict=strict)


# -- what may be shown


def without_secrets(value: Any) -> Any:
    """The same values, with those under a key that sounds like a password hidden."""
    if isinstance(value, Mapping):
        return {key: HIDDEN if _is_secret(key, held) else without_secrets(held) for key, held in value.items()}
    return [without_secrets(each) for each in value] if isinstance(value, list) else value


def _is_secret(key: object, held: Any) -> bool:
    return isinstance(held, str | int | float) and any(word in str(key).lower() for word in _SECRET)


def shown_text(text: str) -> str:
    """A conf text that loads, as it may be logged and dumped: itself, or where it holds passwords, written anew."""
    document = _document_of(text, "conf")
    shown = without_secrets(document)
    return text if shown == document else yaml.safe_dump(shown, sort_keys=False)
