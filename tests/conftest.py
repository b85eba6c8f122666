"""How hypothesis works here: the same examples on every run, and no clock. ``HYPOTHESIS_PROFILE=search`` looks further.
And the garbage collector: it examines what tests make, and no modules and no collected tests.

Without a fixed derivation a failure on one machine could not be seen on another; a deadline would measure the machine.
"""

from __future__ import annotations

import gc
import os

from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile("search", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def pytest_collection_finish() -> None:
    """Freeze modules and collected tests, as a simulation freezes what is there when it begins."""
    # A simulation freezes only what is not frozen yet. Without this each of the thousands in tests would first examine
    # all that pytest holds, which takes a second, and that was a fifth of the whole run.
    gc.collect()
    gc.freeze()
