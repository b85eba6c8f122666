"""The ledger: which moves between task states there are, and what a task in each state means for every book."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.columns.journal import ChangeLog, Journal
from pumice.columns.ledger import DirectWriter, Ledger, tally
from pumice.columns.tables import Tables
from pumice.framework.session import Session
from pumice.model.status import TaskStatus
from pumice.testing.build import cluster, node, pod, podgroup, pods, session
from pumice.testing.moving import differing, moving_bytes

#: From each state, a row, to each, a column: x is a move that there is.
MOVES = """
            Pending Allocated Pipelined Binding Bound Running Releasing Succeeded Failed Unknown
Pending        .        x         x        .      .      .        .         .        .      .
Allocated      x        .         .        x      .      .        .         .        .      .
Pipelined      x        .         .        .      .      .        .         .        .      .
Binding        x        .         .        .      .      .        x         .        .      .
Bound          .        .         .        .      .      .        x         .        .      .
Running        .        .         .        .      .      .        x         .        .      .
Releasing      .        .         .        x      x      x        .         .        .      .
Succeeded      .        .         .        .      .      .        .         .        .      .
Failed         .        .         .        .      .      .        .         .        .      .
Unknown        .        .         .        .      .      .        .         .        .      .
"""
#: What one task of 1 cpu leaves on a node of 8, in cores; what its job holds then; whether the job waits for a node.
BOOKS = """
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


def put(ssn: Session, row: int, status: TaskStatus, at: int) -> None:
    """Book a task anew, in any state."""
    ssn.ledger.leave(row)
    ssn.ledger.enter(row, status, at)


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


@pytest.mark.parametrize("before", STATES)
def test_which_moves_there_are(before: str) -> None:
    """Every pair of states, both ways."""
    for after, cell in read(MOVES)[before].items():
        ssn = opened()
        start, end = STATES[before], STATES[after]
        put(ssn, 0, start, -1 if before == "Pending" else 0)
        unmoved = moving_bytes(ssn)
        if cell == "x":
            ssn.ledger.move([0], end, [-1 if after == "Pending" else 0])
            assert ssn.tables.tasks.status[0] == end
        else:
            with pytest.raises(AssertionError, match=f"illegal move of ns/g-0: {before} -> {after}"):
                ssn.ledger.move([0], end, [0])
            assert not differing(unmoved, moving_bytes(ssn))


def test_the_table_knows_every_state() -> None:
    assert list(read(MOVES)) == list(STATES) == list(read(BOOKS))
    assert all(list(row) == list(STATES) for row in read(MOVES).values())


MOVED = [(before, after) for before, row in read(MOVES).items() for after, cell in row.items() if cell == "x"]


@pytest.mark.parametrize(("before", "after"), MOVED, ids=[f"{before} to {after}" for before, after in MOVED])
def test_a_move_leaves_the_books_of_the_new_state(before: str, after: str) -> None:
    """And the journal takes it back to the last byte."""
    ssn = opened()
    put(ssn, 0, STATES[before], -1 if before == "Pending" else 0)
    start, mark = moving_bytes(ssn), ssn.journal.mark()
    ssn.ledger.move([0], STATES[after], [-1 if after == "Pending" else 0])
    *row, holds, waits = map(float, read(BOOKS)[after].values())
    assert books(ssn.tables) == row
    assert sums(ssn.tables) == {after: 1, "holds": holds, "waits": waits, "best effort": 0}
    assert ssn.tables.tasks.node[0] == (-1 if after == "Pending" else 0)
    ssn.journal.rollback(mark)
    assert not differing(start, moving_bytes(ssn))


@pytest.mark.parametrize("state", STATES)
def test_books_by_state(state: str) -> None:
    """Of a task that comes in this state, and goes."""
    ssn = opened()
    empty = moving_bytes(ssn)
    ssn.ledger.leave(0)
    ssn.ledger.enter(0, STATES[state], -1 if state == "Pending" else 0)
    *row, holds, waits = map(float, read(BOOKS)[state].values())
    assert books(ssn.tables) == row
    assert sums(ssn.tables) == {state: 1, "holds": holds, "waits": waits, "best effort": 0}
    assert books(ssn.tables, 1) == [8, 0, 0, 0, 8], "the other node is left alone"
    ssn.ledger.leave(0)
    ssn.ledger.enter(0, TaskStatus.PENDING, -1)
    assert not differing(empty, moving_bytes(ssn))


def test_a_task_without_node_is_in_the_books_of_its_job_alone() -> None:
    ssn = opened()
    put(ssn, 0, TaskStatus.SUCCEEDED, -1)
    assert books(ssn.tables) == books(ssn.tables, 1) == [8, 0, 0, 0, 8]
    assert sums(ssn.tables) == {"Succeeded": 1, "holds": 0, "waits": 0, "best effort": 0}


