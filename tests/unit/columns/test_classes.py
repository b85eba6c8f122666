"""Task classes: which pods share one, and what is worked out for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pumice.columns.classes import ClassTable
from pumice.columns.dtypes import EPS, ResourceAxis, fits
from pumice.model.pod import Toleration
from pumice.testing.build import GPU, cluster, node, podgroup, pods, session, spec

GI = 2.0**30


def table() -> ClassTable:
    return ClassTable(ResourceAxis([GPU, "pods"]))


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
    classes = table()
    plain, other = spec(), spec(**more)
    assert (classes.row(plain) == classes.row(other)) is same
    assert len(classes) == (1 if same else 2)


def test_equal_specs_share_a_class_whether_or_not_they_are_one_object() -> None:
    classes = table()
    first = spec(cpu=2)
    twin = replace(first)
    assert twin is not first
    assert [classes.row(each) for each in (first, spec(), twin, first, twin)] == [0, 1, 0, 0, 0]
    assert classes.specs == [first, spec()]


def test_no_class_is_taken_for_that_of_a_spec_that_is_gone() -> None:
    """Python gives the identity of a freed object to the next one of its kind."""
    classes = table()
    first = spec()
    for number in range(1, 50):
        assert classes.row(replace(first)) == 0
        assert classes.row(replace(first, priority=number)) == number


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
    row = classes.row(spec(**ask))
    assert classes.req[row].tolist() == req
    assert classes.compared[row].tolist() == compared
    assert classes.asked[row] == [(i, r - EPS) for i, r in enumerate(req) if compared[i]]
    assert classes.nonzero[row].tolist() == nonzero
    assert classes.steps[row].tolist() == [*req, *nonzero, 1], "what one more task adds to a node's view"
    assert classes.best_effort[row] is best_effort


def test_room_above_the_limits_is_room_enough() -> None:
    classes = table()
    row = classes.row(spec(cpu=1, memory=0, gpu=0))
    edge = classes.req[row] - EPS
    rooms = np.array([edge, edge + 0.01, edge - 0.01, [1e9, -1.0, 0, 1]])
    enough = [all(room[i] > limit for i, limit in classes.asked[row]) for room in rooms.tolist()]
    assert enough == fits(classes.req[row], rooms).tolist()
    assert fits(classes.req[row], rooms).tolist() == [False, True, False, False]


def test_requests_are_not_written_on() -> None:
    classes = table()
    classes.row(spec())
    for column in (classes.req[0], classes.steps[0]):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


def test_all_requests_together() -> None:
    classes = table()
    assert classes.matrix.shape == (0, 4)
    for cpu in (1, 2):
        classes.row(spec(cpu=cpu))
        assert classes.matrix[:, 0].tolist() == [1000 * each for each in range(1, cpu + 1)]
    assert classes.matrix is classes.matrix, "made anew only for a new class"


def test_equal_pods_of_all_jobs_share_a_class() -> None:
    objects = [podgroup("a"), pods("a", 3), podgroup("b"), pods("b", 2), podgroup("c"), pods("c", 1, cpu=2)]
    ssn = session(cluster(node("n"), *objects), "tiers: []")
    by_job = [set(ssn.tables.tasks.cls[rows].tolist()) for rows in ssn.tables.jobs.tasks[:3]]
    assert by_job[0] == by_job[1] != by_job[2]
    assert len(ssn.tables.classes) == 2
