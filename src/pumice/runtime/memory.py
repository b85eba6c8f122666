"""Memory of a process: the collector of reference cycles, and what the allocator keeps.

Modules and what was read live for as long as the process: the collector need not walk them again and again. And a
cycle leaves nothing that only a collector could free (a session is taken apart when it is done), so a look after every
few hundred objects finds nothing.

The C library keeps what is freed for the next time it is wanted, in a heap for each thread; pieces of it are never
wanted again, and so a process that makes and frees buffers for weeks grows slowly although nothing is kept.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 50_000
#: What the GNU C library calls them (malloc.h), and their values: buffers of up to so many bytes are kept, and so many
#: bytes in all, until somebody gives them back.
_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1
_BUFFER, _KEPT = 8 << 20, 32 << 20


def leave_old_objects_alone() -> None:
    """From now on: what there is stays, and is not looked at again, unless this is called again."""
    keep_buffers()
    gc.unfreeze()  # what was left alone the last time, and is in nobody's hands any more, goes
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])


@contextmanager
def old_objects_left_alone() -> Iterator[None]:
    """The same for the time of a block."""
    before = gc.get_threshold()
    leave_old_objects_alone()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


@contextmanager
def seldom_collected() -> Iterator[None]:
    """For a whole command, which begins with modules and input: the collector looks, and not after every few hundred
    objects."""
    before = gc.get_threshold()
    gc.set_threshold(_NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def without_collector() -> Iterator[None]:
    """For reading, which makes very many objects and no garbage cycles: it is up to twice as fast."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def keep_buffers() -> bool:
    """Have the C library keep the buffers that are freed for those that are wanted next. By itself it gives back what
    is free beyond a few hundred KiB, as long as no large one was freed, and asks the system for the next arrays anew,
    page by page, which takes longer than the arithmetic. Whether there is a way to say so (the GNU C library has
    one)."""
    say = _of_the_c_library("mallopt")
    return say is not None and bool(say(_MMAP_THRESHOLD, _BUFFER) and say(_TRIM_THRESHOLD, _KEPT))


def give_back_freed() -> bool:
    """Give freed memory back to the system; takes a few milliseconds. Whether there was any, and a way to do it (the
    GNU C library has one)."""
    trim = _of_the_c_library("malloc_trim")
    return trim is not None and bool(trim(0))


def _of_the_c_library(name: str) -> Callable[..., int] | None:
    """A function of it; None where it has no such, or is not asked."""
    if not sys.platform.startswith("linux"):
        return None
    found: Callable[..., int] | None = getattr(ctypes.CDLL(None), name, None)
    return found