def test_equal_tasks_move_together() -> None:
    ssn = opened(4)
    ssn.ledger.move([0, 1, 2], TaskStatus.ALLOCATED, [0, 1, 0])
    assert (books(ssn.tables, 0), books(ssn.tables, 1)) == ([6, 2, 0, 0, 6], [7, 1, 0, 0, 7])
    assert sums(ssn.tables) == {"Pending": 1, "Allocated": 3, "holds": 3, "waits": 1, "best effort": 0}
    assert ssn.tables.tasks.node[:4].tolist() == [0, 1, 0, -1]
    ssn.ledger.move([1, 2], TaskStatus.PENDING, [-1, -1])
    assert (books(ssn.tables, 0), books(ssn.tables, 1)) == ([7, 1, 0, 0, 7], [8, 0, 0, 0, 8])
    assert ssn.tables.tasks.node[:4].tolist() == [0, -1, -1, -1]


def test_one_move_of_many_is_many_moves_of_one() -> None:
    together, apart = opened(3), opened(3)
    together.ledger.move([0, 1, 2], TaskStatus.PIPELINED, [1, 1, 0])
    for row, at in enumerate((1, 1, 0)):
        apart.ledger.move([row], TaskStatus.PIPELINED, [at])
    assert not differing(moving_bytes(together), moving_bytes(apart))


@pytest.mark.parametrize(
    ("status", "changed"),
    [
        pytest.param(TaskStatus.BINDING, [], id="the books stay as they are"),
        pytest.param(TaskStatus.PENDING, [0], id="the books change"),
    ],
)
def test_readers_hear_of_nodes_whose_books_change(status: TaskStatus, changed: list[int]) -> None:
    ssn = opened()
    ssn.ledger.move([0], TaskStatus.ALLOCATED, [0])
    log = ssn.tables.nodes.changed
    seen = len(log.rows)
    ssn.ledger.move([0], status, [-1 if status is TaskStatus.PENDING else 0])
    assert log.since(seen) == changed


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
    ssn.ledger.move([1], TaskStatus.ALLOCATED, [0])
    left = sums(ssn.tables)
    assert (left["waits"], left["best effort"]) == (waits / 2, best_effort / 2)
    ssn.ledger.move([1], TaskStatus.PENDING, [-1])
    assert sums(ssn.tables) == {"Pending": 2, "holds": 0, "waits": waits, "best effort": best_effort}


def test_a_pod_of_nobody_fills_its_node_and_no_job() -> None:
    ssn = session(cluster(node("n0"), podgroup("g"), pods("g", 1), pod("alone", cpu=3, on="n0")), NOBODY)
    assert books(ssn.tables) == [5, 3, 0, 0, 5]
    assert sums(ssn.tables) == {"Pending": 1, "holds": 0, "waits": 1, "best effort": 0}


def test_a_fresh_node_table_is_booked_without_counting_twice() -> None:
    ssn = opened()
    ssn.ledger.move([0], TaskStatus.ALLOCATED, [0])
    before = sums(ssn.tables)
    ssn.tables.nodes.books[:] = opened().tables.nodes.books
    ssn.ledger.rebook(0, 1)
    assert (books(ssn.tables, 0), books(ssn.tables, 1)) == ([8, 0, 0, 0, 8], [7, 1, 0, 0, 7])
    ssn.ledger.rebook(0, -1)
    assert (ssn.tables.tasks.node[0], books(ssn.tables, 1)) == (-1, [7, 1, 0, 0, 7])
    assert sums(ssn.tables) == before


# -- the writers


def test_the_store_and_a_session_write_the_same() -> None:
    ours, theirs = opened(3), opened(3)
    direct = Ledger(theirs.tables, DirectWriter())
    for ledger in (ours.ledger, direct):
        ledger.move([0, 2], TaskStatus.ALLOCATED, [1, 0])
        ledger.move([0], TaskStatus.BINDING, [1])
        ledger.leave(1)
    assert not differing(moving_bytes(ours), moving_bytes(theirs))
    assert (ours.tables.nodes.changed.rows, theirs.tables.nodes.changed.rows) == ([1, 0], [])


def test_both_writers_put_and_add() -> None:
    for writer in (Journal(), DirectWriter()):
        column, wide = np.zeros(3), np.zeros((2, 2))
        writer.put(column, [0, 2], 5.0)
        writer.add(column, 0, -1.0)
        writer.add(wide, np.array([0, 1]), np.array([[1.0], [2.0]]))
        writer.touch(ChangeLog(), [1])
        assert (column.tolist(), wide.tolist()) == ([4, 0, 5], [[1, 1], [2, 2]])


@pytest.mark.parametrize(
    ("rows", "distinct", "times"),
    [
        pytest.param([], [], None, id="none"),
        pytest.param([4], [4], None, id="one"),
        pytest.param([4, 1, 7], [4, 1, 7], None, id="each once"),
        pytest.param([4, 1, 4, 4, 0], [4, 1, 0], [3, 1, 1], id="in order of appearance"),
    ],
)
def test_tally(rows: list[int], distinct: list[int], times: list[float] | None) -> None:
    found = tally(rows)
    assert (found.rows, found.where.tolist()) == (distinct, distinct)
    assert (None if found.times is None else found.times.tolist()) == times


def test_what_a_tally_makes_of_a_change() -> None:
    change = np.array([[1.0, 2.0]])
    assert tally([3, 5, 3]).of_each(change).tolist() == [[[2, 4]], [[1, 2]]]
    assert tally([3, 5]).of_each(change).tolist() == [[1, 2]]
