"""Instances of cards: which one is given, and what it is called."""

from __future__ import annotations

import pytest

from pumice.volcano.devices.mig import Geometry, Instance, InstanceSlot, find, name_of, place_in

SMALL = Geometry("g1", (Instance("1g", 6, 2), Instance("3g", 18, 1)))
LARGE = Geometry("g2", (Instance("4g", 24, 1),))


@pytest.mark.parametrize(
    ("group", "in_use", "memory", "found"),
    [
        pytest.param(0, 0, 5, InstanceSlot(1, 0, 6), id="the smallest that will do"),
        pytest.param(0, 0b001, 5, InstanceSlot(1, 1, 6), id="the next of its size"),
        pytest.param(0, 0b011, 5, InstanceSlot(1, 2, 18), id="a larger one where all small ones are in use"),
        pytest.param(0, 0, 7, InstanceSlot(1, 2, 18), id="of so much memory"),
        pytest.param(0, 0, 20, InstanceSlot(2, 0, 24), id="of the next group where the first has none"),
        pytest.param(1, 0b001, 20, None, id="not of another group than the card is cut by"),
        pytest.param(2, 0b1, 1, None, id="all are in use"),
        pytest.param(3, 0, 1, None, id="no such group"),
        pytest.param(-1, 0, 1, None, id="a card that is cut two ways at odds"),
        pytest.param(0, 0, 25, None, id="more than any has"),
    ],
)
def test_which_instance_is_given(group: int, in_use: int, memory: int, found: InstanceSlot | None) -> None:
    assert find((SMALL, LARGE), group, in_use, memory) == found


@pytest.mark.parametrize(("place", "memory"), [(0, 6), (1, 6), (2, 18), (3, 0), (-1, 0)])
def test_memory_by_place(place: int, memory: int) -> None:
    assert SMALL.memory_at(place) == memory


def test_names_say_group_and_place() -> None:
    assert place_in(name_of("GPU-0", SMALL, 2)) == ("g1", 2)


@pytest.mark.parametrize(
    "name", ["GPU-0", "GPU-0[g1", "GPU-0[g1]", "GPU-0[g1-x]", "GPU-0[g1-12345]", "GPU-0[g1-\u0663]"]
)
def test_what_is_no_name_of_an_instance(name: str) -> None:
    assert place_in(name) is None
