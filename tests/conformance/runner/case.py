"""A case file as it is, with the few things that every kind of case has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct

from pumice.runtime.files.documents import Document, documents, yaml_documents
from pumice.runtime.problems.problem import Problem
from tests.conformance.runner.result import Unusable

Raw = Mapping[str, Any]

#: The moment of a cycle for cases that name none: after everything they hold was created, and in no hour that a case
#: means. 2026-01-01T12:00:00Z.
SOME_TIME = 1_767_268_800.0
_GENERATED = "generated"


class Case(Struct, frozen=True, dict=True):
    """``raw`` is the file's content; ``conf`` is the policy it names, read as a document."""

    file: str
    raw: Raw
    conf: Raw

    @property
    def name(self) -> str:
        return str(self.raw.get("name", ""))

    @property
    def kind(self) -> str:
        return str(self.raw.get("kind", ""))

    @property
    def generated(self) -> bool:
        """Observed on a whole scheduler: conf loaded by Volcano's loader, looked at after the session closed."""
        return bool(self.raw.get("source") == _GENERATED)

    @property
    def options(self) -> Raw:
        return self.raw.get("options") or {}

    @property
    def objects(self) -> list[Raw]:
        return list(self.raw.get("objects") or [])

    @cached_property
    def now(self) -> float:
        """Seconds since the epoch."""
        text = self.raw.get("now")
        return SOME_TIME if text is None else datetime.fromisoformat(str(text)).timestamp()


def read_yaml(path: Path) -> Any:
    """The document in a file. Raises: Unusable with the reason."""
    return _only("file", documents(path))


def _only(name: str, found: Iterable[Document | Problem]) -> Any:
    """The one document, None where there is none. Raises: Unusable, with the name of what holds it."""
    contents = []
    for each in found:
        if isinstance(each, Problem):
            raise Unusable(f"{name} {each.what}")
        contents.append(each.obj)
    if len(contents) > 1:
        raise Unusable(f"{name}: found {len(contents)} documents, wanted one")
    return contents[0] if contents else None


def case_of(file: str, document: Any) -> Case:
    """The case in a document. Raises: Unusable when it is none."""
    if not isinstance(document, Mapping) or not isinstance(document.get("kind"), str):
        raise Unusable("not a conformance case: wanted a mapping with kind, conf and objects")
    conf = document.get("conf")
    if isinstance(conf, str):
        conf = _only("conf", yaml_documents("conf", conf))
    if not isinstance(conf, Mapping):
        raise Unusable("conf: wanted a mapping with actions and tiers")
    return Case(file, document, conf)
