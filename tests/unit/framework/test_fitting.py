"""Why a task found no node: what filters say, what is counted, and the texts that users read."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from pumice.columns.rows import NodeRows
from pumice.columns.views import Job, Node, Task, TaskClass
from pumice.framework import points
from pumice.framework.feasible import fit_errors
from pumice.framework.plugin import plugin
from pumice.framework.session import Session
from pumice.framework.verdict import Code, FitErrors, Unfit, Verdict, gather, histogram
from pumice.testing.build import cluster, node, pod, podgroup, pods, session

NOBODY = "tiers: []"

# -- a text for one task


@pytest.mark.parametrize(
    ("errors", "text"),
    [
        pytest.param(FitErrors(), "0/0 nodes are unavailable", id="no node"),
        pytest.param(FitErrors(node_count=3), "0/3 nodes are unavailable", id="no reason"),
        pytest.param(
            FitErrors(Counter({"Insufficient cpu": 2}), 3),
            "0/3 nodes are unavailable: 2 Insufficient cpu.",
            id="one reason",
        ),
        pytest.param(
            FitErrors(Counter({"b": 1, "a": 1, "c": 10, "z": 2}), 14),
            "0/14 nodes are unavailable: 1 a, 1 b, 10 c, 2 z.",
            id="sorted as text, the count first",
        ),
        pytest.param(FitErrors(message="queue is full", node_count=3), "queue is full", id="a message of its own"),
        pytest.param(
            FitErrors(Counter({"a": 1}), 3, message="no room"), "no room: 1 a.", id="a message before the reasons"
        ),
        pytest.param(
            FitErrors(Counter({"a": 1}), 1, hypernode="rack-1"),
            "In hyperNode rack-1: 0/1 nodes are unavailable: 1 a.",
            id="in a hypernode",
        ),
        pytest.param(
            FitErrors.everywhere(Unfit("never"), 2), "0/2 nodes are unavailable: 2 never.", id="the same everywhere"
        ),
        pytest.param(FitErrors.everywhere(Unfit("never"), 0), "0/0 nodes are unavailable", id="everywhere is nowhere"),
    ],
)
def test_text_of_fit_errors(errors: FitErrors, text: str) -> None:
    assert errors.text == text


def test_reasons_are_counted_over_nodes() -> None:
    both = (Unfit("a"), Unfit("b"))
    assert histogram([(both, 2), ((Unfit("b"), Unfit("")), 3), ((), 4)]) == {"a": 2, "b": 5}


# -- verdicts


def reasons(verdict: Verdict) -> list[str]:
    """What stands against each row."""
    return [" ".join(unfit.reason for unfit in verdict.why[code]) for code in verdict.codes]


def verdict(*per_row: str) -> Verdict:
    """One verdict; each row's reasons, in a word each."""
    distinct = [""] + sorted(set(per_row) - {""})
    codes = np.array([distinct.index(each) for each in per_row], dtype=np.int32)
    return Verdict(codes, tuple(tuple(Unfit(word) for word in each.split()) for each in distinct))


@pytest.mark.parametrize(
    ("verdicts", "together"),
    [
        pytest.param([], ["", "", ""], id="nobody"),
        pytest.param([("a", "", "b c")], ["a", "", "b c"], id="one"),
        pytest.param([("a", "", ""), ("x", "y", "")], ["a x", "y", ""], id="in their order"),
        pytest.param([("x", "x", ""), ("a", "b", "b")], ["x a", "x b", "b"], id="whatever sorts first"),
        pytest.param([("a", "", ""), ("", "", ""), ("x", "x", "a")], ["a x", "x", "a"], id="three"),
        pytest.param([("a", "b c", ""), ("d", "d", "e f")], ["a d", "b c d", "e f"], id="several reasons each"),
    ],
)
def test_gather(verdicts: list[tuple[str, ...]], together: list[str]) -> None:
    found = gather([verdict(*each) for each in verdicts], 3)
    assert reasons(found) == together
    assert found.codes.dtype == np.int32
    assert found.why[0] == ()


def test_one_reason_against_what_does_not_fit() -> None:
    assert reasons(Verdict.of(np.array([True, False, True]), Unfit("full"))) == ["", "full", ""]


# -- what stands against a task, filter by filter


def picky(name: str, wanted: str, code: Code) -> Any:
    """A filter that lets only the nodes pass whose name has a letter."""

    @plugin(name)
    @points.predicate
    def hook(ssn: Session, cls: TaskClass, node: Node) -> Unfit | None:
        return None if wanted in node.name else Unfit(f"no {wanted}", code)

    return hook


