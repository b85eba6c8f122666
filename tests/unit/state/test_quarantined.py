"""What could not be read (docs/decisions/0012) is in the tables what allows least: whatever the policy, from the event
on, and only for as long as it is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.model.events import Gone, Object, Seen
from pumice.model.pod import Pod, Toleration
from pumice.model.queue import PriorityClass
from pumice.model.workloads.podgroup import OUT_OF_REACH
from pumice.runtime.one_cycle import schedule_once
from pumice.testing.build import cluster, node, pod, podgroup, policy, queue, spec

WRONG = ("spec: found 5, wanted an object",)
#: No plugin that looks at cordons, gangs or queues.
HIGH = PriorityClass("high", 100)
BARE = "actions: enqueue, allocate, backfill\ntiers:\n- plugins:\n  - name: priority\n"
DEFAULT = "actions: enqueue, allocate, preempt, reclaim, backfill\n"


def quarantined_pod(name: str = "strange", on: str = "n1", **more: Any) -> Pod:
    return replace(pod(name, on=on, cpu=1, **more), unparsable=WRONG, closes_node=True)


def bound(*objects: Object | Sequence[Object], conf: str = BARE) -> dict[str, str]:
    flat = [each for obj in objects for each in (obj if isinstance(obj, list | tuple) else [obj])]
    return schedule_once(flat, policy(conf), 1_000.0).binds


TOLERATES_ALL = spec(cpu=1, tolerations=(Toleration(operator="Exists"),))
ASKS = [queue(), podgroup("g"), replace(pod("p", "g", cpu=1), spec=TOLERATES_ALL)]
ASKS_FOR_NOTHING = [queue(), podgroup("g"), pod("p", "g", cpu=0, memory=0)]


@pytest.mark.parametrize("asks", [ASKS, ASKS_FOR_NOTHING], ids=["asks for room", "asks for nothing"])
def test_a_node_takes_nothing_beside_a_pod_that_may_hold_more_than_is_known(asks: list[Object]) -> None:
    assert bound(node("n1"), asks) == {"ns/p": "n1"}
    assert bound(node("n1"), asks, quarantined_pod()) == {}
    assert bound(node("n1"), node("n2"), asks, quarantined_pod()) == {"ns/p": "n2"}


def test_an_unreadable_node_takes_nobody_who_tolerates_a_cordon() -> None:
    strange = replace(node("n1"), unparsable=WRONG, unschedulable=True)
    assert bound(strange, ASKS) == {}
    assert bound(replace(strange, unparsable=()), ASKS) == {"ns/p": "n1"}, "a cordon is for plugins to look at"


def test_why_nothing_goes_to_a_quarantined_node_is_said() -> None:
    answer = schedule_once([node("n1"), *ASKS, quarantined_pod()], policy(BARE), 1_000.0)
    assert answer.unscheduled == {"ns/p": "0/1 nodes are unavailable: 1 node(s) hold what cannot be read."}


def test_nobody_is_evicted_for_room_on_a_quarantined_node() -> None:
    conf = DEFAULT + "tiers:\n- plugins:\n  - name: priority\n  - name: predicates\n"
    old = [podgroup("old"), replace(pod("old-0", "old", cpu=4, on="n1"), phase="Running")]
    mine = [HIGH, queue(), podgroup("g", priority_class="high"), pod("p", "g", cpu=4, priority=9)]
    objects = [node("n1", cpu=4), *old, *mine]
    assert _evicts(objects, conf) == ["ns/old-0"]
    assert _evicts([*objects, replace(quarantined_pod(), spec=spec(cpu=0, memory=0))], conf) == []


def _evicts(objects: list[Object], conf: str) -> list[str]:
    return [each.pod for each in schedule_once(objects, policy(conf), 1_000.0).evicts]


def test_a_node_is_open_again_when_the_pod_has_gone_ended_or_is_read() -> None:
    """Of two that bar it, both."""
    store = cluster(node("n1"), quarantined_pod("a"), quarantined_pod("b"))

    def quarantined_by() -> int:
        return int(store.snapshot().tables.nodes.quarantined_by[0])

    assert quarantined_by() == 2
    store.apply(Seen(replace(quarantined_pod("a"), closes_node=False)))
    assert quarantined_by() == 1
    store.apply(Seen(quarantined_pod("a")))
    store.apply(Seen(node("n0")))  # rows of nodes are numbered anew
    assert store.snapshot().tables.nodes.quarantined_by.tolist() == [0, 2]
    store.apply(Gone(Pod, "ns/a"))
    store.apply(Seen(replace(quarantined_pod("b"), phase="Succeeded", closes_node=False)))
    assert store.snapshot().tables.nodes.quarantined_by.tolist() == [0, 0]


def test_an_unreadable_group_is_neither_admitted_nor_placed_nor_evicted_nor_rewritten() -> None:
    """Whatever its fields were, and whichever job wants its room: what it is cannot be known."""
    strange = replace(podgroup("g", minimum=OUT_OF_REACH), unparsable=WRONG)
    waits, runs = pod("p", "g", cpu=1), replace(pod("r", "g", cpu=1, on="n1"), phase="Running")
    answer = schedule_once([node("n1"), queue(), strange, waits, runs], policy(BARE), 1_000.0)
    assert answer.binds == {} and answer.outcome.groups == ()
    conf = DEFAULT + "tiers:\n- plugins:\n  - name: priority\n"
    mine = [HIGH, podgroup("m", priority_class="high"), pod("q", "m", cpu=4, priority=9)]
    objects = [node("n1", cpu=4), queue(), replace(strange, unparsable=()), runs, *mine]
    assert _evicts(objects, conf) == ["ns/r"]
    assert _evicts([node("n1", cpu=4), queue(), strange, runs, *mine], conf) == []


def test_what_a_group_is_counts_again_when_it_can_be_read() -> None:
    strange = replace(podgroup("g", minimum=OUT_OF_REACH), unparsable=WRONG)
    store = cluster(node("n1"), queue(), strange, pod("p", "g"))
    assert store.snapshot().tables.jobs.quarantined.any()
    store.apply(Seen(replace(strange, unparsable=(), min_member=1)))
    assert not store.snapshot().tables.jobs.quarantined.any()


def test_queues_below_an_unreadable_one_are_closed_with_it() -> None:
    """Its limit is theirs too, and is unknown."""
    strange = replace(queue("top"), unparsable=WRONG, state="Closed", reclaimable=False)
    below = [replace(queue("mid"), parent="top"), replace(queue("leaf"), parent="mid"), queue("other")]
    tables = cluster(strange, *below).snapshot().tables
    assert dict(zip(tables.queues.names, tables.queues.open.tolist(), strict=True)) == {
        "leaf": False,
        "mid": False,
        "other": True,
        "top": False,
    }
    closed = cluster(replace(strange, unparsable=()), *below).snapshot().tables
    assert closed.queues.open.tolist() == [True, True, True, False], "one that is merely closed closes itself"
