"""The folder of a sweep: a file for each universe that is finished, and the table of all.

A file gets its name when it is written whole, so that a process that is killed loses what it was at, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from pumice.runtime.files.replacing import replacing
from pumice.sweeps.universe import UniverseResult

_ROWS, _TABLE = "universes", "table.arrow"


class SweepFolder:
    """Rows of universes below a folder. Raises: OSError."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._rows = folder / _ROWS
        self._rows.mkdir(parents=True, exist_ok=True)

    @property
    def table_path(self) -> Path:
        return self.folder / _TABLE

    def put(self, digest: str, row: bytes) -> None:
        """Keep the row of a universe."""
        _write(self._rows / f"{digest}.json", row)

    def put_table(self, content: bytes) -> None:
        _write(self.table_path, content)

    def row(self, digest: str) -> UniverseResult | None:
        """Return the row of a universe, None if there is no whole one."""
        content = self.content(digest)
        if content is None:
            return None
        try:
            row = msgspec.json.decode(content, type=UniverseResult)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        return row if row.complete and row.universe == digest else None

    def content(self, digest: str) -> bytes | None:
        """Return the bytes of a row, whole or not."""
        try:
            return (self._rows / f"{digest}.json").read_bytes()
        except FileNotFoundError:
            return None

    def take(self, other: SweepFolder, digests: Iterable[str]) -> int:
        """Copy rows that are missing here from another store, and return their number."""
        taken = 0
        for digest in digests:
            if self.row(digest) is None and other.row(digest) is not None:
                content = other.content(digest)
                assert content is not None, digest
                self.put(digest, content)
                taken += 1
        return taken


def _write(path: Path, content: bytes) -> None:
    with replacing(path, "wb", private=False) as file:
        file.write(content)
