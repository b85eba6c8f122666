"""How hypothesis works here: the same examples on every run, and no clock. ``HYPOTHESIS_PROFILE=search`` looks further.
And the garbage collector: it examines what tests make, and no modules and no collected tests.

Without a fixed derivation a failure on one machine could not be seen on another; a deadline would measure the machine.
"""

from __future__ import annotations

import os

from hypothesis import settings

from pumice.runtime.memory import leave_old_objects_alone

settings.register_profile("repeatable", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile("search", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def pytest_collection_finish() -> None:
    """Leave modules and collected tests alone, as a live scheduler does with what it has listed."""
    # Else each of the thousands of simulations in tests would examine all that pytest holds, which takes a second.
    leave_old_objects_alone()
