"""A job is forgotten when neither its PodGroup nor a pod of it is left, in whichever order they go."""

from __future__ import annotations

from itertools import permutations

import pytest

from pumice.model.decisions import Bind
from pumice.model.events import Event, Gone, Seen
from pumice.model.pod import Pod
from pumice.model.workloads.podgroup import PodGroup
from pumice.state.store import Store
from pumice.testing.build import node, pod, podgroup, pods

_ENDS: list[Event] = [Gone(PodGroup, "ns/g"), Gone(Pod, "ns/g-0"), Gone(Pod, "ns/g-1")]


def store_of_a_job() -> Store:
    store = Store()
    for obj in (node("n1"), podgroup("g", 2), *pods("g", 2)):
        store.apply(Seen(obj))
    store.snapshot()
    return store


def is_known(store: Store) -> bool:
    return "ns/g" in store.snapshot().tables.jobs.uids


@pytest.mark.parametrize("ends", [pytest.param(order, id=str(n)) for n, order in enumerate(permutations(_ENDS))])
def test_the_last_end_forgets_the_job(ends: tuple[Event, ...]) -> None:
    store = store_of_a_job()
    store.assume([Bind("ns/g-0", "ns-g-0", "n1", "ns/g")])
    for event in ends:
        assert is_known(store)
        store.apply(event)
    assert not is_known(store)


def test_finished_pods_keep_their_job_until_they_are_deleted() -> None:
    store = store_of_a_job()
    store.apply(Gone(PodGroup, "ns/g"))
    store.apply(Gone(Pod, "ns/g-0"))
    store.apply(Seen(pod("g-1", "g", on="n1", phase="Succeeded")))
    assert is_known(store)
    store.apply(Gone(Pod, "ns/g-1"))
    assert not is_known(store)


def test_a_new_job_of_the_name_begins_anew_and_rows_are_used_again() -> None:
    store = store_of_a_job()
    rows = len(store.snapshot().tables.jobs.uids)
    for _ in range(50):
        for event in _ENDS:
            store.apply(event)
        store.snapshot()
        for obj in (podgroup("g", 2), *pods("g", 2)):
            store.apply(Seen(obj))
        tables = store.snapshot().tables
    row = list(tables.jobs.uids).index("ns/g")
    assert (len(tables.jobs.uids), tables.jobs.size[row], int(tables.jobs.counts[row].sum())) == (rows, 2, 2)
