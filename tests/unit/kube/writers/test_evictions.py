"""What goes out first when a cycle evicts some for others: who was promised which node (decision 0016)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from pumice.kube.scheduler.cluster import KubeCluster
from pumice.kube.writers.evictions import Evictions
from pumice.model.decisions import Evict, PodNotice, Refusal
from pumice.model.events import Seen
from pumice.runtime.in_flight import InFlightDecision
from pumice.testing.build import node, pod
from tests.unit.kube.silence import SILENT

VICTIM, NEW = pod("old", on="n1", phase="Running"), pod("new", nominated_node="n2")
EVICT = Evict(VICTIM.key, VICTIM.uid, "n1", "ns/job", "preempt")
PROMISED = PodNotice(NEW.key, NEW.uid, "Unschedulable", "soon", "n1")


def a_cluster() -> KubeCluster:
    made = KubeCluster(SILENT)
    made.sink([Seen(node("n1")), Seen(VICTIM), Seen(NEW)])
    return made


def test_an_eviction_waits_until_the_cycle_has_said_for_whom() -> None:
    cluster = a_cluster()
    assert cluster.submit([EVICT]) == {}
    assert (len(cluster.evictions), cluster.evictions.work_queue.left) == (1, 0)
    assert cluster.submit([EVICT]) == {0: Refusal("pod ns/old is being evicted already")}
    cluster.evictions.release()
    assert (len(cluster.evictions), cluster.evictions.work_queue.left) == (1, 1)


@pytest.mark.parametrize(
    ("on", "nominations"),
    [
        pytest.param("n1", 1, id="another node than before"),
        pytest.param("n2", 0, id="the node that it is nominated to"),
        pytest.param("", 0, id="no node"),
    ],
)
def test_what_evictions_wait_for_is_a_new_nomination(on: str, nominations: int) -> None:
    cluster = a_cluster()
    cluster.notice(replace(PROMISED, nominated_node=on))
    assert (cluster.evictions.nominations.left, cluster._notice_work_queue.left) == (nominations, 1 - nominations)


async def _order(nominate: Callable[[], Awaitable[object]], hold_s: float) -> list[str]:
    """What happened until an eviction was sent that was let go behind a nomination."""
    seen: list[str] = []

    async def send(entry: InFlightDecision) -> None:
        seen.append(f"evict {entry.decision.pod}")

    async def write(notice: PodNotice) -> None:
        await nominate()
        seen.append(f"{notice.pod} is promised {notice.nominated_node}")

    made = Evictions(send, write, workers=2, waiting_max=9, hold_s=hold_s)
    made.hold(InFlightDecision(EVICT))
    made.nominations.put(PROMISED.pod, PROMISED)
    made.release()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        work = [group.create_task(work_queue.run()) for work_queue in (made.work_queue, made.nominations)]
        await made.work_queue.empty()
        for each in work:
            each.cancel()
    return seen


async def _turns() -> None:
    """Long enough for the queue of evictions to be worked on."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_an_eviction_goes_after_the_nominations() -> None:
    assert await _order(_turns, hold_s=20.0) == ["ns/new is promised n1", "evict ns/old"]


async def test_an_eviction_waits_no_longer_than_said_for_a_nomination_that_hangs() -> None:
    assert await _order(asyncio.Event().wait, hold_s=0.0) == ["evict ns/old"]
