"""Files with secrets: only their owner reads them, and no other user can choose where they are written."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pumice.runtime.files.replacing import replacing

_SECRET_BYTES_MAX = 64 << 10


class NotPrivate(Exception):
    """Others may read or write a file or folder. The text says what to do."""


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, as a whole or not at all. Raises: OSError."""
    with replacing(path, "w", private=True) as file:
        file.write(text)


def open_private(path: str, flags: int) -> int:
    """An ``opener`` for ``open``: a new file is readable by its owner only, and links are not followed."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def read_secret(path: Path) -> str:
    """Return the text of a file with a secret. Raises: NotPrivate if all users can read it, OSError."""
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if stat.S_ISREG(mode) and mode & stat.S_IRWXO:
            raise NotPrivate(f"{path}: all users of this machine can read it; chmod 600 {path}")
        return file.read(_SECRET_BYTES_MAX).decode("utf-8", "replace")


def require_own_folder(folder: Path) -> None:
    """Raise NotPrivate for a folder to which all users can write. Raises: OSError."""
    if folder.stat().st_mode & stat.S_IWOTH:
        raise NotPrivate(f"{folder}: all users of this machine can write there; use a folder of your own")
