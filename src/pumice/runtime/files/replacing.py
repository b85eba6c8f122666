"""Write a file as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal


@contextmanager
def replacing(path: Path, mode: Literal["w", "wb"], *, private: bool) -> Iterator[IO[Any]]:
    """Yield a file that takes the place of ``path`` when all is written; after any error it does not exist. A link with
    that name is replaced, not followed. ``private``: only its owner can read it.

    It is created beside ``path`` under a name that cannot be guessed: in a folder that others can write to, an existing
    link of that name would be written through, and processes on other machines may have the same number. Raises:
    OSError that names ``path`` if it cannot be created.
    """
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        with os.fdopen(descriptor, mode, encoding="utf-8" if mode == "w" else None) as file:
            yield file
        if not private:
            os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
