"""Decisions in flight, in the store: assumed until confirmed, overtaken or undone."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.columns.tables import Tables
from pumice.model.decisions import Bind, Evict
from pumice.model.events import Event, Gone, Seen, Undone
from pumice.model.pod import Pod
from pumice.model.status import TaskStatus
from pumice.state.store import Store
from pumice.testing.build import node, pod, podgroup

_WAITING = pod("p", "g", cpu=2)
_RUNNING = pod("p", "g", cpu=2, on="n1")
_BIND = Bind(_WAITING.key, _WAITING.uid, "n1", "ns/g")
_EVICT = Evict(_RUNNING.key, _RUNNING.uid, "n1", "ns/g", "preempt")


def store_of(what: Pod) -> Store:
    store = Store()
    for obj in (node("n1", cpu=8), podgroup("g"), what):
        store.apply(Seen(obj))
    store.snapshot()
    return store


def state_of(store: Store) -> tuple[TaskStatus, float]:
    """The state of the one task, and the milli-cpu that its node has used."""
    tables, row = task_of(store)
    return TaskStatus(int(tables.tasks.status[row])), float(tables.nodes.used[0][0])


def task_of(store: Store) -> tuple[Tables, int]:
    """The one task by its row."""
    tables = store.snapshot().tables
    return tables, [pod.key if pod else "" for pod in tables.tasks.pods].index("ns/p")


@pytest.mark.parametrize(
    ("event", "state"),
    [
        pytest.param(Undone("ns/p", "ns-p"), (TaskStatus.PENDING, 0.0), id="undone"),
        pytest.param(Undone("ns/p", "another"), (TaskStatus.BINDING, 2000.0), id="undone, another's"),
        pytest.param(Undone("ns/nobody", "x"), (TaskStatus.BINDING, 2000.0), id="undone, unknown"),
        pytest.param(Seen(replace(_WAITING, labels={"a": "b"})), (TaskStatus.BINDING, 2000.0), id="other terms"),
        pytest.param(Seen(replace(_WAITING, resource_version="9")), (TaskStatus.BINDING, 2000.0), id="same terms"),
        pytest.param(Seen(replace(_WAITING, node_name="n1")), (TaskStatus.BOUND, 2000.0), id="confirmed"),
        pytest.param(Seen(replace(_WAITING, node_name="n9")), (TaskStatus.BOUND, 0.0), id="bound elsewhere"),
        pytest.param(Seen(replace(_WAITING, phase="Failed")), (TaskStatus.FAILED, 0.0), id="failed before"),
        pytest.param(Seen(replace(_WAITING, deletion=1.0)), (TaskStatus.RELEASING, 0.0), id="deleted before"),
    ],
)
def test_a_bind_in_flight(event: Event, state: tuple[TaskStatus, float]) -> None:
    store = store_of(_WAITING)
    store.assume([_BIND])
    assert state_of(store) == (TaskStatus.BINDING, 2000.0)
    store.apply(event)
    assert state_of(store) == state


@pytest.mark.parametrize(
    ("event", "status"),
    [
        pytest.param(Undone("ns/p", "ns-p"), TaskStatus.RUNNING, id="undone"),
        pytest.param(Seen(replace(_RUNNING, labels={"a": "b"})), TaskStatus.RELEASING, id="its condition was written"),
        pytest.param(Seen(replace(_RUNNING, deletion=1.0)), TaskStatus.RELEASING, id="confirmed"),
        pytest.param(Seen(replace(_RUNNING, phase="Succeeded")), TaskStatus.SUCCEEDED, id="ended by itself"),
        pytest.param(Seen(replace(_RUNNING, uid="another")), TaskStatus.RUNNING, id="another of its name"),
    ],
)
def test_an_eviction_in_flight(event: Event, status: TaskStatus) -> None:
    store = store_of(_RUNNING)
    store.assume([_EVICT])
    assert state_of(store)[0] is TaskStatus.RELEASING
    store.apply(event)
    assert state_of(store)[0] is status


@pytest.mark.parametrize("read", [False, True], ids=["let go", "read still"])
def test_what_a_cycle_left_is_copied_only_where_somebody_reads_it_when_something_happens(read: bool) -> None:
    store = store_of(_WAITING)
    tables = store.snapshot().tables
    memory, left = tables.tasks.status, tables.fork()
    store.assume([_BIND], left)
    del tables
    if not read:
        del left
    status, used = state_of(store)
    assert (status, used) == (TaskStatus.BINDING, 2000.0)
    assert np.shares_memory(store.snapshot().tables.tasks.status, memory) is not read
    if read:
        assert TaskStatus(int(left.tasks.status[0])) is TaskStatus.PENDING and left.nodes.used[0][0] == 0.0


def test_what_was_sent_first_is_counted_first() -> None:
    """Whatever comes next: another decision, or the pod's end."""
    store = store_of(_WAITING)
    store.assume([_BIND])
    store.assume([Evict(_WAITING.key, _WAITING.uid, "n1", "ns/g", "preempt")])
    assert state_of(store) == (TaskStatus.RELEASING, 2000.0)
    store = store_of(_WAITING)
    store.assume([_BIND])
    store.apply(Gone(Pod, _WAITING.key))
    assert not store.snapshot().tables.nodes.used.any()
    assert store.snapshot().tables.tasks.alive.sum() == 0


def test_news_after_undone_counts() -> None:
    """A pod that changed while its bind was in flight is, when given back, what it became."""
    store = store_of(_WAITING)
    store.assume([_BIND])
    store.apply(Seen(replace(_WAITING, nominated_node="n1")))
    store.apply(Undone("ns/p", "ns-p"))
    assert state_of(store) == (TaskStatus.PENDING, 0.0)
    tables, row = task_of(store)
    assert tables.tasks.nominated[row] == 0