def test_the_first_filter_that_objects_counts_and_room_comes_before_all() -> None:
    conf = "tiers: [{plugins: [{name: first}, {name: second}]}]"
    plugins = [picky("first", "a", Code.UNRESOLVABLE), picky("second", "b", Code.UNSCHEDULABLE)]
    machines = [node("ab"), node("a"), node("b"), node("c"), node("small-a", cpu=0.5)]
    ssn = session(cluster(machines, podgroup("g"), pods("g", 1)), conf, plugins=plugins)
    cls = Task(ssn.tables, 0).cls
    names = ssn.tables.nodes.facts.names
    two = (Unfit("late", Code.UNRESOLVABLE), Unfit("long"))
    late = Verdict(np.array([name in ("a", "ab") for name in names], dtype=np.int32), ((), two))
    errors = fit_errors(ssn, cls, ssn.all_nodes, [late])
    assert errors.histogram == {"late": 1, "long": 1, "no b": 1, "no a": 2, "Insufficient cpu": 1}
    assert errors.node_rows is not None and errors.codes is not None
    found = {names[row]: Code(code).name for row, code in zip(errors.node_rows, errors.codes, strict=True)}
    assert found == {
        "a": "UNSCHEDULABLE",
        "ab": "UNRESOLVABLE",  # the worse of two reasons
        "b": "UNRESOLVABLE",
        "c": "UNRESOLVABLE",
        "small-a": "UNSCHEDULABLE",
    }
    assert fit_errors(ssn, cls, ssn.all_nodes, [], resources=False).histogram == {"no b": 2, "no a": 2}
    some = NodeRows(ssn.tables, np.array([names.index("c")]))
    assert fit_errors(ssn, cls, some, [], "rack").text == "In hyperNode rack: 0/1 nodes are unavailable: 1 no a."


@pytest.mark.parametrize(
    ("ask", "short"),
    [
        pytest.param({"cpu": 9}, "Insufficient cpu", id="cpu"),
        pytest.param({"memory": "33Gi"}, "Insufficient memory", id="memory"),
        pytest.param({"gpu": 1}, "Insufficient nvidia.com/gpu", id="a scalar"),
        pytest.param({"cpu": 9, "memory": "33Gi", "gpu": 1}, "Insufficient cpu", id="the first of several"),
    ],
)
def test_what_is_short(ask: dict[str, Any], short: str) -> None:
    ssn = session(cluster(node("n"), podgroup("g"), pods("g", 1, **ask)), NOBODY)
    assert fit_errors(ssn, Task(ssn.tables, 0).cls, ssn.all_nodes, []).histogram == {short: 1}


# -- notes, and what a whole job is told


def opened(count: int, minimum: int, running: int = 0) -> Session:
    """Gang g on two nodes; its last pods run."""
    members = pods("g", count - running) + pods("g", running, first=count - running, on="n1")
    return session(cluster(node("n0"), node("n1"), podgroup("g", minimum), members), NOBODY)


def row(ssn: Session, name: str) -> int:
    return [p.name if p else "" for p in ssn.tables.tasks.pods].index(name)


def full(cpus: int) -> FitErrors:
    return FitErrors(Counter({"Insufficient cpu": cpus}), 2)


ALLOCATED = "Pod ns/g-0 can possibly be assigned to n1, once minAvailable is satisfied"
PIPELINED = "Pod ns/g-0 can possibly be assigned to n1, once resource is released and minAvailable is satisfied"


@pytest.mark.parametrize("undone", [False, True], ids=["standing", "undone"])
@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        pytest.param(
            lambda stmt, task: stmt.allocate([task], [1]), ("Schedulable", ALLOCATED, ""), id="it would have a node"
        ),
        pytest.param(
            lambda stmt, task: stmt.pipeline([task], [1]), ("Unschedulable", PIPELINED, ""), id="once others have left"
        ),
        pytest.param(
            lambda stmt, task: stmt.pipeline([task], [1], evicted=True),
            ("Unschedulable", PIPELINED, "n1"),
            id="nominated, once its victims have left",
        ),
        pytest.param(lambda stmt, task: None, ("Unschedulable", "", ""), id="nothing was tried"),
    ],
)
def test_what_a_task_is_told(operation: Any, reason: tuple[str, str, str], undone: bool) -> None:
    """The same, whether the try stands or was undone."""
    ssn = opened(2, 2)
    stmt = ssn.statement()
    operation(stmt, row(ssn, "g-0"))
    if undone:
        stmt.discard()
    assert ssn.fit_notes.task_reason(row(ssn, "g-0")) == reason


def test_what_a_waiting_task_is_told_is_its_note() -> None:
    ssn = opened(2, 2)
    ssn.fit_notes.note(row(ssn, "g-0"), full(2))
    told = ("Unschedulable", "0/2 nodes are unavailable: 2 Insufficient cpu.", "")
    assert ssn.fit_notes.task_reason(row(ssn, "g-0")) == told
    assert ssn.touched[0], "its job's status has to be looked at"


