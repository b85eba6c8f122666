"""Counting the tasks of a gang that fit into domains: equal to counting node by node."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from pumice.columns.dtypes import AnyArray, Bool
from pumice.placing.feasibility import Feasibility
from pumice.volcano.eviction.gangs.plans import WaitingTasks
from pumice.volcano.eviction.gangs.room import GangRoom

FUTURE = np.array([[4.0, 9.0], [1.0, 9.0], [8.0, 1.0], [0.0, 0.0]])
MENDABLE = np.array([True, True, True, False])


class EveryClass:
    """Filters that refuse the last node for good, whatever the class."""

    def mendable(self, cls: int) -> Bool:
        return MENDABLE


def room(nodes: AnyArray | None = None) -> GangRoom:
    return GangRoom(cast(Feasibility, EveryClass()), FUTURE, nodes)


@pytest.mark.parametrize(
    ("nodes", "holds", "first"),
    [([0, 1, 2, 3], True, 4), ([0], False, 3), ([1], False, 0), ([2], False, 2), ([3], False, 0), ([], False, 0)],
)
def test_tasks_are_counted_in_each_domain(nodes: list[int], holds: bool, first: int) -> None:
    # Three tasks of 2 and 1, one of 1 and 1, which is second.
    waiting = WaitingTasks(0, [5, 6, 7, 8], [1, 2, 1, 1], [(1, 3, [(0, 2.0), (1, 1.0)]), (2, 1, [(0, 1.0), (1, 1.0)])])
    rows = np.array(nodes, dtype=np.int64)
    for of in (room(), room(rows)):
        assert of.holds(waiting, rows) is holds
        assert of.first_refused(waiting, rows) == first
