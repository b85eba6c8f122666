"""What a cycle tells: in which order, of one or of many jobs, and what is known of tasks that found no node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.placement import Placement
from pumice.columns.tables import Tables
from pumice.framework.cycle.trace import (
    Admitted,
    Attempt,
    CycleTrace,
    Failure,
    Kind,
    LastTrial,
    Operation,
    Question,
)
from pumice.framework.plugin.errors import PluginFault
from pumice.framework.plugin.filter_result import FitErrors
from pumice.model.blockers import CAPACITY, NodeFilter, QueueLimit
from pumice.model.status import TaskStatus
from pumice.testing.build import cluster, node, podgroup, pods


def tables(*sizes: int) -> Tables:
    """A cluster with gangs g0, g1, … of so many waiting tasks each."""
    groups = [podgroup(f"g{i}", creation=float(i)) for i in range(len(sizes))]
    members = [pods(f"g{i}", size) for i, size in enumerate(sizes)]
    return cluster(node("n0"), node("n1"), groups, *members).snapshot().tables


def trace(*sizes: int) -> CycleTrace:
    return CycleTrace(tables(*sizes))


def full(cpus: int) -> FitErrors:
    return FitErrors((NodeFilter("", cpus, 2, "full"),), 2)


def failure(number: int, *errors: tuple[int, FitErrors], last_trial: LastTrial | None = None) -> Failure:
    return Failure(number, last_trial, errors, (), False, (), (), False)


def placed(kind: Kind, rows: list[int], nodes: list[int], **more: Any) -> Operation:
    return Operation(kind, Placement(rows, nodes), **more)


FULL = QueueLimit("default", CAPACITY)


# -- entries


def test_entries_come_in_order_with_the_action_of_the_moment() -> None:
    reports = trace(1, 1)
    reports.action = "enqueue"
    reports.tell("ns/g0", Admitted())
    reports.action = "allocate"
    reports.tell("ns/g1", FULL)
    assert [tuple(entry) for entry in reports.entries] == [
        ("enqueue", "ns/g0", Admitted()),
        ("allocate", "ns/g1", FULL),
    ]


def test_a_finding_about_many_jobs_is_one_about_each() -> None:
    reports = trace(1, 1, 1)
    reports.action = "enqueue"
    reports.tell("ns/x", Admitted())
    reports.tell_of_jobs(np.array([1, 2]), FULL)
    assert [tuple(entry) for entry in reports.entries] == [
        ("enqueue", "ns/x", Admitted()),
        ("enqueue", "ns/g1", FULL),
        ("enqueue", "ns/g2", FULL),
    ]


def test_a_fault_of_a_plugin_is_recorded_for_the_skipped_subject() -> None:
    reports = trace(1)
    reports.action = "allocate"
    reports.blame("ns/g0", PluginFault("mine", "predicate", "Mine.fits", "mine.py:12", "KeyError: 'x'"))
    (fault,) = reports.faults
    assert fault.text == "plugin mine, Mine.fits at predicate (mine.py:12): KeyError: 'x'"
    assert [tuple(entry) for entry in reports.entries] == [("allocate", "ns/g0", fault.blocker)]


# -- why tasks found no node


def test_a_note_is_of_one_task_and_the_last_one_counts() -> None:
    reports = trace(2, 1)
    assert reports.errors_of(0) == {}
    reports.note(1, full(1))
    reports.note(0, full(2))
    reports.note(1, full(2))
    assert list(reports.errors_of(0).items()) == [(1, full(2)), (0, full(2))], "in the order of trying"
    assert (reports.tried, reports.errors_of(1)) == ({0}, {})


def test_an_attempt_says_all_that_prevents_its_job_now() -> None:
    reports = trace(2)
    reports.note(0, full(1))
    reports.take(0, Attempt(errors=((1, full(2)),)))
    assert reports.errors_of(0) == {1: full(2)}, "the older reason is gone"


# -- what was taken back


def test_what_was_taken_back_last_counts() -> None:
    reports = trace(3)
    undone = (
        placed(Kind.PIPELINE, [2], [1], evicted=True),
        placed(Kind.ALLOCATE, [0, 1], [1, 0]),
        placed(Kind.ALLOCATE, [2], [0]),
    )
    assert reports.undone_of(0) is None
    reports.take(0, Attempt(undone=undone))
    last_trial = reports.undone_of(0)
    assert last_trial is not None
    assert last_trial.status.tolist() == [TaskStatus.ALLOCATED] * 3
    assert (last_trial.node.tolist(), last_trial.evicted.tolist()) == ([1, 0, 0], [False] * 3)


def test_what_was_placed_again_is_not_reported_as_undone() -> None:
    reports = trace(2)
    reports.take(0, Attempt(undone=(placed(Kind.ALLOCATE, [0, 1], [1, 1]),)))
    reports.take(0, Attempt(placed=(placed(Kind.ALLOCATE, [0], [0]),)))
    last_trial = reports.undone_of(0)
    assert last_trial is not None
    assert last_trial.status.tolist() == [-1, TaskStatus.ALLOCATED]


def test_a_trace_of_a_job_is_in_the_order_of_its_tasks() -> None:
    operations = (placed(Kind.EVICT, [7], [4]), placed(Kind.PIPELINE, [5], [6], evicted=True))
    position = {7: 0, 6: 1, 5: 2}
    last_trial = LastTrial.of(3, operations, lambda rows: np.array([position[row] for row in rows]))
    assert last_trial.status.tolist() == [TaskStatus.RELEASING, -1, TaskStatus.PIPELINED]
    assert (last_trial.node.tolist(), last_trial.evicted.tolist()) == ([4, -1, 6], [False, False, True])


# -- failures that several jobs share


def test_a_failure_befalls_several_jobs_in_one_word() -> None:
    found = tables(2, 2, 2)
    reports, rows = CycleTrace(found), found.jobs.tasks
    reports.fail(
        np.array([0, 2]), failure(7, (1, full(2)), last_trial=LastTrial.of(2, (placed(Kind.ALLOCATE, [0], [1]),)))
    )
    assert reports.failed_as[:3].tolist() == [7, 0, 7]
    for job in (0, 2):
        assert reports.errors_of(job) == {int(rows[job][1]): full(2)}
        last_trial = reports.undone_of(job)
        assert last_trial is not None and last_trial.status.tolist() == [TaskStatus.ALLOCATED, -1]
    assert (reports.errors_of(1), reports.undone_of(1), reports.tried) == ({}, None, set())


def test_failures_that_say_the_same_of_jobs_keep_apart_where_tasks_would_have_gone() -> None:
    """Else a user reads of a node that another gang would have got."""
    found = tables(1, 1)
    reports = CycleTrace(found)
    for job, on in ((0, 4), (1, 5)):
        reports.fail(np.array([job]), failure(7, last_trial=LastTrial.of(1, (placed(Kind.ALLOCATE, [0], [on]),))))
    nodes = [last_trial.node.tolist() for job in (0, 1) if (last_trial := reports.undone_of(job)) is not None]
    assert nodes == [[4], [5]]


def test_a_job_that_is_tried_again_has_notes_of_its_own_from_then_on() -> None:
    found = tables(2, 2)
    reports = CycleTrace(found)
    reports.fail(
        np.array([0, 1]), failure(7, (0, full(1)), last_trial=LastTrial.of(2, (placed(Kind.ALLOCATE, [1], [1]),)))
    )
    reports.take(0, Attempt(errors=((0, full(2)),)))
    assert reports.failed_as[:2].tolist() == [0, 7]
    assert (reports.errors_of(0), reports.tried) == ({0: full(2)}, {0})
    last_trial = reports.undone_of(0)
    assert last_trial is not None and last_trial.status.tolist() == [-1, TaskStatus.ALLOCATED], (
        "it was taken back nevertheless"
    )
    assert reports.errors_of(1) == {int(found.jobs.tasks[1][0]): full(1)}


def test_a_note_on_a_job_that_failed_like_others_keeps_what_was_known() -> None:
    found = tables(2, 2)
    reports = CycleTrace(found)
    reports.fail(np.array([0, 1]), failure(7, (0, full(1))))
    reports.note(1, full(2))
    assert reports.errors_of(0) == {0: full(1), 1: full(2)}
    assert reports.errors_of(1) == {int(found.jobs.tasks[1][0]): full(1)}


def test_an_attempt_is_a_value() -> None:
    asked = Question((0, 1), 1)
    assert Attempt(asked=(asked,)) == Attempt(asked=(Question((0, 1), 1),)) != Attempt()
    assert hash(Attempt(asked=(asked,)))


@pytest.mark.parametrize("count", [0, 3])
def test_a_trace_of_nothing(count: int) -> None:
    last_trial = LastTrial.of(count)
    assert [column.tolist() for column in last_trial] == [[-1] * count, [-1] * count, [False] * count]
