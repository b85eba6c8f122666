"""Evictions that come to an end: nobody leaves for nothing, and what was promised is not given away (decision 0141)."""

from __future__ import annotations

from pumice.model.pod import HostPort
from pumice.model.queue import PriorityClass
from pumice.testing.build import budget, cluster, node, pod, podgroup, queue, run

HIGH, LOW = PriorityClass("high", 100), PriorityClass("low", 1)
TIER = "tiers:\n- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: proportion}]\n"


def test_idle_room_that_is_promised_is_nobody_elses() -> None:
    """preempt promises the idle node to the one; allocate, in the same cycle, must not give it to the other."""
    state = cluster(
        HIGH,
        LOW,
        node("a", cpu=2),
        podgroup("first", 1, phase="Inqueue", priority_class="high"),
        pod("first-0", "first", cpu=2),
        podgroup("second", 1, phase="Inqueue", priority_class="low"),
        pod("second-0", "second", cpu=2),
    )
    found = run(state, TIER, actions="preempt, allocate")
    assert (found.pipelined, found.binds) == ({"ns/first-0": "a"}, {})


def test_nobody_is_reclaimed_from_for_pods_that_filters_keep_apart() -> None:
    """Both pods want the same port of a node, and there is only one: evicting for them would be for nothing."""
    state = cluster(
        node("a", cpu=4),
        queue("rich"),
        queue("poor"),
        podgroup("old", 1, phase="Running", queue="rich"),
        [pod(f"old-{i}", "old", on="a", phase="Running") for i in range(4)],
        podgroup("new", 2, phase="Inqueue", queue="poor"),
        [pod(f"new-{i}", "new", host_ports=(HostPort(80),)) for i in range(2)],
    )
    assert run(state, TIER, actions="reclaim").evicted == []


def test_a_gang_that_has_room_evicts_nobody_where_only_need_counts() -> None:
    state = cluster(
        HIGH,
        LOW,
        node("a", cpu=2),
        podgroup("old", 1, phase="Running", priority_class="low"),
        pod("old-0", "old", on="a", phase="Running"),
        podgroup("new", 1, phase="Inqueue", priority_class="high"),
        pod("new-0", "new"),
    )
    only = TIER + "configurations: [{name: gangpreempt, arguments: {onlyInNeed: true}}]\n"
    assert run(state, TIER, actions="gangpreempt").evicted == ["ns/old-0"], "as Volcano does"
    assert run(state, only, actions="gangpreempt").evicted == []
    assert run(state, only, actions="gangpreempt, allocate").binds == {"ns/new-0": "a"}


def test_budgets_alone_have_nobody_leave() -> None:
    """A budget says who may go; that somebody should is for others to say."""
    state = cluster(
        node("a", cpu=2),
        podgroup("old", 1, phase="Running"),
        pod("old-0", "old", on="a", phase="Running", labels={"app": "web"}),
        budget("web", {"app": "web"}, allowed=1),
    )
    assert run(state, "tiers:\n- plugins: [{name: gang}, {name: pdb}]\n", actions="shuffle").evicted == []
