"""How hypothesis works here: the same examples on every run, and no clock. ``HYPOTHESIS_PROFILE=search`` looks further.

Without a fixed derivation a failure on one machine could not be seen on another; a deadline would measure the machine.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile("search", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
