"""How many random worlds a test tries that compares decisions with a slow and plain model."""

import pytest

#: A sample in `make test`, and 1,000 in `make test-long`.
MANY_WORLDS = pytest.mark.parametrize("worlds", [60, pytest.param(1000, marks=pytest.mark.long)])
