"""The collector of reference cycles, kept off what lives long.

What was read lives for as long as the process: the collector need not walk it again and again. And a cycle leaves
nothing that only a collector could free (a session is taken apart when it is done), so a look after every few hundred
objects finds nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 50_000


def leave_old_objects_alone() -> None:
    """From now on: what there is stays, and is not looked at again."""
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