def test_a_task_that_runs_is_told_its_state() -> None:
    ssn = opened(2, 2, running=1)
    assert ssn.fit_notes.task_reason(row(ssn, "g-1")) == ("Running", "", "")


@pytest.mark.parametrize(
    ("count", "minimum", "running", "tried", "text"),
    [
        pytest.param(
            3,
            3,
            0,
            "",
            "pod group is not ready, 3 Pending, 3 minAvailable; Pending: 3 Unschedulable",
            id="none tried",
        ),
        pytest.param(
            3,
            3,
            0,
            "aa",
            "pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Unschedulable, 2 Schedulable",
            id="two had nodes",
        ),
        pytest.param(
            3,
            3,
            0,
            "ap",
            "pod group is not ready, 3 Pending, 3 minAvailable; Pending: 1 Schedulable, 2 Unschedulable",
            id="a promise is no node yet",
        ),
        pytest.param(
            2,
            3,
            1,
            "",
            "pod group is not ready, 1 Pending, 1 Running, 3 minAvailable; Pending: 1 Unschedulable",
            id="one runs",
        ),
        pytest.param(2, 1, 2, "", "pod group is ready, 1 minAvailable, 2 Running", id="ready"),
        pytest.param(
            2,
            1,
            1,
            "",
            "pod group is ready, 1 Pending, 1 Running, 1 minAvailable; Pending: 1 Unschedulable",
            id="ready, and one more waits",
        ),
    ],
)
def test_what_a_job_is_told(count: int, minimum: int, running: int, tried: str, text: str) -> None:
    """``tried``: of its first tasks, which an undone statement had allocated or pipelined."""
    ssn = opened(count, minimum, running)
    with ssn.statement() as stmt:
        for i, how in enumerate(tried):
            (stmt.allocate if how == "a" else stmt.pipeline)([row(ssn, f"g-{i}")], [0])
    assert ssn.fit_notes.job_text(0) == text
    assert ssn.fit_notes.fared(0).placed == tried.count("a")


def test_the_origin_is_the_first_task_that_failed_in_task_order() -> None:
    ssn = opened(3, 3)
    assert ssn.fit_notes.origin(0) == ""
    for name, cpus in (("g-2", 1), ("g-1", 2)):
        ssn.fit_notes.note(row(ssn, name), full(cpus))
    assert ssn.fit_notes.job_text(0) == (
        "pod group is not ready, 3 Pending, 3 minAvailable; Pending: 3 Unschedulable."
        " Origin reason is g-1: 0/2 nodes are unavailable: 2 Insufficient cpu."
    )


def test_a_later_note_replaces_an_earlier_one() -> None:
    ssn = opened(1, 1)
    ssn.fit_notes.note(0, full(1))
    ssn.fit_notes.note(0, full(2))
    assert ssn.fit_notes.of(0) == full(2)


def test_how_a_job_fared_is_not_taken_from_another_that_fared_otherwise() -> None:
    groups = [podgroup("a", 2), podgroup("b", 2, creation=1.0), podgroup("c", 1, creation=2.0)]
    ssn = session(cluster(node("n0"), groups, [p for g in "abc" for p in pods(g, 2)]), NOBODY)
    with ssn.statement() as stmt:
        stmt.allocate(ssn.tables.jobs.tasks[1].tolist(), [0, 0])
    found = {ssn.tables.jobs.uids[job]: ssn.fit_notes.job_text(job) for job in range(3)}
    assert found == {
        "ns/a": "pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Unschedulable",
        "ns/b": "pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Schedulable",
        "ns/c": "pod group is not ready, 1 minAvailable, 2 Pending; Pending: 2 Unschedulable",
    }
    assert [ssn.fit_notes.fared(job).placed for job in range(3)] == [0, 2, 0]


def test_which_notes_are_forgotten() -> None:
    roles = [pod("m", "g", role="master"), pod("w-0", "g", role="worker"), pod("w-1", "g", role="worker")]
    ssn = session(cluster(node("n"), podgroup("g", 3), roles), NOBODY)
    (sub,) = Job(ssn.tables, 0).sub_jobs
    assert ssn.fit_notes.failed_roles(sub) == set()
    for name in ("w-0", "w-1"):
        ssn.fit_notes.note(row(ssn, name), full(1))
    assert {ssn.tables.roles[role] for role in ssn.fit_notes.failed_roles(sub)} == {"worker"}
    ssn.fit_notes.reset_sub(sub)
    assert (ssn.fit_notes.of(row(ssn, "w-0")), ssn.fit_notes.failed_roles(sub)) == (None, set())
    ssn.fit_notes.note(row(ssn, "m"), full(1))
    ssn.fit_notes.reset_job(0)
    assert ssn.fit_notes.of(row(ssn, "m")) is None
