"""Evictions that come to an end: no task leaves for nothing, and promised room is not given away (decision 0017)."""

from __future__ import annotations

import pytest

from pumice.model.blockers import CannotEvict, Domain
from pumice.model.pod import HostPort
from pumice.model.queue import PriorityClass
from pumice.state.store import Store
from pumice.testing.build import budget, cluster, hypernode, node, pod, podgroup, queue, resource, run

HIGH, LOW = PriorityClass("high", 100), PriorityClass("low", 1)
TIER = "tiers:\n- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: proportion}]\n"
DESERVED_KEPT = TIER.replace("{name: proportion}", "{name: proportion, arguments: {deservedKept: true}}")


def test_idle_room_that_is_promised_is_nobody_elses() -> None:
    """preempt promises a gang the idle node beside one that a task leaves; allocate, in the same cycle, must not give
    it to another one."""
    state = cluster(
        HIGH,
        LOW,
        [node(name, cpu=2) for name in "ab"],
        podgroup("old", 0, phase="Running", priority_class="low"),
        pod("old-0", "old", cpu=2, on="b", phase="Running"),
        podgroup("first", 2, phase="Inqueue", priority_class="high"),
        [pod(f"first-{i}", "first", cpu=2) for i in range(2)],
        podgroup("second", 1, phase="Inqueue", priority_class="low"),
        pod("second-0", "second", cpu=2),
    )
    found = run(state, TIER, actions="preempt, allocate")
    assert (found.evicted, sorted(found.pipelined), found.binds) == (["ns/old-0"], ["ns/first-0", "ns/first-1"], {})


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


def test_nobody_is_reclaimed_from_for_a_gang_that_its_queue_may_not_have() -> None:
    """One of the two pods would leave, and with the other one the parent of both queues would have more than it may."""
    state = cluster(
        node("a", cpu=8),
        [queue("root"), queue("team", parent="root", deserved=resource(12, "24Gi"), capability=resource(7, "24Gi"))],
        [
            queue("rich", parent="team", deserved=resource(3, "6Gi")),
            queue("poor", parent="team", deserved=resource(6, "12Gi")),
        ],
        podgroup("old", 1, phase="Running", queue="rich"),
        [pod(f"old-{i}", "old", cpu=2, on="a", phase="Running") for i in range(2)],
        podgroup("new", 3, phase="Inqueue", queue="poor"),
        [pod(f"new-{i}", "new", cpu=2) for i in range(3)],
    )
    tree = "tiers:\n- plugins: [{name: gang}, {name: predicates}, {name: capacity, enableHierarchy: true}]\n"
    assert run(state, tree, actions="reclaim").evicted == []


@pytest.mark.parametrize("action", ["gangpreempt", "gangreclaim"])
def test_nobody_leaves_for_a_gang_that_filters_keep_apart(action: str) -> None:
    """Its pods want the same port, and only one of the two nodes has room for them once others have left."""
    state = cluster(
        HIGH,
        LOW,
        node("a", cpu=4),
        node("b", cpu=1),
        queue("rich"),
        queue("poor", weight=9),
        podgroup("old", 1, phase="Running", priority_class="low", queue="rich"),
        [pod(f"old-{i}", "old", on="a", phase="Running") for i in range(4)],
        podgroup("new", 2, phase="Inqueue", priority_class="high", queue="rich" if action == "gangpreempt" else "poor"),
        [pod(f"new-{i}", "new", cpu="1500m", memory=0, host_ports=(HostPort(80),)) for i in range(2)],
    )
    assert run(state, TIER, actions=action).evicted == []


def test_gangs_take_nothing_from_a_queue_that_has_no_more_than_it_deserves() -> None:
    """It would take it back: both are within what they deserve, and each has room only in the place of the other."""
    state = cluster(
        *(node(name, cpu=2) for name in "ab"),
        queue("rich"),
        queue("poor"),
        podgroup("old", 2, phase="Running", queue="rich"),
        *(pod(f"old-{name}", "old", on=name, phase="Running") for name in "ab"),
        podgroup("new", 1, phase="Inqueue", queue="poor"),
        pod("new-0", "new", cpu=2),
    )
    assert run(state, TIER, actions="gangreclaim").evicted == ["ns/old-a", "ns/old-b"], "as Volcano does"
    assert run(state, DESERVED_KEPT, actions="gangreclaim").evicted == []


