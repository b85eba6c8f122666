"""Which random worlds a test tries that compares decisions with a slow and plain model.

``FIRST_SEED=5000 make test-long`` tries others than those that the rules were written with.
"""

import os

import pytest

_FIRST = int(os.environ.get("FIRST_SEED", "0"))
_SAMPLE, _MANY = range(_FIRST, _FIRST + 60), range(_FIRST, _FIRST + 1000)

#: A sample in `make test`, and 1,000 in `make test-long`.
MANY_WORLDS = pytest.mark.parametrize(
    "seeds", [pytest.param(_SAMPLE, id="60"), pytest.param(_MANY, id="1000", marks=pytest.mark.long)]
)
