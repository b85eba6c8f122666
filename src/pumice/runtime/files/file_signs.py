"""What a file is by its first bytes, asked of every input: the library that reads such a file is not needed for it."""

from __future__ import annotations

from pathlib import Path

ARCHIVE = b"PK\x03\x04"


def is_archive(path: Path) -> bool:
    """Whether this is a file, and a ZIP archive."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(ARCHIVE)) == ARCHIVE
