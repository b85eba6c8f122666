"""Task classes: which pods share one, what is computed for it, and that it is removed with its last pod."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.columns.classes import ClassTable
from pumice.columns.column import Versions
from pumice.columns.dtypes import EPS, ResourceAxis, fits
from pumice.columns.tables import Tables
from pumice.model.events import Gone, Seen
from pumice.model.pod import Pod, Toleration
from pumice.testing.build import GPU, cluster, node, pod, podgroup, pods, spec

GI = 2.0**30


def table() -> ClassTable:
    return ClassTable(Versions(), ResourceAxis([GPU, "pods"]))


def used(tables: Tables) -> list[int]:
    """Rows of classes that some pod is of."""
    found: list[int] = tables.classes.alive.nonzero()[0].tolist()
    return found


@pytest.mark.parametrize(
    ("more", "same"),
    [
        pytest.param({}, True, id="nothing"),
        pytest.param({"cpu": 2}, False, id="request"),
        pytest.param({"gpu": 1}, False, id="another resource"),
        pytest.param({"nonzero_milli_cpu": 7.0}, False, id="request with defaults"),
        pytest.param({"node_selector": (("zone", "a"),)}, False, id="node selector"),
        pytest.param({"tolerations": (Toleration("k"),)}, False, id="toleration"),
        pytest.param({"images": ("app:1",)}, False, id="images"),
        pytest.param({"priority": 5}, False, id="priority"),
    ],
)
def test_what_makes_another_class(more: dict[str, Any], same: bool) -> None:
    tables = cluster(pod("plain"), pod("other", **more)).snapshot().tables
    assert (tables.tasks.cls[0] == tables.tasks.cls[1]) == same
    assert len(used(tables)) == (1 if same else 2)


def test_equal_specs_share_a_class_whether_or_not_they_are_one_object() -> None:
    first = pod("p0", cpu=2)
    twin = replace(first, name="p1", spec=replace(first.spec))
    assert twin.spec is not first.spec
    tables = cluster(first, pod("p2"), twin, replace(first, name="p3")).snapshot().tables
    of = {tables.tasks.pods[row].name: int(tables.tasks.cls[row]) for row in range(4)}
    assert of["p0"] == of["p1"] == of["p3"] != of["p2"]


def test_no_class_is_taken_for_that_of_a_spec_that_is_gone() -> None:
    """Python gives the identity of a freed object to the next one of its kind."""
    store = cluster(pod("stays"))
    for number in range(1, 50):
        store.apply(Seen(pod("comes", priority=number)))
        store.apply(Seen(replace(pod("twin"), spec=replace(spec()))))
        tables = store.snapshot().tables
        of = {tables.tasks.pods[row].name: int(tables.tasks.cls[row]) for row in range(3)}
        assert tables.classes.specs[of["comes"]].priority == number
        assert of["twin"] == of["stays"] != of["comes"]
        store.apply(Gone(Pod, "ns/comes"))
        store.apply(Gone(Pod, "ns/twin"))


@pytest.mark.parametrize(
    ("ask", "req", "compared", "nonzero", "best_effort"),
    [
        pytest.param(
            {"cpu": 2, "memory": "1Gi"},
            [2000, GI, 0, 1],
            [True, True, False, True],
            [2000, GI],
            False,
            id="cpu and memory",
        ),
        pytest.param(
            {"cpu": 1, "memory": 0, "gpu": 2},
            [1000, 0, 2000, 1],
            [True, True, True, True],
            [1000, 200 * 2**20],
            False,
            id="gpus",
        ),
        pytest.param(
            {"cpu": 0, "memory": 0},
            [0, 0, 0, 1],
            [True, True, False, True],
            [100, 200 * 2**20],
            True,
            id="nothing but a place",
        ),
    ],
)
def test_what_is_worked_out(
    ask: dict[str, Any], req: list[float], compared: list[bool], nonzero: list[float], best_effort: bool
) -> None:
    classes = table()
    row = classes.add(spec(**ask))
    assert classes.req[row].tolist() == req
    assert classes.compared[row].tolist() == compared
    assert classes.asked[row] == tuple((i, r - EPS) for i, r in enumerate(req) if compared[i])
    assert classes.nonzero[row].tolist() == nonzero
    assert classes.steps[row].tolist() == [*req, *nonzero, 1], "what one more task adds to a node's view"
    assert classes.best_effort[row] == best_effort


def test_room_above_the_limits_is_room_enough() -> None:
    classes = table()
    row = classes.add(spec(cpu=1, memory=0, gpu=0))
    edge = classes.req[row] - EPS
    rooms = np.array([edge, edge + 0.01, edge - 0.01, [1e9, -1.0, 0, 1]])
    enough = [all(room[i] > limit for i, limit in classes.asked[row]) for room in rooms.tolist()]
    assert enough == fits(classes.req[row], rooms).tolist()
    assert fits(classes.req[row], rooms).tolist() == [False, True, False, False]


def test_requests_are_not_written_on() -> None:
    classes = table()
    classes.add(spec())
    for column in (classes.req, classes.steps):
        with pytest.raises(ValueError, match="read-only"):
            column[0, 0] = 1


def test_a_row_that_was_given_back_is_another_class() -> None:
    """So nothing that is kept about the first is taken for the second."""
    classes = table()
    first = classes.add(spec(cpu=1))
    identity = classes.identity(first)
    classes.free_row(first)
    second = classes.add(spec(cpu=2))
    assert second == first
    assert classes.identity(second) != identity


def test_equal_pods_of_all_jobs_share_a_class() -> None:
    objects = [podgroup("a"), pods("a", 3), podgroup("b"), pods("b", 2), podgroup("c"), pods("c", 1, cpu=2)]
    tables = cluster(node("n"), *objects).snapshot().tables
    by_job = [set(tables.tasks.cls[rows].tolist()) for rows in tables.jobs.tasks[:3]]
    assert by_job[0] == by_job[1] != by_job[2]
    assert len(used(tables)) == 2


# -- classes without tasks are removed


def own_request(number: int) -> Pod:
    """A pod that asks for what no other asks for."""
    return pod(f"p{number}", cpu=f"{number + 1}m")


def own_claim(number: int) -> Pod:
    """A pod whose claim no other names."""
    return pod(f"p{number}", claim_names=(f"p{number}-data",))


@pytest.mark.parametrize("make", [pytest.param(own_request, id="requests"), pytest.param(own_claim, id="claims")])
@pytest.mark.parametrize("at_once", [1, 40])
def test_pods_that_came_and_went_leave_no_class(make: Callable[[int], Pod], at_once: int) -> None:
    """2,000 pods, each of a class of its own, some of them at a time."""
    store = cluster(node("n"), pod("stays", cpu=8))
    for first in range(0, 2000, at_once):
        for number in range(first, first + at_once):
            store.apply(Seen(make(number)))
        assert len(used(store.snapshot().tables)) == at_once + 1
        for number in range(first, first + at_once):
            store.apply(Gone(Pod, f"ns/p{number}"))
    tables = store.snapshot().tables
    assert [tables.classes.specs[row] for row in used(tables)] == [spec(cpu=8)]
    assert tables.classes.capacity <= 64, "rows are used again"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda store: store.apply(Gone(Pod, "ns/p0")), id="it goes"),
        pytest.param(lambda store: store.apply(Seen(pod("p0", cpu="2m"))), id="it asks for something else"),
    ],
)
def test_a_class_stays_while_anybody_is_of_it(change: Callable[[Any], None]) -> None:
    store = cluster(pod("p0", cpu="1m"), pod("p1", cpu="1m"))

    def requests() -> set[float]:
        tables = store.snapshot().tables
        return {tables.classes.specs[row].request.milli_cpu for row in used(tables)}

    change(store)
    assert 1.0 in requests()
    store.apply(Gone(Pod, "ns/p1"))
    assert 1.0 not in requests()