@pytest.mark.parametrize(
    ("action", "votes", "queue_of_spare"), [("preempt", "priority", "rich"), ("reclaim", "proportion", "fair")]
)
def test_no_vote_about_victims_is_lost_where_all_must_agree(action: str, votes: str, queue_of_spare: str) -> None:
    """The gang that others may take from can spare no pod, and the pod that can be spared is not theirs to take: two
    plugins agree on no task. In Volcano the third one begins anew, and breaks the gang."""
    state = cluster(
        HIGH,
        LOW,
        node("a", cpu=4),
        [queue(name) for name in ("rich", "fair", "poor")],
        podgroup("gang", 3, phase="Running", priority_class="low", queue="rich"),
        [pod(f"gang-{i}", "gang", on="a", phase="Running") for i in range(3)],
        podgroup("spare", 0, phase="Running", priority_class="high", queue=queue_of_spare),
        pod("spare-0", "spare", on="a", phase="Running"),
        podgroup("new", 1, phase="Inqueue", priority_class="high", queue="rich" if action == "preempt" else "poor"),
        pod("new-0", "new"),
    )
    tier = f"tiers:\n- plugins: [{{name: gang}}, {{name: {votes}}}, {{name: conformance}}, {{name: predicates}}]\n"
    agree = tier + f"configurations: [{{name: {action}, arguments: {{allMustAgree: true}}}}]\n"
    assert len(run(state, tier, actions=action).evicted) == 1, "as Volcano does"
    assert run(state, agree, actions=action).evicted == []


def test_nobody_is_reclaimed_from_for_a_gang_that_no_hypernode_takes() -> None:
    """Its minimum would have room, but the hypernode that it is bound to has to hold all that waits of it."""
    state = cluster(
        node("a", cpu=3),
        [queue("rich"), queue("poor", weight=9)],
        podgroup("old", 1, phase="Running", queue="rich"),
        [pod(f"old-{i}", "old", on="a", phase="Running") for i in range(3)],
        podgroup("new", 1, phase="Inqueue", queue="poor", tier=1),
        [pod(f"new-{i}", "new") for i in range(3)],
    )
    bound = TIER + "- plugins: [{name: network-topology-aware}]\n"
    assert run(state, TIER, actions="reclaim").evicted == ["ns/old-2"], "where no plugin knows of hypernodes"
    found = run(state, bound, actions="reclaim")
    assert found.evicted == []
    assert CannotEvict("reclaim", 1, 3, Domain()) in [entry.finding for entry in found.outcome.entries]


def test_pods_of_a_gang_that_cannot_be_whole_hold_no_idle_room_before_allocate() -> None:
    """preempt goes through waiting pods again, one by one: room for which no task leaves is for allocate to give."""
    state = cluster(
        HIGH,
        LOW,
        node("a", cpu=3),
        podgroup("wide", 2, phase="Inqueue", priority_class="high"),
        [pod(f"wide-{i}", "wide", cpu=2) for i in range(2)],
        podgroup("small", 1, phase="Inqueue", priority_class="low"),
        pod("small-0", "small", cpu=2),
    )
    assert run(state, TIER, actions="preempt, allocate").binds == {"ns/small-0": "a"}


@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
@pytest.mark.parametrize(("counts", "evicted"), [("true", 2), ("false", 0)], ids=["as Volcano does", "switched off"])
def test_siblings_do_not_reclaim_from_each_other_by_what_their_parent_deserves(
    action: str, counts: str, evicted: int
) -> None:
    """The gang is more than its queue deserves: once it runs, the other queue could take a node back, and so on."""
    state = cluster(
        node("a", cpu=2),
        [queue("root"), queue("team", parent="root", deserved=resource(4))],
        [queue("left", parent="team"), queue("right", parent="team", deserved=resource(1))],
        podgroup("old", 0, phase="Running", queue="left"),
        [pod(f"old-{i}", "old", on="a", phase="Running") for i in range(2)],
        podgroup("new", 2, phase="Inqueue", queue="right"),
        [pod(f"new-{i}", "new") for i in range(2)],
    )
    conf = (
        "tiers: [{plugins: [{name: gang}, {name: predicates}, {name: capacity, enableHierarchy: true,"
        f" arguments: {{ancestorReclaimLevel: 1, commonAncestorsCount: {counts}}}}}]}}]\n"
    )
    assert len(run(state, conf, actions=action).evicted) == evicted


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
    """A budget says which tasks may leave; that one should is for others to say."""
    state = cluster(
        node("a", cpu=2),
        podgroup("old", 1, phase="Running"),
        pod("old-0", "old", on="a", phase="Running", labels={"app": "web"}),
        budget("web", {"app": "web"}, allowed=1),
    )
    assert run(state, "tiers:\n- plugins: [{name: gang}, {name: pdb}]\n", actions="shuffle").evicted == []


