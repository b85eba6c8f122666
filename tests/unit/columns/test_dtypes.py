"""The resource axis, and the one comparison of a need with a room. (Volcano's vectors: tests/conformance.)"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.dtypes import EPS, ResourceAxis, compared, fits
from pumice.model.resources import Resource
from pumice.testing.build import GPU, resource

AXIS = ResourceAxis(["z/last", GPU, "pods", "cpu", GPU])


def test_names_are_sorted_between_cpu_memory_and_pods() -> None:
    assert AXIS.names == ("cpu", "memory", GPU, "z/last", "pods")
    assert [AXIS.column[name] for name in AXIS.names] == [0, 1, 2, 3, 4]
    assert (AXIS.pods, len(AXIS)) == (4, 5)
    assert ResourceAxis().names == ("cpu", "memory", "pods")


@pytest.mark.parametrize(
    ("amount", "row"),
    [
        pytest.param(None, [0, 0, 0, 0, 0], id="none"),
        pytest.param(resource(), [0, 0, 0, 0, 0], id="nothing"),
        pytest.param(resource("500m", 7, gpu=2, pods=3), [500, 7, 2000, 0, 3], id="something"),
    ],
)
def test_vector(amount: Resource | None, row: list[float]) -> None:
    assert AXIS.vector(amount).tolist() == row


def test_a_row_back_as_a_value_leaves_out_what_is_zero() -> None:
    found = AXIS.resource(np.array([500.0, 7.0, 2000.0, 0.0, 3.0]))
    assert (found.milli_cpu, found.memory, dict(found.scalars or {})) == (500, 7, {GPU: 2000, "pods": 3})


@pytest.mark.parametrize(
    ("amount", "covered"),
    [
        pytest.param(Resource(1.0, 1.0), True, id="no scalars"),
        pytest.param(resource(1, gpu=1, pods=1), True, id="known ones"),
        pytest.param(resource(1, **{"new/card": 1}), False, id="a new one"),
    ],
)
def test_covers(amount: Resource, covered: bool) -> None:
    assert AXIS.covers(amount) is covered


@pytest.mark.parametrize(
    ("need", "room", "fit"),
    [
        pytest.param([1, 1, 0, 0, 0], [1, 1, 0, 0, 0], True, id="just"),
        pytest.param([1, 1, 0, 0, 0], [1 - EPS / 2, 1, 0, 0, 0], True, id="short by less than counts"),
        pytest.param([1, 1, 0, 0, 0], [0.5, 1, 0, 0, 0], False, id="short of cpu"),
        pytest.param([1, 1, 0, 0, 0], [1, 0.5, 0, 0, 0], False, id="short of memory"),
        pytest.param([0, 0, 0, 0, 0], [-1, 0, 0, 0, 0], False, id="cpu counts even if none is asked for"),
        pytest.param([0, 0, 0, 0, 0], [0, -1, 0, 0, 0], False, id="so does memory"),
        pytest.param([0, 0, 0, 0, 0], [0, 0, -1, -1, -1], True, id="a scalar only if it is asked for"),
        pytest.param([0, 0, 2, 0, 0], [9, 9, 1, 9, 9], False, id="short of a scalar"),
    ],
)
def test_fits(need: Any, room: Any, fit: bool) -> None:
    one, two = np.array(need, dtype=np.float64), np.array([room, [9e9] * 5], dtype=np.float64)
    assert bool(fits(one, two[0])) is fit
    assert fits(one, two).tolist() == [fit, True]


def test_which_dimensions_are_compared() -> None:
    assert compared(np.array([0.0, 0.0, 1.0, 0.0, -1.0])).tolist() == [True, True, True, False, False]
