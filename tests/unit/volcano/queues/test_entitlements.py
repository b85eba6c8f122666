"""What queues are entitled to: the figures themselves are held against Volcano's in tests/conformance; here what
follows from bad input, and what a reader would not expect."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.column import Versions
from pumice.columns.dtypes import F64, ResourceAxis
from pumice.columns.queues import QueueTable
from pumice.model.queue import Queue
from pumice.testing.build import GPU, queue, resource
from pumice.volcano.queues.entitlements import Entitlements, in_tree, side_by_side
from pumice.volcano.queues.tree import QueueTree
from tests import resource_algebra as algebra

AXIS = ResourceAxis([GPU])  # cpu, memory, gpu, pods
INF = float("inf")
CORES, GPUS = 0, 2


def cores(amount: float) -> Any:
    return resource(amount)


def entitled(*queues: Queue, tree: bool = False, total: F64 | None = None) -> tuple[Entitlements, dict[str, int]]:
    table = QueueTable(Versions(), queues, AXIS)
    have = AXIS.vector(resource(10, "10Gi", gpu=4, pods=100)) if total is None else total
    found = in_tree(table, QueueTree.of(table), AXIS, have) if tree else side_by_side(table, AXIS, have)
    return found, table.row_of


def test_deserved_above_capability_is_cut_side_by_side_and_not_in_a_tree() -> None:
    """As in Volcano, which says so in its log alone."""
    given = queue("a", deserved=cores(8), capability=cores(2))
    flat, row = entitled(given)
    assert flat.deserved[row["a"], CORES] == 2000
    tree, row = entitled(queue("root"), given, tree=True)
    assert (tree.deserved[row["a"], CORES], tree.most[row["a"], CORES]) == (8000, 2000)


def test_a_child_may_state_more_than_its_parent_has_and_gets_no_more() -> None:
    found, row = entitled(
        queue("root"), queue("p", capability=cores(2)), queue("c", parent="p", capability=cores(6)), tree=True
    )
    assert found.most[row["c"], CORES] == 2000
    assert found.capability[row["c"], CORES] == 6000


def test_guarantees_that_exceed_the_cluster_leave_nothing_for_others() -> None:
    found, row = entitled(queue("a", guarantee=cores(8)), queue("b", guarantee=cores(8)), queue("c"))
    assert [found.most[row[name], CORES] for name in "abc"] == [8000, 8000, 0]


@pytest.mark.parametrize(
    ("capability", "cpu", "gpu"),
    [
        pytest.param(None, INF, INF, id="a root without capability is no limit"),
        pytest.param(resource(), INF, INF, id="nor is one with an empty one"),
        pytest.param(resource(gpu=2), 0, 2000, id="one for gpus alone leaves no cpu for anybody"),
        pytest.param(resource(4, "1Gi"), 4000, 0, id="and one for cpu and memory no gpu"),
    ],
)
def test_the_capability_of_the_root(capability: Any, cpu: float, gpu: float) -> None:
    found, row = entitled(queue("root", capability=capability), queue("a"), tree=True)
    assert (found.most[row["a"], CORES], found.most[row["a"], GPUS]) == (cpu, gpu)


def test_of_what_no_node_has_nobody_can_have_any() -> None:
    total = AXIS.vector(resource(10, "10Gi"))
    found, row = entitled(queue("root"), queue("a"), tree=True, total=total)
    assert found.most[row["a"], GPUS] == 0


def test_an_amount_of_zero_is_spoken_of() -> None:
    found, row = entitled(
        queue("a", deserved=algebra.with_scalar(resource(1), GPU, 0.0)), queue("b", deserved=resource(1))
    )
    assert (found.named[row["a"], GPUS], found.named[row["b"], GPUS]) == (True, False)


def test_who_deserves_nothing_has_more_than_that_already() -> None:
    found, row = entitled(queue("a", deserved=resource(pods=5)), queue("b", deserved=resource(2)))
    share = found.share(np.array([[1000.0, 0, 0, 1], [1000, 0, 0, 1]]))
    assert (share[row["a"]], share[row["b"]]) == (1.0, 0.5)
    assert found.deserves_nothing().tolist() == [True, False]
