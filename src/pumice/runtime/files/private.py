"""Files that hold secrets: only their owner reads them, and nobody else chooses where they are written."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

_SECRET_BYTES_MAX = 64 << 10


class NotPrivate(Exception):
    """A file or folder that others may read or write; what to do about it."""


def write_private(path: Path, text: str) -> None:
    """A file that only its owner reads, whole or not at all. A link of that name is replaced, not followed.

    It is made under a name that nobody can guess: in a folder that others may write to, one that is waiting there
    under the name would be written through. Raises: OSError.
    """
    descriptor, made = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(made, path)
    except BaseException:
        Path(made).unlink(missing_ok=True)
        raise


def open_private(path: str, flags: int) -> int:
    """An ``opener`` for ``open``: a new file is its owner's alone, and a link is not followed."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def read_secret(path: Path) -> str:
    """The text of a file that holds a secret. Raises: NotPrivate where everybody may read it, OSError."""
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if stat.S_ISREG(mode) and mode & stat.S_IRWXO:
            raise NotPrivate(f"{path}: all users of this machine can read it; chmod 600 {path}")
        return file.read(_SECRET_BYTES_MAX).decode("utf-8", "replace")


def require_own_folder(folder: Path) -> None:
    """Raises: NotPrivate for a folder in which everybody may put files, OSError."""
    if folder.stat().st_mode & stat.S_IWOTH:
        raise NotPrivate(f"{folder}: all users of this machine can write there; use a folder of your own")
