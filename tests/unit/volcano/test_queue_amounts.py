"""What queues hold and ask for: the same with a memory of earlier sessions as without, whatever happens in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pumice.framework.memo import Memo
from pumice.framework.session import Session
from pumice.model.events import Gone, Seen
from pumice.model.pod import Pod
from pumice.runtime.loop import ListPlanner
from pumice.state.store import Store
from pumice.testing.build import cluster, node, pod, podgroup, pods, policy, queue, resource
from pumice.volcano.queue_amounts import held_by_queue, queue_amounts

POLICY = policy("actions: allocate\ntiers: [{plugins: [{name: proportion}, {name: drf}]}]")


def opened(store: Store, memo: Memo) -> Session:
    ssn = Session(store.snapshot(), POLICY, 0.0, ListPlanner(), memo)
    ssn.open()
    return ssn


def figures(ssn: Session) -> dict[str, Any]:
    amounts, held, tables = queue_amounts(ssn), held_by_queue(ssn), ssn.tables
    found = {name: getattr(amounts, name).tolist() for name in ("allocated", "elastic", "request", "inqueue")}
    found |= {"held": held.allocated.tolist(), "jobs": tables.jobs.alive.tolist()}
    return found | {name: column.array.tolist() for name, column in ssn.world.columns.items()}


def nothing(store: Store) -> None: ...


def a_job_comes(store: Store) -> None:
    store.apply(Seen(podgroup("new", 1, "b", min_resources=resource(1), creation=2.0)))


def its_pod_comes(store: Store) -> None:
    a_job_comes(store)
    store.apply(Seen(pod("new", "new", 2)))


def a_pod_goes(store: Store) -> None:
    store.apply(Gone(Pod, "ns/runs-0"))


def a_job_changes_queues(store: Store) -> None:
    store.apply(Seen(podgroup("runs", 1, "b", phase="Running", min_resources=resource(1))))


def a_resource_comes(store: Store) -> None:
    store.apply(Seen(node("gpus", cpu=4, gpu=8)))


def a_queue_comes(store: Store) -> None:
    store.apply(Seen(queue("c", 3)))


@pytest.mark.parametrize("runs", [0, 2], ids=["nobody holds anything", "one job does"])
@pytest.mark.parametrize(
    "happens",
    [nothing, a_job_comes, its_pod_comes, a_pod_goes, a_job_changes_queues, a_resource_comes, a_queue_comes],
)
def test_amounts_are_those_of_now(happens: Callable[[Store], None], runs: int) -> None:
    group = podgroup("runs", 1, "a", phase="Running", min_resources=resource(1))
    waits = podgroup("waits", 1, "a", phase="Inqueue", creation=1.0), pods("waits", 1)
    holds = group, pods("runs", runs, on="n", phase="Running")
    store, memo = cluster(node("n", cpu=8), queue("a"), queue("b", 2), *holds, *waits), Memo()
    opened(store, memo).close()
    happens(store)
    assert figures(opened(store, memo)) == figures(opened(store, Memo(keeps=False)))