@pytest.mark.parametrize(
    ("promised_first", "who"),
    [
        pytest.param("true", "late", id="held for whom somebody was evicted"),
        pytest.param("false", "early", id="whoever comes first, as in Volcano"),
    ],
)
@pytest.mark.parametrize("leaves", [False, True], ids=["free by now", "still leaving"])
def test_what_was_freed_is_held_over_cycles(promised_first: str, who: str, leaves: bool) -> None:
    """A task was evicted for ``late`` in an earlier cycle; ``early`` comes first in every order."""
    conf = TIER + f"configurations: [{{name: allocate, arguments: {{promisedFirst: {promised_first}}}}}]\n"
    leaving = [podgroup("old", 1, phase="Running"), pod("old-0", "old", cpu=2, on="a", phase="Running", deletion=1.0)]
    state = cluster(
        node("a", cpu=2),
        leaving if leaves else [],
        podgroup("early", 1, phase="Inqueue"),
        pod("early-0", "early", cpu=2),
        podgroup("late", 1, phase="Inqueue", creation=1.0),
        pod("late-0", "late", cpu=2, creation=1.0, nominated_node="a"),
    )
    found = run(state, conf, actions="allocate")
    assert (found.pipelined if leaves else found.binds) == {f"ns/{who}-0": "a"}


def test_a_nomination_to_a_node_that_others_took_puts_no_job_first() -> None:
    """What was freed for ``late`` on a is not ``early``'s, whose own node b is full."""
    state = cluster(
        [node("a", cpu=2), node("b", cpu=2)],
        [podgroup("old", 1, phase="Running"), pod("old-0", "old", cpu=2, on="b", phase="Running")],
        [podgroup("early", 1, phase="Inqueue"), pod("early-0", "early", cpu=2, nominated_node="b")],
        podgroup("late", 1, phase="Inqueue", creation=1.0),
        pod("late-0", "late", cpu=2, creation=1.0, nominated_node="a"),
    )
    assert run(state, TIER, actions="allocate").binds == {"ns/late-0": "a"}


def test_a_promise_is_no_way_around_a_queue_that_has_too_much() -> None:
    state = cluster(
        node("a", cpu=4),
        [queue("default"), queue("rich", weight=1)],
        podgroup("has", 1, queue="rich", phase="Running"),
        pod("has-0", "has", cpu=3, on="a", phase="Running"),
        podgroup("early", 1, phase="Inqueue"),
        pod("early-0", "early", cpu=1),
        podgroup("late", 1, queue="rich", phase="Inqueue", creation=1.0),
        pod("late-0", "late", cpu=1, creation=1.0, nominated_node="a"),
    )
    assert run(state, TIER, actions="allocate").binds == {"ns/early-0": "a"}


@pytest.mark.parametrize(
    ("kept", "evicted", "pipelined"),
    [
        pytest.param("true", ["ns/low-1"], {"ns/gang-0": "a", "ns/gang-1": "b"}, id="its node is kept"),
        pytest.param("false", [], {}, id="it waits for allocate, as in Volcano"),
    ],
)
def test_a_gang_goes_on_with_what_was_freed_for_a_part_of_it(
    kept: str, evicted: list[str], pipelined: dict[str, str]
) -> None:
    """A scheduler was killed after it had evicted for the first pod of the gang, and before that for the second."""
    conf = TIER + f"configurations: [{{name: preempt, arguments: {{promisedKept: {kept}}}}}]\n"
    state = cluster(
        HIGH,
        LOW,
        node("a", cpu=1),
        node("b", cpu=1),
        podgroup("low", 0, phase="Running", priority_class="low"),
        pod("low-1", "low", on="b", phase="Running"),
        podgroup("gang", 2, phase="Inqueue", priority_class="high"),
        pod("gang-0", "gang", nominated_node="a"),
        pod("gang-1", "gang", nominated_node="b", preemption_policy="PreemptLowerPriority"),
    )
    found = run(state, conf, actions="allocate, preempt")
    assert (found.evicted, found.pipelined) == (evicted, pipelined)


