"""Queues as columns: their order, their parents, and what a limit that is not given means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.column import Versions
from pumice.columns.dtypes import ResourceAxis
from pumice.columns.queues import QueueStatusTable, QueueTable
from pumice.model.queue import Queue, QueueStatus, QueueUsage, without_status
from pumice.model.resources import Resource
from pumice.testing.build import GPU, queue, resource

GI = 2.0**30
INF = float("inf")
AXIS = ResourceAxis([GPU])  # cpu, memory, gpu, pods


def table(*queues: Queue) -> QueueTable:
    return QueueTable(Versions(), queues, AXIS)


@pytest.mark.parametrize(
    ("queues", "order"),
    [
        pytest.param([], "", id="none"),
        pytest.param([queue("a", creation=2.0), queue("b", creation=1.0)], "b a", id="the older first"),
        pytest.param([queue("b"), queue("a")], "a b", id="of one age, by name"),
    ],
)
def test_rows_are_in_order_of_age(queues: list[Queue], order: str) -> None:
    found = table(*queues)
    assert list(found.names) == order.split()
    assert found.row_of == {name: row for row, name in enumerate(found.names)}
    assert [each.name for each in found.objs] == order.split()
    assert len(found) == len(queues)


def test_numbers() -> None:
    found = table(queue("a", 3, priority=5, creation=7.0), queue("b", state="Closed", creation=8.0))
    assert (found.weight.tolist(), found.priority.tolist(), found.creation.tolist()) == ([3, 1], [5, 0], [7, 8])
    assert found.open.tolist() == [True, False]


@pytest.mark.parametrize(
    ("state", "is_open"), [("Open", True), ("Closed", False), ("Closing", False), ("Unknown", False), ("", False)]
)
def test_which_queues_are_open(state: str, is_open: bool) -> None:
    assert table(queue("a", state=state)).open.tolist() == [is_open]


@pytest.mark.parametrize(
    ("capability", "limit"),
    [
        pytest.param(None, [INF, INF, INF, INF], id="not given"),
        pytest.param(resource(), [INF, INF, INF, INF], id="given, and empty"),
        pytest.param(resource(4), [4000, INF, INF, INF], id="cpu alone: no memory is any memory"),
        pytest.param(resource(4, "2Gi"), [4000, 2 * GI, INF, INF], id="cpu and memory"),
        pytest.param(resource(4, gpu=2), [4000, INF, 2000, INF], id="gpus"),
        pytest.param(resource(pods=10), [INF, INF, INF, 10], id="pods"),
        pytest.param(Resource(0.0, 0.0, {GPU: 0.0}), [INF, INF, 0, INF], id="a scalar of none is a limit"),
    ],
)
def test_capability(capability: Any, limit: list[float]) -> None:
    assert table(queue("a", capability=capability)).capability.tolist() == [limit]


def test_guarantee_is_nothing_where_it_is_not_given() -> None:
    found = table(queue("a"), queue("b", guarantee=resource(1, "1Gi", gpu=1)))
    assert found.guarantee.tolist() == [[0, 0, 0, 0], [1000, GI, 1000, 0]]


def test_amounts_of_statuses() -> None:
    statuses = [QueueStatus.of(each) for each in (queue("a"), queue("b", allocated=resource(1)))]
    found = QueueStatusTable(Versions(), statuses, AXIS)
    assert np.isnan(found.allocated[0]).all()
    assert found.allocated[1].tolist() == [1000, 0, 0, 0]
    again = QueueStatus(resource(2), resource_version="9")
    found.take(0, again)
    assert (found.allocated[0].tolist(), found.objs[0]) == ([2000, 0, 0, 0], again)
    found.take(0, QueueStatus())
    assert np.isnan(found.allocated[0]).all()


def test_queues_are_kept_without_their_statuses() -> None:
    status = QueueStatus(resource(1), QueueUsage(requested=resource(2)), "7")
    written = status.added_to(queue("a", weight=3))
    assert table(written).objs[0] == queue("a", weight=3) == without_status(written)
    assert QueueStatus.of(written) == status


@pytest.mark.parametrize(
    ("queues", "parents"),
    [
        pytest.param([queue("a")], {"a": ""}, id="no root"),
        pytest.param([queue("a"), queue("root")], {"a": "root", "root": ""}, id="root, where none is named"),
        pytest.param(
            [queue("a", parent="b"), queue("b"), queue("root")],
            {"a": "b", "b": "root", "root": ""},
            id="the one that is named",
        ),
        pytest.param([queue("a", parent="gone"), queue("root")], {"a": "", "root": ""}, id="one that is not there"),
        pytest.param([queue("root", parent="a"), queue("a")], {"a": "root", "root": ""}, id="root has none"),
    ],
)
def test_parents(queues: list[Queue], parents: dict[str, str]) -> None:
    found = table(*queues)
    named = {name: found.names[p] if p >= 0 else "" for name, p in zip(found.names, found.parent, strict=True)}
    assert named == parents
