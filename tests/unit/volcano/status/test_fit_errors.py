"""The texts that users read about tasks that found no node, and about their jobs, byte for byte."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.framework.cycle.session import Session
from pumice.framework.cycle.trace import Attempt
from pumice.framework.plugin.filter_result import FitErrors, Unfit
from pumice.model.blockers import NodeFilter, Shortage
from pumice.model.workloads.podgroup import OUT_OF_REACH
from pumice.testing.build import cluster, node, pod, podgroup, pods, run, session
from pumice.volcano.status.fit_errors import FitTexts, error_text

NOBODY = "tiers: []"


def opened(count: int, minimum: int, running: int = 0) -> Session:
    """Gang g on two nodes; its last pods run."""
    members = pods("g", count - running) + pods("g", running, first=count - running, on="n1")
    return session(cluster(node("n0"), node("n1"), podgroup("g", minimum), members), NOBODY)


def texts(ssn: Session) -> FitTexts:
    return FitTexts(ssn.tables, ssn.trace)


def row(ssn: Session, name: str) -> int:
    return [p.name if p else "" for p in ssn.tables.tasks.pods].index(name)


def full(cpus: int) -> FitErrors:
    return FitErrors((short(cpus, 2),), 2)


def short(count: int, nodes: int) -> Shortage:
    return Shortage("cpu", 1000.0, 1, 0.0, 0.0, count, nodes)


def against(nodes: int, **counts: int) -> tuple[NodeFilter, ...]:
    return tuple(NodeFilter("mine", count, nodes, reason) for reason, count in counts.items())


ALLOCATED = "Pod ns/g-0 can possibly be assigned to n1, once minAvailable is satisfied"
PIPELINED = "Pod ns/g-0 can possibly be assigned to n1, once resource is released and minAvailable is satisfied"


# -- a text for one task


@pytest.mark.parametrize(
    ("errors", "text"),
    [
        pytest.param(FitErrors(), "0/0 nodes are unavailable", id="no node"),
        pytest.param(FitErrors(node_count=3), "0/3 nodes are unavailable", id="no reason"),
        pytest.param(
            FitErrors((short(2, 3),), 3),
            "0/3 nodes are unavailable: 2 Insufficient cpu.",
            id="one reason",
        ),
        pytest.param(
            FitErrors(against(14, b=1, a=1, c=10, z=2), 14),
            "0/14 nodes are unavailable: 1 a, 1 b, 10 c, 2 z.",
            id="sorted as text, the count first",
        ),
        pytest.param(FitErrors(message="queue is full", node_count=3), "queue is full", id="a message of its own"),
        pytest.param(
            FitErrors(against(3, a=1), 3, message="no room"), "no room: 1 a.", id="a message before the reasons"
        ),
        pytest.param(
            FitErrors(against(1, a=1), 1, hypernode="rack-1"),
            "In hyperNode rack-1: 0/1 nodes are unavailable: 1 a.",
            id="in a hypernode",
        ),
        pytest.param(
            FitErrors((*against(3, a=1), NodeFilter("other", 2, 3, "a")), 3),
            "0/3 nodes are unavailable: 3 a.",
            id="of two plugins",
        ),
        pytest.param(
            FitErrors.everywhere(Unfit("never"), 2), "0/2 nodes are unavailable: 2 never.", id="the same everywhere"
        ),
        pytest.param(FitErrors.everywhere(Unfit("never"), 0), "0/0 nodes are unavailable", id="everywhere is nowhere"),
    ],
)
def test_text_of_fit_errors(errors: FitErrors, text: str) -> None:
    assert error_text(opened(1, 1).tables, 0, errors) == text


def test_text_of_a_task_that_was_not_tried() -> None:
    ssn = session(cluster(podgroup("g"), pod("p", "g", role="worker")), NOBODY)
    reports = "Task p with role spec worker has already predicated failed, skip"
    assert error_text(ssn.tables, 0, FitErrors(skipped=True)) == reports


# -- the reasons of a task and a job


@pytest.mark.parametrize("undone", [False, True], ids=["kept", "undone"])
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
def test_the_reason_of_a_task(operation: Any, reason: tuple[str, str, str], undone: bool) -> None:
    """A task has the same reason whether its placement was kept or undone."""
    ssn = opened(2, 2)
    stmt = ssn.statement()
    operation(stmt, row(ssn, "g-0"))
    if undone:
        stmt.discard()
        ssn.trace.take(0, Attempt(undone=tuple(stmt.undone)))
    assert texts(ssn).task_reason(row(ssn, "g-0")) == reason
    assert list(ssn.trace.undone_promises()) == ([row(ssn, "g-0")] if undone and reason[2] else [])


def test_the_reason_of_a_waiting_task_is_its_note() -> None:
    ssn = opened(2, 2)
    ssn.trace.note(row(ssn, "g-0"), full(2))
    reports = ("Unschedulable", "0/2 nodes are unavailable: 2 Insufficient cpu.", "")
    assert texts(ssn).task_reason(row(ssn, "g-0")) == reports
    assert 0 in ssn.trace.tried, "its job's status has to be looked at"


def test_the_reason_of_a_running_task_is_its_state() -> None:
    ssn = opened(2, 2, running=1)
    assert texts(ssn).task_reason(row(ssn, "g-1")) == ("Running", "", "")


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
def test_the_reason_of_a_job(count: int, minimum: int, running: int, tried: str, text: str) -> None:
    """``tried``: of its first tasks, which an undone statement had allocated or pipelined."""
    ssn = opened(count, minimum, running)
    with ssn.statement() as stmt:
        for i, how in enumerate(tried):
            (stmt.allocate if how == "a" else stmt.pipeline)([row(ssn, f"g-{i}")], [0])
    ssn.trace.take(0, Attempt(undone=tuple(stmt.undone)))
    assert texts(ssn).job_text(0) == text
    assert texts(ssn).fared(0).placed == tried.count("a")


def test_the_origin_is_the_first_task_that_failed_in_task_order() -> None:
    ssn = opened(3, 3)
    assert texts(ssn).origin(0) == ""
    for name, cpus in (("g-2", 1), ("g-1", 2)):
        ssn.trace.note(row(ssn, name), full(cpus))
    assert texts(ssn).job_text(0) == (
        "pod group is not ready, 3 Pending, 3 minAvailable; Pending: 3 Unschedulable."
        " Origin reason is g-1: 0/2 nodes are unavailable: 2 Insufficient cpu."
    )


def test_how_a_job_fared_is_not_taken_from_another_that_fared_otherwise() -> None:
    groups = [podgroup("a", 2), podgroup("b", 2, creation=1.0), podgroup("c", 1, creation=2.0)]
    ssn = session(cluster(node("n0"), groups, [p for g in "abc" for p in pods(g, 2)]), NOBODY)
    with ssn.statement() as stmt:
        stmt.allocate(ssn.tables.jobs.tasks[1].tolist(), [0, 0])
    ssn.trace.take(1, Attempt(undone=tuple(stmt.undone)))
    found = {ssn.tables.jobs.uids[job]: texts(ssn).job_text(job) for job in range(3)}
    assert found == {
        "ns/a": "pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Unschedulable",
        "ns/b": "pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Schedulable",
        "ns/c": "pod group is not ready, 1 minAvailable, 2 Pending; Pending: 2 Unschedulable",
    }
    assert [texts(ssn).fared(job).placed for job in range(3)] == [0, 2, 0]


# -- notices


def test_notices_go_to_waiting_pods_without_gates() -> None:
    waiting = [pod("a", "g"), pod("gated", "g", gates=("example.com/wait",)), pod("runs", "g", on="n"), pod("b", "g")]
    ran = run(cluster(node("n"), podgroup("g", 4), waiting), NOBODY, actions="backfill")
    assert [(notice.pod, notice.reason) for notice in ran.outcome.notices()] == [
        ("ns/a", "Unschedulable"),
        ("ns/b", "Unschedulable"),
    ]


@pytest.mark.parametrize(
    ("cpu", "message"),
    [
        pytest.param(9, "0/2 nodes are unavailable: 2 Insufficient cpu.", id="what prevents the task itself"),
        pytest.param(
            5,
            "Pod ns/g-0 can possibly be assigned to n0, once minAvailable is satisfied",
            id="that it would have had a node",
        ),
    ],
)
def test_a_notice_lists_the_objections_to_the_pod(cpu: int, message: str) -> None:
    state = cluster(node("n0"), node("n1"), podgroup("g", 3, phase="Inqueue"), pods("g", 3, cpu=cpu))
    first = next(run(state, "tiers: [{plugins: [{name: gang}]}]", actions="allocate").outcome.notices())
    assert (first.pod, first.reason, first.message) == ("ns/g-0", first.reason, message)


def test_a_pod_without_a_reason_of_its_own_has_that_of_its_job() -> None:
    (notice,) = run(cluster(podgroup("g"), pods("g", 1)), NOBODY, actions="backfill").outcome.notices()
    assert notice.message == "pod group is not ready, 1 Pending, 1 minAvailable; Pending: 1 Unschedulable"


def test_a_podgroup_that_cannot_be_read_says_so_and_not_a_number_out_of_reach() -> None:
    group = replace(podgroup("g"), min_member=OUT_OF_REACH, unparsable=("spec.minMember: found x, wanted an integer",))
    ssn = session(cluster(node("n0"), group, pods("g", 1)), NOBODY)
    assert texts(ssn).job_text(0) == "PodGroup ns/g cannot be read: spec.minMember: found x, wanted an integer"
