"""The ledger: what a task in each state means for every book, and what a move between states leaves. (Which moves a
language has: tests/unit/volcano/test_accounting.py.)"""

from __future__ import annotations

import numpy as np
import pytest

from pumice.columns.column import Versions, Writer
from pumice.columns.journal import Journal
from pumice.columns.ledger import BOOKS, Accounting, Ledger
from pumice.columns.placement import Placement
from pumice.columns.runs import TaskRun
from pumice.columns.snapshot import Snapshot
from pumice.columns.tables import Tables
from pumice.framework.cycle.session import Session
from pumice.model.status import TaskStatus
from pumice.testing.build import cluster, node, pod, podgroup, pods, session
from pumice.testing.moving import differing, moving_bytes
from pumice.volcano.accounting import ACCOUNTING

#: What one task of 1 cpu leaves on a node of 8, in cores; what its job holds then; whether the job waits for a node.
LEFT = """
            idle used releasing pipelined future holds waits
Pending       8    0      0         0        8     0     1
Allocated     7    1      0         0        7     1     0
Pipelined     8    0      0         1        7     0     0
Binding       7    1      0         0        7     1     0
Bound         7    1      0         0        7     1     0
Running       7    1      0         0        7     1     0
Releasing     7    1      1         0        8     0     0
Succeeded     7    1      0         0        7     0     0
Failed        7    1      0         0        7     0     0
Unknown       7    1      0         0        7     0     0
StuckInReleasing 7    1      0         0        7     0     0
"""
NOBODY = "tiers: []"
STATES = {status.label: status for status in TaskStatus}


def read(table: str) -> dict[str, dict[str, str]]:
    """Rows by name, cells by column."""
    head, *rows = [line.split() for line in table.strip().splitlines()]
    return {name: dict(zip(head, cells, strict=True)) for name, *cells in rows}


def opened(count: int = 1, **same: object) -> Session:
    """A gang of tasks of 1 cpu, and nodes n0 and n1 of 8."""
    return session(cluster(node("n0"), node("n1"), podgroup("g"), pods("g", count, **same)), NOBODY)


def move(ledger: Ledger, rows: list[int], status: TaskStatus, nodes: list[int]) -> None:
    ledger.move(TaskRun(ledger.tables, Placement(rows, nodes)), status)


def put(ssn: Session, row: int, status: TaskStatus, at: int) -> None:
    """Book a task anew, in any state."""
    book(ssn, [row], status, [at])


def book(ssn: Session, rows: list[int], status: TaskStatus, nodes: list[int]) -> None:
    """Take equal tasks out of the books, and enter them in any state."""
    ssn.ledger.leave(rows)
    for name, value in (("status", int(status)), ("node", nodes)):
        ssn.journal.put(ssn.tables.tasks[name], rows, value)
    ssn.ledger.enter(rows)


def moving_columns_of(ssn: Session) -> dict[str, bytes]:
    """Every byte that a move may change, less the stamps of rows, which are never those of before."""
    return {name: column.tobytes() for name, column in ssn.world.moving()}


def books(tables: Tables, at: int = 0) -> list[float]:
    """Cores in each book of a node: idle, used, releasing, pipelined, future."""
    found: list[float] = (tables.nodes.books[at, :, 0] / 1000).tolist()
    return found


def sums(tables: Tables) -> dict[str, object]:
    """What the job's sums say: tasks by state, cores held, tasks that wait for a node, tasks without request."""
    jobs, subs = tables.jobs, tables.subs
    counts = {TaskStatus(s).label: n for s, n in enumerate(jobs.counts[0].tolist()) if n}
    assert subs.counts[0].tolist() == jobs.counts[0].tolist()
    assert subs.best_effort[0] == jobs.best_effort[0]
    return counts | {
        "holds": jobs.allocated[0, 0] / 1000,
        "waits": int(jobs.waits[0]),
        "best effort": int(jobs.best_effort[0]),
    }


# -- moves


def test_the_table_knows_every_state() -> None:
    assert list(read(LEFT)) == list(STATES)


MOVED = [(before.label, after.label) for before, to in ACCOUNTING.moves.items() for after in sorted(to)]


