"""Unusable lines of a data folder: reported, counted and, if requested, moved to a file.

A line that is left out costs the change in it: its object stays as the line before made it, or does not exist. The
first lines of a file are reported with that object, if it can be read.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from pumice.apiserver.store import Store
from pumice.kube.api.errors import clean
from pumice.runtime.files.private import open_private

ASIDE: Final = "damaged.jsonl"
_REPORTED_MAX: Final = 20  # lines that are reported one by one
_NAMED = re.compile(rb'\{"v":\d+,"t":"([^"\\]{1,300})","k":"([^"\\]{1,600})"')
_log = logging.getLogger("pumice.apiserver")


class _Line(Struct, frozen=True):
    place: str
    why: str
    named: tuple[str, str] | None  # table and key, if readable


class LeftOut:
    """Unusable lines that were found while a folder is read. With ``aside``, the bytes of each line go to that file
    first."""

    def __init__(self, aside: Path | None = None) -> None:
        self.count = 0
        self._aside = aside
        self._reported: list[_Line] = []

    def add(self, path: Path, number: int, raw: bytes, why: str, named: tuple[str, str] | None = None) -> None:
        """Add a line. Raises: OSError if it cannot be put aside; then nothing is lost."""
        self.count += 1
        if self._aside is not None:
            with open(self._aside, "ab", opener=open_private) as file:
                file.write(raw if raw.endswith(b"\n") else raw + b"\n")
        if len(self._reported) < _REPORTED_MAX:
            self._reported.append(_Line(f"{path} line {number}", why, named or _named(raw)))

    def report(self, folder: Path, version_of: Callable[[str, str], int | None]) -> None:
        """Report the lines after everything is read. ``version_of`` (table, key): returns the present version."""
        if not self.count:
            return
        for line in self._reported:
            _log.error("%s is ignored: %s", line.place, clean(_sentence(line, version_of)))
        if self._aside is not None:
            _log.error("%s: %d lines were moved to %s", folder, self.count, self._aside.name)
        else:
            how = "start once with --salvage to move them to another file"
            _log.error("%s: %d lines were ignored, and will be at each start; %s", folder, self.count, how)


def version_in(store: Store) -> Callable[[str, str], int | None]:
    """Return a function that returns the version of what a store has under (table, key), None if nothing."""

    def version_of(table: str, key: str) -> int | None:
        row = store.find(table, key)
        return None if row is None else row.version

    return version_of


def _named(raw: bytes) -> tuple[str, str] | None:
    found = _NAMED.match(raw)
    return None if found is None else (found[1].decode(errors="replace"), found[2].decode(errors="replace"))


def _sentence(line: _Line, version_of: Callable[[str, str], int | None]) -> str:
    if line.named is None:
        return line.why
    version = version_of(*line.named)
    cost = "it does not exist now" if version is None else f"it is as at version {version}"
    return f"{' '.join(line.named)}: {line.why}; {cost}"
