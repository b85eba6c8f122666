"""What is in use of cards: counted and counted no more, now and soon, and which card is better."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.volcano.devices.cards import BINPACK, COLUMNS, GROUP, INSTANCES, SPREAD, Part, as_both, card_score


def test_what_is_counted_and_counted_no_more_leaves_nothing() -> None:
    used = np.zeros((2, COLUMNS), dtype=np.int64)
    parts = [Part(1, 10, 20), Part(1, 5, 0, group=2, instance=3), Part(1, 5, 0, group=2, instance=0)]
    for part in parts:
        part.add_to(used)
    assert used.tolist() == [[0] * COLUMNS, [3, 20, 20, 2, 0b1001]]
    for part in parts:
        part.add_to(used, -1)
    assert not used.any(), "and the card is cut by no group"


@pytest.mark.parametrize(
    ("now", "soon", "group", "instances"),
    [
        pytest.param((1, 0b01), (1, 0b10), 1, 0b11, id="instances of both"),
        pytest.param((1, 0b01), (0, 0), 1, 0b01, id="cut for those that leave"),
        pytest.param((1, 0b01), (2, 0b01), -1, 0b01, id="cut two ways at odds"),
    ],
)
def test_now_and_soon(now: tuple[int, int], soon: tuple[int, int], group: int, instances: int) -> None:
    first, second = (np.array([[0, 0, 0, *each]], dtype=np.int64) for each in (now, soon))
    both = as_both(first, second)[0]
    assert (both[GROUP], both[INSTANCES]) == (group, instances)


@pytest.mark.parametrize(
    ("policy", "memory", "used", "score"),
    [
        (BINPACK, 200, (1, 50, 0, 0, 0), 25.0),
        (BINPACK, 0, (1, 50, 0, 0, 0), 0.0),
        (SPREAD, 200, (0, 0, 0, 0, 0), 100.0),
        (SPREAD, 200, (1, 0, 0, 0, 0), 0.0),
        ("", 200, (0, 0, 0, 0, 0), 0.0),
    ],
)
def test_how_good_a_card_is(policy: str, memory: int, used: tuple[int, ...], score: float) -> None:
    assert card_score(policy, memory, used) == score