@pytest.mark.parametrize(("before", "after"), MOVED, ids=[f"{before} to {after}" for before, after in MOVED])
def test_a_move_leaves_the_books_of_the_new_state(before: str, after: str) -> None:
    """And the journal takes it back to the last byte."""
    ssn = opened()
    put(ssn, 0, STATES[before], -1 if before == "Pending" else 0)
    start, mark = moving_bytes(ssn), ssn.journal.mark()
    move(ssn.ledger, [0], STATES[after], [-1 if after == "Pending" else 0])
    *row, holds, waits = map(float, read(LEFT)[after].values())
    assert books(ssn.tables) == row
    assert sums(ssn.tables) == {after: 1, "holds": holds, "waits": waits, "best effort": 0}
    assert ssn.tables.tasks.node[0] == (-1 if after == "Pending" else 0)
    ssn.journal.rollback(mark)
    assert not differing(start, moving_bytes(ssn))


@pytest.mark.parametrize("state", STATES)
def test_books_by_state(state: str) -> None:
    """Of a task that comes in this state, and goes."""
    ssn = opened()
    empty = moving_columns_of(ssn)
    put(ssn, 0, STATES[state], -1 if state == "Pending" else 0)
    *row, holds, waits = map(float, read(LEFT)[state].values())
    assert books(ssn.tables) == row
    assert sums(ssn.tables) == {state: 1, "holds": holds, "waits": waits, "best effort": 0}
    assert books(ssn.tables, 1) == [8, 0, 0, 0, 8], "the other node is left alone"
    put(ssn, 0, TaskStatus.PENDING, -1)
    assert not differing(empty, moving_columns_of(ssn))


def test_a_task_without_node_is_in_the_books_of_its_job_alone() -> None:
    ssn = opened()
    put(ssn, 0, TaskStatus.SUCCEEDED, -1)
    assert books(ssn.tables) == books(ssn.tables, 1) == [8, 0, 0, 0, 8]
    assert sums(ssn.tables) == {"Succeeded": 1, "holds": 0, "waits": 0, "best effort": 0}


def test_equal_tasks_move_together() -> None:
    ssn = opened(4)
    move(ssn.ledger, [0, 1, 2], TaskStatus.ALLOCATED, [0, 1, 0])
    assert (books(ssn.tables, 0), books(ssn.tables, 1)) == ([6, 2, 0, 0, 6], [7, 1, 0, 0, 7])
    assert sums(ssn.tables) == {"Pending": 1, "Allocated": 3, "holds": 3, "waits": 1, "best effort": 0}
    assert ssn.tables.tasks.node[:4].tolist() == [0, 1, 0, -1]
    move(ssn.ledger, [1, 2], TaskStatus.PENDING, [-1, -1])
    assert (books(ssn.tables, 0), books(ssn.tables, 1)) == ([7, 1, 0, 0, 7], [8, 0, 0, 0, 8])
    assert ssn.tables.tasks.node[:4].tolist() == [0, -1, -1, -1]


def test_one_move_of_many_is_many_moves_of_one() -> None:
    together, apart = opened(3), opened(3)
    move(together.ledger, [0, 1, 2], TaskStatus.PIPELINED, [1, 1, 0])
    for row, at in enumerate((1, 1, 0)):
        move(apart.ledger, [row], TaskStatus.PIPELINED, [at])
    assert not differing(moving_columns_of(together), moving_columns_of(apart))


def test_tasks_of_several_classes_move_together() -> None:
    """Of one sub-job and in one state; one of them asks for nothing, another waits for its queue's gate."""
    gated = {"gates": ("scheduling.volcano.sh/queue-allocation-gate",)}
    members = [
        pod("g-0", "g"),
        pod("g-1", "g", cpu=3),
        pod("g-2", "g", cpu=0, memory=0),
        pod("g-3", "g", cpu=2, **gated),
    ]
    state = cluster(node("n0"), node("n1"), podgroup("g"), members)
    together, apart = session(state, NOBODY), session(state, NOBODY)
    before = moving_columns_of(together)
    rows, nodes = together.tables.jobs.tasks[0].tolist(), [0, 1, 0, 0]
    move(together.ledger, rows, TaskStatus.ALLOCATED, nodes)
    for row, at in zip(rows, nodes, strict=True):
        move(apart.ledger, [row], TaskStatus.ALLOCATED, [at])
    assert not differing(moving_columns_of(apart), moving_columns_of(together))
    assert sums(together.tables) == {"Allocated": 4, "holds": 6, "waits": 0, "best effort": 0}
    move(together.ledger, rows, TaskStatus.PENDING, [-1] * 4)
    assert not differing(before, moving_columns_of(together))