def half_freed() -> Store:
    """A scheduler was killed after it had evicted for the first pod of a gang of another queue, before the second."""
    return cluster(
        HIGH,
        LOW,
        [node("a", cpu=1), node("b", cpu=1), node("c", cpu=2)],
        [queue("rich"), queue("poor")],
        podgroup("low", 1, phase="Running", queue="rich", priority_class="low"),
        pod("low-1", "low", on="b", phase="Running"),
        pod("low-2", "low", on="c", phase="Running", cpu=2),
        podgroup("gang", 2, phase="Inqueue", queue="poor", priority_class="high"),
        [pod("gang-0", "gang", nominated_node="a"), pod("gang-1", "gang", nominated_node="b")],
    )


@pytest.mark.parametrize(
    ("kept", "evicted", "pipelined"),
    [
        pytest.param("true", ["ns/low-1"], {"ns/gang-0": "a", "ns/gang-1": "b"}, id="its node is kept"),
        pytest.param("false", [], {}, id="only nodes with victims are looked at, as in Volcano"),
    ],
)
def test_reclaim_goes_on_with_what_was_freed_for_a_part_of_a_gang(
    kept: str, evicted: list[str], pipelined: dict[str, str]
) -> None:
    conf = TIER + f"configurations: [{{name: reclaim, arguments: {{promisedKept: {kept}}}}}]\n"
    found = run(half_freed(), conf, actions="allocate, reclaim")
    assert (found.evicted, found.pipelined) == (evicted, pipelined)


def test_gangreclaim_goes_on_with_what_was_freed_for_a_part_of_a_gang() -> None:
    found = run(half_freed(), TIER, actions="allocate, gangreclaim")
    assert (found.evicted, found.pipelined) == (["ns/low-1"], {"ns/gang-0": "a", "ns/gang-1": "b"})


def test_gangpreempt_goes_on_in_the_domain_where_others_left_for_the_gang() -> None:
    """Two domains would do; in the second one a task has left for it already."""
    state = cluster(
        HIGH,
        LOW,
        [node(name, cpu=1) for name in "abcd"],
        hypernode("first", 1, "ab"),
        hypernode("second", 1, "cd"),
        [podgroup(f"low-{name}", 0, phase="Running", priority_class="low") for name in "abd"],
        [pod(f"low-{name}-0", f"low-{name}", on=name, phase="Running") for name in "abd"],
        podgroup("gang", 2, phase="Inqueue", priority_class="high", tier=1),
        [pod("gang-0", "gang", nominated_node="c"), pod("gang-1", "gang", nominated_node="d")],
    )
    conf = TIER.replace("{name: proportion}", "{name: proportion}, {name: network-topology-aware}")
    found = run(state, conf, actions="allocate, gangpreempt")
    assert (found.evicted, found.pipelined) == (["ns/low-d-0"], {"ns/gang-0": "c", "ns/gang-1": "d"})


@pytest.mark.parametrize(
    ("actions", "binds", "pipelined"),
    [
        pytest.param("preempt, allocate", ["ns/gang-0", "ns/gang-1"], [], id="allocate comes later"),
        pytest.param("allocate, preempt", ["ns/gang-0", "ns/gang-1"], [], id="it came before"),
        pytest.param("preempt", [], ["ns/gang-0", "ns/gang-1"], id="it never comes"),
    ],
)
def test_what_was_freed_for_a_gang_is_allocates_once_it_is_idle(
    actions: str, binds: list[str], pipelined: list[str]
) -> None:
    state = cluster(
        HIGH,
        node("a", cpu=2),
        podgroup("gang", 2, phase="Inqueue", priority_class="high"),
        [pod(f"gang-{i}", "gang", nominated_node="a") for i in range(2)],
    )
    found = run(state, TIER, actions=actions)
    assert (sorted(found.binds), sorted(found.pipelined)) == (binds, pipelined)


@pytest.mark.parametrize(
    ("actions", "evicted", "binds"),
    [
        pytest.param("reclaim, allocate", [], ["ns/new-0"], id="allocate comes later"),
        pytest.param("reclaim", ["ns/old-1"], [], id="it never comes: only nodes with victims are looked at"),
    ],
)
def test_nobody_is_reclaimed_from_for_a_gang_that_has_room(actions: str, evicted: list[str], binds: list[str]) -> None:
    state = cluster(
        [node("a", cpu=2), node("b", cpu=2)],
        [queue("rich"), queue("poor")],
        podgroup("old", 0, phase="Running", queue="rich"),
        [pod(f"old-{i}", "old", cpu=1, on="a", phase="Running") for i in range(2)],
        podgroup("new", 1, phase="Inqueue", queue="poor"),
        pod("new-0", "new"),
    )
    found = run(state, TIER.replace(", {name: proportion}", ""), actions=actions)
    assert (found.evicted, sorted(found.binds)) == (evicted, binds)
