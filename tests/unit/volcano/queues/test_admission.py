"""Admission, asked once more: once a job runs its promise ends, and somebody else may be admitted."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api import F64, Job, Queue, Session, Vote, plugin, points
from pumice.testing.build import Ran, cluster, node, podgroup, pods, queue, resource, run

DEFAULT = "actions: '%s'\ntiers: [{plugins: [{name: gang}, {name: overcommit}, {name: proportion}]}]"
ALONE = "actions: enqueue\ntiers: [{plugins: [{name: %s}]}]"
ONE_NODE = node("n", 10)
STARTS = [podgroup("s", 1, phase="Inqueue", min_resources=resource(4)), *pods("s", 1, cpu=4, on="n")]
ADMITTED = [podgroup("w", 1, phase="Inqueue"), *pods("w", 1, cpu=9)]


def wants(name: str, cpu: int) -> Any:
    """A job that waits for admission."""
    return podgroup(name, min_resources=resource(cpu))


def rejected(found: Ran) -> list[str]:
    return [text for rows, text in found.outcome.trace.rejected for _ in rows]


@pytest.mark.parametrize(
    ("objects", "actions", "again"),
    [
        pytest.param([*STARTS, wants("w", 5)], "enqueue", True, id="which is what the next one may have"),
        pytest.param([*STARTS, wants("w", 9)], "enqueue", False, id="which is not enough for anybody"),
        pytest.param([*STARTS, wants("w", 9), wants("v", 8)], "enqueue", True, id="which is enough for one of two"),
        pytest.param([*STARTS, wants("w", 8), wants("v", 1)], "enqueue", True, id="for who is left"),
        pytest.param(STARTS, "enqueue", False, id="and nobody waits"),
        pytest.param([*STARTS, *ADMITTED], "allocate", False, id="and admission is not asked for"),
        pytest.param([podgroup("s", 1), wants("w", 9)], "enqueue", True, id="another phase"),
        pytest.param(
            [podgroup("s", 1, phase="Running"), *pods("s", 1, cpu=4, on="n"), wants("w", 9)],
            "enqueue",
            False,
            id="none",
        ),
    ],
)
def test_whether_the_next_cycle_may_answer_otherwise(objects: list[Any], actions: str, again: bool) -> None:
    """Twelve cores may be promised, of which the job that starts holds four, and is promised four until it is said to
    run."""
    found = run(cluster(ONE_NODE, objects), DEFAULT % actions)
    assert found.outcome.writes.ask_again == again


def test_what_is_said_of_who_waits_may_change_too() -> None:
    """Of two things that stand against it the cluster's comes first, as long as it does."""
    queued = [queue("default", capability=resource(8)), *STARTS, wants("w", 7)]
    found = run(cluster(ONE_NODE, queued), DEFAULT % "enqueue")
    assert (rejected(found), found.outcome.writes.ask_again) == (
        ["resource in cluster is overused: overused cpu"],
        True,
    )


class Refuses:
    """Nobody is admitted, however little is asked for."""

    def __init__(self, ssn: Session) -> None: ...

    @points.job_enqueueable
    def job_enqueueable(self, queue: Queue, asked: F64) -> Vote | str:
        return "no"


class Fails(Refuses):
    """It hears of jobs that start."""

    @points.job_started
    def job_started(self, job: Job) -> None:
        raise ValueError("of what?")


class Judges:
    """It looks at single jobs."""

    def __init__(self, ssn: Session) -> None: ...

    @points.job_enqueueable
    def job_enqueueable(self, job: Job) -> Vote | str:
        return "no"


@pytest.mark.parametrize("asked", [Refuses, Fails, Judges])
def test_it_is_asked_again_where_plugins_do_not_say_what_a_start_changes(asked: type[Any]) -> None:
    """A fault of a hook is the next cycle's to tell."""
    plugged = plugin("asked", keeps="python" if asked is Judges else "columns")(asked)
    found = run(cluster(ONE_NODE, STARTS, wants("w", 9)), ALONE % "asked", plugins=[plugged])
    assert (found.outcome.writes.ask_again, rejected(found)) == (True, ["no"])


def test_what_is_tried_out_leaves_no_trace() -> None:
    figures = run(cluster(ONE_NODE, STARTS, wants("w", 9)), DEFAULT % "enqueue").outcome.figures
    assert (
        figures["queue.inqueue"].tolist()
        == run(cluster(ONE_NODE, STARTS), DEFAULT % "enqueue").outcome.figures["queue.inqueue"].tolist()
    )