def test_what_is_only_held_takes_room_and_nothing_else() -> None:
    """While nodes are chosen for the next tasks, those that have theirs are in the books of these."""
    held, moved = opened(3), opened(3)
    before = sums(held.tables)
    held.ledger.hold(TaskRun(held.tables, Placement([0, 1], [0, 0])))
    move(moved.ledger, [0, 1], TaskStatus.ALLOCATED, [0, 0])
    assert books(held.tables) == books(moved.tables) == [6, 2, 0, 0, 6]
    assert sums(held.tables) == before
    assert held.tables.tasks.status[:2].tolist() == [TaskStatus.PENDING] * 2


def test_many_enter_and_leave_as_one_would() -> None:
    together, apart = opened(3), opened(3)
    book(together, [0, 1, 2], TaskStatus.RUNNING, [1, -1, 1])
    for row, at in enumerate((1, -1, 1)):
        put(apart, row, TaskStatus.RUNNING, at)
    assert not differing(moving_columns_of(together), moving_columns_of(apart))
    assert (books(together.tables, 0), books(together.tables, 1)) == ([8, 0, 0, 0, 8], [6, 2, 0, 0, 6])


@pytest.mark.parametrize(
    ("status", "changed"),
    [
        pytest.param(TaskStatus.BINDING, [], id="the books stay as they are"),
        pytest.param(TaskStatus.PENDING, [0], id="the books change"),
    ],
)
def test_only_nodes_whose_books_change_have_another_stamp(status: TaskStatus, changed: list[int]) -> None:
    ssn = opened()
    move(ssn.ledger, [0], TaskStatus.ALLOCATED, [0])
    before, version = ssn.tables.nodes.stamps.copy(), ssn.tables.nodes["books"].version
    move(ssn.ledger, [0], status, [-1 if status is TaskStatus.PENDING else 0])
    assert (ssn.tables.nodes.stamps != before).nonzero()[0].tolist() == changed
    assert (ssn.tables.nodes["books"].version != version) is bool(changed)


@pytest.mark.parametrize(
    ("same", "waits", "best_effort"),
    [
        pytest.param({}, 2, 0, id="plain"),
        pytest.param({"cpu": 0, "memory": 0}, 0, 2, id="no request: backfill's"),
        pytest.param({"gates": ("example.com/wait",)}, 0, 0, id="gated by others"),
        pytest.param({"gates": ("scheduling.volcano.sh/queue-allocation-gate",)}, 2, 0, id="gated by its queue alone"),
    ],
)
def test_which_pending_tasks_wait(same: dict[str, object], waits: int, best_effort: int) -> None:
    """They no longer do once one of them is placed, and do again once that is taken back."""
    ssn = opened(2, **same)
    assert sums(ssn.tables) == {"Pending": 2, "holds": 0, "waits": waits, "best effort": best_effort}
    move(ssn.ledger, [1], TaskStatus.ALLOCATED, [0])
    left = sums(ssn.tables)
    assert (left["waits"], left["best effort"]) == (waits / 2, best_effort / 2)
    move(ssn.ledger, [1], TaskStatus.PENDING, [-1])
    assert sums(ssn.tables) == {"Pending": 2, "holds": 0, "waits": waits, "best effort": best_effort}


def test_a_pod_of_nobody_fills_its_node_and_no_job() -> None:
    ssn = session(cluster(node("n0"), podgroup("g"), pods("g", 1), pod("alone", cpu=3, on="n0")), NOBODY)
    assert books(ssn.tables) == [5, 3, 0, 0, 5]
    assert sums(ssn.tables) == {"Pending": 1, "holds": 0, "waits": 1, "best effort": 0}


def test_fresh_nodes_are_booked_without_counting_twice() -> None:
    """Place tasks of any kind at once, each with its own status."""
    ssn = session(cluster(node("n0"), node("n1"), podgroup("g"), pods("g", 2), pods("g", 1, first=2, cpu=3)), NOBODY)
    move(ssn.ledger, [0], TaskStatus.ALLOCATED, [0])
    move(ssn.ledger, [1], TaskStatus.PIPELINED, [1])
    move(ssn.ledger, [2], TaskStatus.ALLOCATED, [0])
    booked, before = ssn.tables.nodes.books.copy(), sums(ssn.tables)
    ssn.journal.put(ssn.tables.nodes["books"], [0, 1], opened().tables.nodes.books)
    ssn.ledger.rebook(np.array([0, 1, 2]))
    assert (ssn.tables.nodes.books == booked).all()
    assert sums(ssn.tables) == before


