"""What queues hold, ask for and were promised: the same with a memory of earlier sessions as without, whatever happens
in between, and the same job by job as for many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from pumice.framework.cycle.session import Session
from pumice.framework.memo import Memo
from pumice.model.events import Gone, Seen
from pumice.model.pod import Pod
from pumice.runtime.loop import ListPlanner
from pumice.state.store import Store
from pumice.testing.build import cluster, node, pod, podgroup, pods, policy, queue, resource
from pumice.volcano.queues.amounts import QueueAmounts, held_by_queues, queue_amounts

POLICY = policy("actions: allocate\ntiers: [{plugins: [{name: proportion}, {name: drf}]}]")


def opened(store: Store, memo: Memo) -> Session:
    ssn = Session(store.snapshot(), POLICY, 0.0, ListPlanner(), memo)
    ssn.open()
    return ssn


def figures(ssn: Session) -> dict[str, Any]:
    amounts = queue_amounts(ssn)
    found = {name: getattr(amounts, name).tolist() for name in QueueAmounts._fields}
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


def test_where_there_is_no_queue_there_is_nothing_to_sum() -> None:
    ssn = opened(Store(), Memo())
    amounts = queue_amounts(ssn)
    assert amounts.allocated.shape == amounts.request.shape == (0, len(ssn.tables.axis))
    assert amounts.has_jobs.shape == (0,)


def opened_on(*members: Any, phase: str = "Inqueue", count: int = 1, cpu: int = 4) -> Session:
    group = podgroup("g", count, phase=phase, min_resources=resource(cpu))
    return opened(cluster(node("n", cpu=20, gpu=4), group, *members), Memo())


@pytest.mark.parametrize(
    ("phase", "runs", "inqueue", "claimed"),
    [
        pytest.param("Inqueue", 1, 3, 4, id="admitted"),
        pytest.param("Pending", 1, 0, 0, id="not yet"),
        pytest.param("Running", 2, 2, 2, id="running with its minimum"),
        pytest.param("Running", 1, 0, 0, id="running with less"),
    ],
)
def test_whose_minimum_counts_as_promised(phase: str, runs: int, inqueue: int, claimed: int) -> None:
    amounts = queue_amounts(opened_on(pods("g", runs, on="n"), phase=phase, count=2))
    assert (amounts.inqueue[0, 0], amounts.claimed[0, 0]) == (inqueue * 1000, claimed * 1000)


@pytest.mark.parametrize(
    ("members", "wanted"),
    [
        pytest.param([], 4, id="all of it"),
        pytest.param(pods("g", 1, cpu=3, on="n"), 1, id="less what it holds"),
        pytest.param(pods("g", 1, cpu=9, on="n"), 0, id="never below nothing"),
        pytest.param(pods("g", 1, cpu=3, gates=("mine",)), 1, id="less what gates hold"),
    ],
)
def test_what_a_job_still_wants(members: list[Any], wanted: int) -> None:
    assert queue_amounts(opened_on(members)).inqueue[0, 0] == wanted * 1000


def worlds() -> Iterator[Store]:
    """Clusters in which much is of every kind, and something happens after each look."""
    dice = np.random.default_rng(3)
    store = cluster(node("n", cpu=64, gpu=8), queue("a"), queue("b", 2))
    for step in range(60):
        name, where = f"g{dice.integers(0, 12)}", ("a", "b", "nowhere")[dice.integers(0, 3)]
        phase = ("Pending", "Inqueue", "Running")[dice.integers(0, 3)]
        least = (None, resource(1), resource(2, gpu=1), resource(memory="9Pi"))[dice.integers(0, 4)]
        store.apply(Seen(podgroup(name, int(dice.integers(1, 3)), where, phase=phase, min_resources=least)))
        for each in range(dice.integers(0, 4)):
            what = {"on": "n"} if dice.random() < 0.5 else {"gates": ("mine",)} if dice.random() < 0.2 else {}
            store.apply(Seen(pod(f"{name}-{each}", name, int(dice.integers(1, 4)), **what)))
        if dice.random() < 0.3:
            store.apply(Gone(Pod, f"ns/{name}-0"))
        if step % 3 == 0:
            yield store


def test_what_is_kept_is_what_a_look_at_every_job_gives() -> None:
    """However many jobs changed since the last look."""
    memo, many, seen = Memo(), 0, set()
    for store in worlds():
        ssn = opened(store, memo)
        found = {name: getattr(queue_amounts(ssn), name).tolist() for name in QueueAmounts._fields}
        fresh = queue_amounts(opened(store, Memo(keeps=False)))
        assert found == {name: getattr(fresh, name).tolist() for name in QueueAmounts._fields}
        assert held_by_queues(ssn).tolist() == found["allocated"]
        many += len(ssn.live_jobs)
        seen |= {name for name, values in found.items() if np.any(values)}
        ssn.close()
    assert many > 50 and seen == set(QueueAmounts._fields)


def test_amounts_are_summed_once_a_session_and_cannot_be_written() -> None:
    store = cluster(node("n", cpu=8), queue("a"), podgroup("g", 1, "a", phase="Pending"), pods("g", 1))
    ssn = opened(store, Memo())
    amounts = queue_amounts(ssn)
    assert queue_amounts(ssn) is amounts
    assert not any(getattr(amounts, name).flags.writeable for name in QueueAmounts._fields)
