"""gangpreempt and gangreclaim: which gangs get room as a whole, and from which jobs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from pumice.model.blockers import TooSmall
from pumice.model.decisions import Evict
from pumice.model.events import Object
from pumice.model.queue import PriorityClass
from pumice.testing.build import Ran, cluster, hypernode, node, pod, podgroup, pods, queue, run

PLUGINS = "- plugins: [{name: priority}, {name: gang}, {name: conformance}]\n- plugins: [{name: predicates}%s]\n"
CONF = f"tiers:\n{PLUGINS % ''}"
WITH_QUEUES = f"tiers:\n{PLUGINS % ', {name: proportion}'}"
WITH_TREE = f"tiers:\n{PLUGINS % ', {name: network-topology-aware}'}"
HIGH, LOW = PriorityClass("high", 100), PriorityClass("low", 1)


def gang(name: str, minimum: int, on: Iterable[str] = (), *, waits: int = 0, **more: Any) -> list[Object]:
    """A gang whose pods run on these nodes, and with so many that wait; each asks for a core."""
    special = {key: more.pop(key) for key in ("cpu", "role") if key in more}
    running = [pod(f"{name}-{i}", name, on=where, phase="Running", **special) for i, where in enumerate(on)]
    phase = "Running" if running else "Inqueue"
    return [podgroup(name, minimum, phase=phase, **more), *running, *pods(name, waits, first=len(running), **special)]


WAITING = gang("new", 1, waits=1, priority_class="high")


def evicted(found: Ran) -> list[str]:
    return sorted(d.pod.partition("/")[2] for d in found.decisions if isinstance(d, Evict))


def test_a_gang_takes_the_place_of_a_lower_one_as_a_whole() -> None:
    state = cluster(
        HIGH,
        LOW,
        node("a", cpu=2),
        node("b", cpu=2),
        gang("old", 4, "aabb", priority_class="low"),
        gang("new", 3, waits=3, priority_class="high"),
    )
    found = run(state, CONF, actions="gangpreempt")
    assert evicted(found) == ["old-0", "old-1", "old-2", "old-3"], "a gang that breaks leaves as a whole"


def test_no_job_is_broken_where_that_is_not_allowed() -> None:
    state = cluster(
        HIGH,
        LOW,
        node("a", cpu=2),
        gang("old", 2, "aa", priority_class="low"),
        WAITING,
    )
    conf = CONF + "configurations: [{name: gangpreempt, arguments: {allowWholeBundle: false}}]\n"
    assert evicted(run(state, conf, actions="gangpreempt")) == []
    assert evicted(run(state, CONF, actions="gangpreempt")) == ["old-0", "old-1"]


def test_what_a_gang_can_spare_goes_first() -> None:
    state = cluster(
        HIGH,
        LOW,
        node("a", cpu=4),
        gang("tight", 2, "aa", priority_class="low"),
        gang("loose", 1, "aa", priority_class="low"),
        WAITING,
    )
    assert evicted(run(state, CONF, actions="gangpreempt")) == ["loose-0"]


def test_nobody_leaves_for_a_gang_that_would_not_fit() -> None:
    state = cluster(
        HIGH,
        LOW,
        node("a", cpu=2),
        gang("old", 1, "aa", priority_class="low"),
        gang("new", 3, waits=3, priority_class="high"),
    )
    found = run(state, CONF, actions="gangpreempt")
    assert evicted(found) == []
    assert any(isinstance(each.finding, TooSmall) for each in found.outcome.entries)


@pytest.mark.parametrize(
    ("special", "who"),
    [
        pytest.param({"annotations": {"volcano.sh/preemptable": "false"}}, [], id="the group says no"),
        pytest.param({"annotations": {"volcano.sh/preemptable": "perhaps"}}, [], id="nobody can say what it says"),
        pytest.param({"annotations": {"volcano.sh/preemptable": "true"}}, ["old-0"], id="the group says yes"),
        pytest.param({"labels": {"volcano.sh/preemptable": "true"}}, ["old-0"], id="by a label"),
        pytest.param({"priority_class": "high"}, [], id="it is as important"),
    ],
)
def test_who_may_be_touched(special: dict[str, Any], who: list[str]) -> None:
    special = {"priority_class": "low", **special}
    state = cluster(HIGH, LOW, node("a", cpu=1), gang("old", 1, "a", **special), WAITING)
    assert evicted(run(state, CONF, actions="gangpreempt")) == who


def test_a_later_allocate_keeps_a_promise_and_says_that_the_pod_was_tried() -> None:
    state = cluster(HIGH, LOW, node("a", cpu=2), gang("old", 1, "aa", priority_class="low"), WAITING)
    found = run(state, CONF, actions="allocate, gangpreempt, allocate")
    assert (evicted(found), found.pipelined) == (["old-0"], {"ns/new-0": "a"})
    (message,) = [
        c.message for update in found.outcome.groups if update.job == "ns/new" for c in update.status.conditions
    ]
    assert message.endswith("has already predicated failed, skip"), message


def test_a_gang_stays_within_its_tier() -> None:
    """There is room for two on either rack; the gang may span one, so only one rack loses pods."""
    nodes = [node(name, cpu=1) for name in "abcd"]
    tree = [hypernode("left", 1, "ab"), hypernode("right", 1, "cd"), hypernode("all", 2, hypernodes=["left", "right"])]
    state = cluster(
        HIGH,
        LOW,
        nodes,
        tree,
        gang("old", 1, "abcd", priority_class="low"),
        gang("new", 2, waits=2, priority_class="high", tier=1),
    )
    found = run(state, WITH_TREE, actions="gangpreempt")
    assert evicted(found) in (["old-0", "old-1"], ["old-2", "old-3"])


def test_a_queue_takes_back_what_others_have_beyond_their_share() -> None:
    queues = [queue("rich"), queue("poor")]
    state = cluster(
        queues,
        node("a", cpu=4),
        gang("old", 1, "aaaa", queue="rich"),
        gang("new", 2, waits=2, queue="poor"),
    )
    found = run(state, WITH_QUEUES, actions="gangreclaim")
    assert evicted(found) == ["old-0", "old-1", "old-2"], "what a gang can spare leaves together"


def test_a_queue_that_gives_nothing_back_is_left_alone() -> None:
    queues = [queue("rich", reclaimable=False), queue("poor")]
    state = cluster(
        queues,
        node("a", cpu=4),
        gang("old", 1, "aaaa", queue="rich"),
        gang("new", 2, waits=2, queue="poor"),
    )
    assert evicted(run(state, WITH_QUEUES, actions="gangreclaim")) == []
