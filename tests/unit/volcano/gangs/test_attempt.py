"""What one attempt to place a job finds out: answers of its queue, tasks without a node, and what it leaves behind."""

from __future__ import annotations

from pumice.api import Queue, Session, TaskRows, plugin, points
from pumice.framework.cycle.trace import AFTER, Kind, MakesRoom
from pumice.framework.plugin.filter_result import FitErrors
from pumice.model.blockers import RoomIsFree
from pumice.model.status import TaskStatus
from pumice.model.workloads.podgroup import SubGroupPolicy
from pumice.testing.build import cluster, node, pod, podgroup, pods, session
from pumice.volcano.gangs.attempt import OpenAttempt, discarded, promised

CONF = "tiers: [{plugins: [{name: gang}, {name: ALLOWS}]}]"
ERRORS = FitErrors(message="nowhere")


@plugin("two_only")
@points.allocatable
def two_only(ssn: Session, queue: Queue, tasks: TaskRows) -> int:
    """Queues take two tasks."""
    taken = int((ssn.tables.tasks.status == TaskStatus.ALLOCATED).sum())
    return min(max(0, 2 - taken), len(tasks))


@plugin("two_at_once")
@points.allocatable
def two_at_once(ssn: Session, queue: Queue, tasks: TaskRows) -> int:
    """Queues take two tasks, and then two more."""
    return min(2, len(tasks))


def opened(allows: str = "two_only") -> tuple[Session, int, list[int]]:
    """A job of four that waits beside one that runs."""
    old = podgroup("old", phase="Running"), pod("old-0", "old", on="n")
    objects = node("n", 9), old, podgroup("g", 2, phase="Inqueue"), pods("g", 4)
    ssn = session(cluster(*objects), CONF.replace("ALLOWS", allows), plugins=[two_only, two_at_once])
    job = list(ssn.tables.jobs.uids).index("ns/g")
    return ssn, job, ssn.tables.jobs.tasks[job].tolist()


def row_of(ssn: Session, name: str) -> int:
    return next(row for row, each in enumerate(ssn.tables.tasks.pods) if each is not None and each.name == name)


def test_a_job_without_a_queue_may_have_all_it_wants() -> None:
    ssn, job, rows = opened()
    trying = OpenAttempt(ssn, job)
    with ssn.statement() as stmt:
        assert trying.allowed(-1, rows, stmt).tasks == 4
        assert trying.end(stmt).asked == ()


def test_what_the_queue_was_asked_before_anything_was_placed_is_remembered() -> None:
    """Asked again later for what follows it has said nothing new as long as it allows what is left of that."""
    ssn, job, rows = opened()
    queue, trying = int(ssn.tables.jobs.queue[job]), OpenAttempt(ssn, job)
    with ssn.statement() as stmt:
        assert trying.allowed(queue, rows, stmt).tasks == 2
        trying.allowed(queue, rows, stmt)
        stmt.allocate(rows[:2], [0, 0])
        assert trying.allowed(queue, rows[2:], stmt).tasks == 0
        attempt = trying.end(stmt)
        assert [(each.tasks, each.allowed) for each in attempt.asked] == [(tuple(rows), 2)]
        assert not attempt.asked_again
        trying.allowed(queue, rows[3:], stmt)
        assert trying.end(stmt).asked_again, "of others than those that follow"


def test_an_answer_that_may_rest_on_placements_is_marked() -> None:
    ssn, job, rows = opened("two_at_once")
    queue, trying = int(ssn.tables.jobs.queue[job]), OpenAttempt(ssn, job)
    with ssn.statement() as stmt:
        assert trying.allowed(queue, rows, stmt).tasks == 2
        stmt.allocate(rows[:2], [0, 0])
        assert trying.allowed(queue, rows[2:], stmt).tasks == 2, "it had said that these are all"
        assert trying.end(stmt).asked_again


def test_errors_go_on_from_earlier_attempts_and_are_forgotten_by_sub_job() -> None:
    subs = [SubGroupPolicy("part", sub_group_size=1, match_label_keys=("part",))]
    members = [pod(f"g-{part}", "g", role=f"role-{part}", labels={"part": part}) for part in "ab"]
    ssn = session(cluster(node("n"), podgroup("g", 2, phase="Inqueue", sub_groups=subs), members))
    tasks, a, b = ssn.tables.tasks, row_of(ssn, "g-a"), row_of(ssn, "g-b")
    assert tasks.sub[a] != tasks.sub[b]
    ssn.trace.note(a, ERRORS)
    trying = OpenAttempt(ssn, int(tasks.job[a]))
    trying.fail(b, ERRORS)
    assert list(trying.errors) == [a, b]
    assert trying.failed_roles(int(tasks.sub[a])) == {int(tasks.role[a])}
    trying.forget(int(tasks.sub[a]))
    assert (trying.failed_roles(int(tasks.sub[a])), list(trying.errors)) == (set(), [b])
    assert list(ssn.trace.errors_of(int(tasks.job[a]))) == [a], "the trace keeps its own"


def test_a_promise_is_committed_and_says_who_goes_for_whom() -> None:
    ssn, job, rows = opened()
    old = row_of(ssn, "old-0")
    with ssn.statement() as stmt:
        stmt.evict([old], "make room")
        stmt.pipeline(rows[:2], [0, 0], evicted=True)
        promised(ssn, job, stmt)
    status = ssn.tables.tasks.status
    assert [int(status[row]) for row in (old, *rows[:2])] == [TaskStatus.RELEASING, *[TaskStatus.PIPELINED] * 2]
    said = [entry.finding for entry in ssn.trace.log if entry.subject == "ns/g"]  # type: ignore[union-attr]
    assert said == [MakesRoom(1, 2)]


def test_where_nobody_goes_nobody_is_said_to() -> None:
    ssn, job, rows = opened()
    with ssn.statement() as stmt:
        stmt.pipeline(rows[:2], [0, 0])
        promised(ssn, job, stmt)
    assert ssn.trace.log == []


def test_what_is_taken_back_is_remembered_with_what_was_before() -> None:
    ssn, job, rows = opened()
    before, old = ssn.world.digest(), row_of(ssn, "old-0")
    with ssn.statement() as stmt:
        stmt.pipeline(rows[:1], [0])
        ssn.trace.take(job, discarded(ssn, job, stmt))
    with ssn.statement() as stmt:
        stmt.evict([old], "make room")
        stmt.pipeline(rows[1:2], [0], evicted=True)
        attempt = discarded(ssn, job, stmt, (RoomIsFree(),))
    assert ssn.world.digest() == before, "nothing of it is left"
    found = [(op.kind, tuple(op.placement.rows), op.evicted) for op in attempt.undone]
    assert found == [(Kind.PIPELINE, (rows[0],), False), (Kind.PIPELINE, (rows[1],), True)], "and no eviction"
    assert (attempt.findings, AFTER[Kind.PIPELINE]) == ((RoomIsFree(),), TaskStatus.PIPELINED)