@pytest.mark.parametrize("before", [s for s in STATES if s != "Pending"])
@pytest.mark.parametrize("after", [s for s in STATES if s != "Pending"])
def test_what_happens_to_a_task_on_its_node(before: str, after: str) -> None:
    """Events move tasks between any states; a session moves them as its language says."""
    shifted, booked = opened(2), opened(2)
    book(shifted, [0, 1], STATES[before], [0, 1])
    shifted.ledger.shift([0, 1], STATES[after])
    book(booked, [0, 1], STATES[after], [0, 1])
    assert not differing(moving_columns_of(shifted), moving_columns_of(booked))


# -- what a dialect says


def test_a_move_that_the_language_does_not_have_is_an_assertion_and_moves_nothing() -> None:
    ssn = opened()
    before = moving_bytes(ssn)
    with pytest.raises(AssertionError, match=r"illegal move of ns/g-0: Pending -> Running"):
        move(ssn.ledger, [0], TaskStatus.RUNNING, [0])
    assert not differing(before, moving_bytes(ssn))


def test_a_dialect_says_which_moves_there_are() -> None:
    ssn = opened()
    always = Accounting({status: frozenset(TaskStatus) for status in TaskStatus})
    ledger = Ledger(ssn.tables, ssn.journal, always)
    for status in (TaskStatus.ALLOCATED, TaskStatus.RUNNING, TaskStatus.RELEASING, TaskStatus.PIPELINED):
        move(ledger, [0], status, [0])
    assert books(ssn.tables) == [8, 0, 0, 1, 7]
    with pytest.raises(AssertionError, match="illegal move"):
        move(ssn.ledger, [0], TaskStatus.RUNNING, [0])


def test_a_dialect_says_what_a_state_does_to_its_node() -> None:
    """As here, where a promise takes what is idle."""
    ssn, ours = opened(), BOOKS.copy()
    ours[TaskStatus.PIPELINED] = (-1, 0, 0, 1, -1)
    ledger = Ledger(ssn.tables, ssn.journal, Accounting(ACCOUNTING.moves, ours))
    move(ledger, [0], TaskStatus.PIPELINED, [0])
    assert books(ssn.tables) == [7, 0, 0, 1, 7]
    move(ledger, [0], TaskStatus.PENDING, [-1])
    assert books(ssn.tables) == [8, 0, 0, 0, 8]


# -- the writers


def test_the_store_and_a_session_write_the_same() -> None:
    ours, theirs = opened(3), opened(3)
    direct = Ledger(theirs.tables, Writer(theirs.tables.versions), ACCOUNTING)
    for ledger in (ours.ledger, direct):
        move(ledger, [0, 2], TaskStatus.ALLOCATED, [1, 0])
        move(ledger, [0], TaskStatus.BINDING, [1])
        ledger.leave([1])
    assert not differing(moving_columns_of(ours), moving_columns_of(theirs))


def test_a_session_writes_on_columns_of_its_own() -> None:
    snapshot: Snapshot = cluster(node("n0"), podgroup("g"), pods("g", 1)).snapshot()
    one, other = session(snapshot, NOBODY), session(snapshot, NOBODY)
    move(one.ledger, [0], TaskStatus.ALLOCATED, [0])
    assert (books(one.tables), books(other.tables), books(snapshot.tables)) == (
        [7, 1, 0, 0, 7],
        [8, 0, 0, 0, 8],
        [8, 0, 0, 0, 8],
    )


@pytest.mark.parametrize("writer", [Journal, Writer])
def test_both_writers_raise_versions_that_were_never_given(writer: type[Journal | Writer]) -> None:
    ssn, column = opened(), opened().tables.jobs["waits"]
    versions = Versions(10**6)
    writer(versions).put(column, 0, 5)
    assert (column.version, column.array[0]) == (10**6, 5)
    writer(versions).add(column, 0, -1)
    assert (column.version, column.array[0], ssn.tables.jobs.waits[0]) == (10**6 + 1, 4, 1)
