"""Memory of a process: the garbage collector, and what the allocator keeps.

Modules and input live as long as the process, so the collector need not examine them again and again. A cycle leaves
nothing that only a collector could free (a session clears its references at the end), so a collection every few hundred
objects finds nothing.

The C library keeps freed memory for later, in a heap per thread. Pieces of it are never reused, so a process that
allocates and frees buffers for weeks grows slowly although nothing is kept.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 50_000
#: Options of the GNU C library (malloc.h): buffers up to a size are kept, up to a total, until they are released.
_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1
_BUFFER, _KEPT = 8 << 20, 32 << 20


class _Frozen:
    """Whether old objects are frozen. The collector would count all of them to say so."""

    now = False


def leave_old_objects_alone(*, and_free_unused: bool = False) -> None:
    """From now on, present objects stay and are not examined again.

    ``and_free_unused``: objects that were frozen before are examined once more, and those that are unused are freed.
    """
    keep_buffers()
    if and_free_unused:
        gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
    _Frozen.now = True


@contextmanager
def old_objects_left_alone() -> Iterator[None]:
    """Freeze present objects for the time of a block, unless a block around it has done so."""
    if _Frozen.now:
        # Examining all of them again would cost more than a short simulation within the block.
        yield
        return
    before = gc.get_threshold()
    leave_old_objects_alone()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
        _Frozen.now = False


@contextmanager
def seldom_collected() -> Iterator[None]:
    """For a whole command, which begins with modules and input: the collector runs, but not every few hundred
    objects."""
    before = gc.get_threshold()
    gc.set_threshold(_NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def without_collector() -> Iterator[None]:
    """Switch the collector off for reading, which creates very many objects and no cycles: it would examine them again
    and again, and reading would take up to twice as long."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def keep_buffers() -> bool:
    """Make the C library keep freed buffers for later. Return True if that is possible (with the GNU C library).

    By default it returns free memory beyond a few hundred KiB to the system, as long as no large buffer was freed, and
    requests it again for the next arrays, page by page, which takes longer than the arithmetic.
    """
    say = _of_the_c_library("mallopt")
    return say is not None and bool(say(_MMAP_THRESHOLD, _BUFFER) and say(_TRIM_THRESHOLD, _KEPT))


def give_back_freed() -> bool:
    """Return freed memory to the system, which takes a few milliseconds. Return True if there was any and it is
    possible (with the GNU C library)."""
    trim = _of_the_c_library("malloc_trim")
    return trim is not None and bool(trim(0))


def _of_the_c_library(name: str) -> Callable[..., int] | None:
    """Return a function of the C library, or None if it does not exist."""
    if not sys.platform.startswith("linux"):
        return None
    found: Callable[..., int] | None = getattr(ctypes.CDLL(None), name, None)
    return found
