"""Recognise files by their first bytes. Every input is checked, so the library that reads such files is not
imported."""

from __future__ import annotations

from pathlib import Path

ARCHIVE = b"PK\x03\x04"


def is_archive(path: Path) -> bool:
    """Return True for a file that is a ZIP archive."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(ARCHIVE)) == ARCHIVE
