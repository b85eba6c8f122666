"""Snapshots are values: no event and no session changes one, and those of one store share what did not change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.snapshot import Snapshot
from pumice.columns.tables import Tables
from pumice.model.decisions import Bind, Writes
from pumice.model.events import Gone, Seen
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.model.queue import Queue
from pumice.model.workloads.podgroup import PodGroup
from pumice.state.store import Store
from pumice.testing.build import cluster, hypernode, node, pod, podgroup, pods, queue, resource, run, session

TABLES = ("nodes", "tasks", "jobs", "subs", "queues", "queue_statuses", "classes")


def store() -> Store:
    return cluster(
        node("n0"),
        node("n1"),
        hypernode("h", 1, ["n0"]),
        queue("q"),
        podgroup("g", 2, "q", phase="Inqueue"),
        pods("g", 2),
    )


def every_byte(tables: Tables) -> dict[str, Any]:
    """All of a snapshot: columns with versions and stamps, and the values that are replaced as a whole."""
    found: dict[str, Any] = {"nodes": tables.nodes.facts, "tree": tables.tree}
    for name in TABLES:
        table = getattr(tables, name)
        found[f"{name} stamps"] = None if table.stamps is None else table.stamps.tolist()
        for column, each in table.columns.items():
            content = list(map(_value, each.array)) if each.array.dtype == object else each.array.tobytes()
            found[f"{name}.{column}"] = content, each.version
    return found


def _value(item: Any) -> Any:
    return item.tobytes() if isinstance(item, np.ndarray) else item


EVENTS = {
    "a pod comes": lambda s: s.apply(Seen(pod("new", "g"))),
    "a pod runs": lambda s: s.apply(Seen(pod("g-0", "g", on="n1"))),
    "a pod goes": lambda s: s.apply(Gone(Pod, "ns/g-0")),
    "a pod is of another class": lambda s: s.apply(Seen(pod("g-0", "g", cpu=3))),
    "a bind is sent": lambda s: s.assume([Bind("ns/g-0", "ns-g-0", "n0", "ns/g")]),
    "a group changes": lambda s: s.apply(Seen(podgroup("g", 1, "q", phase="Running"))),
    "a group goes": lambda s: s.apply(Gone(PodGroup, "ns/g")),
    "a node comes": lambda s: s.apply(Seen(node("n2"))),
    "a node goes": lambda s: s.apply(Gone(Node, "n0")),
    "a queue changes": lambda s: s.apply(Seen(queue("q", 5))),
    "a queue says what it holds": lambda s: s.apply(Seen(queue("q", allocated=resource(1)))),
    "a queue goes": lambda s: s.apply(Gone(Queue, "q")),
    "a new resource": lambda s: s.apply(Seen(queue("q", guarantee=resource(**{"example.com/new": 1})))),
    "many pods": lambda s: [s.apply(Seen(each)) for each in pods("other", 200)],
    "a place is remembered": lambda s: s.remember(Writes(job_hypernodes={0: 0}, sub_hypernodes={0: 0})),
}


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_a_later_event_leaves_an_earlier_snapshot_as_it_was(event: Any) -> None:
    state = store()
    earlier = state.snapshot()
    before = every_byte(earlier.tables)
    event(state)
    later = state.snapshot()
    assert every_byte(earlier.tables) == before
    assert every_byte(later.tables) != before, "the event is one that a snapshot tells of"


def test_a_cycle_leaves_its_snapshot_as_it_was() -> None:
    snapshot = store().snapshot()
    before = every_byte(snapshot.tables)
    first = run(snapshot)
    assert len(first.binds) == 2
    assert every_byte(snapshot.tables) == before
    assert run(snapshot).decisions == first.decisions


def test_nobody_can_write_on_a_snapshot() -> None:
    tables = store().snapshot().tables
    for name in TABLES:
        for column in getattr(tables, name).columns.values():
            for array in (column.data, column.array):
                with pytest.raises(ValueError, match="read-only"):
                    array[:0] = array[:0]


def test_snapshots_share_what_did_not_change() -> None:
    state = store()
    first = state.snapshot().tables
    state.assume([Bind("ns/g-0", "ns-g-0", "n0", "ns/g")])
    second = state.snapshot().tables
    unchanged = {
        f"{name}.{column}"
        for name in TABLES
        for column in getattr(first, name).columns
        if np.shares_memory(getattr(first, name)[column].array, getattr(second, name)[column].array)
    }
    assert {"tasks.pods", "tasks.job", "jobs.groups", "classes.req", "queues.weight"} <= unchanged
    assert not {"tasks.status", "tasks.node", "nodes.books", "nodes.view", "jobs.counts"} & unchanged


def test_a_snapshot_after_no_event_is_the_same_cluster() -> None:
    state = store()
    first, second = state.snapshot(), state.snapshot()
    assert every_byte(first.tables) == every_byte(second.tables)
    for name in TABLES:
        assert getattr(first.tables, name) is getattr(second.tables, name), "nothing is copied"


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_the_version_of_all_tables_tells_that_something_was_written(event: Any) -> None:
    state = store()
    before = state.snapshot().tables.version
    assert state.snapshot().tables.version == before
    event(state)
    assert state.snapshot().tables.version > before


def test_each_snapshot_of_a_store_names_another_session() -> None:
    state = store()
    assert [state.snapshot().uid for _ in range(3)] == ["session-1", "session-2", "session-3"]
    assert Snapshot(state.snapshot().tables).uid == "session-0"


def test_sessions_on_one_snapshot_do_not_see_each_other() -> None:
    snapshot = store().snapshot()
    one, other = session(snapshot), session(snapshot)
    stmt = one.statement()
    stmt.allocate(one.tables.jobs.tasks[0].tolist(), [0, 0])
    stmt.commit()
    assert one.tables.nodes.idle[0, 0] == 6000
    assert other.tables.nodes.idle[0, 0] == snapshot.tables.nodes.idle[0, 0] == 8000
