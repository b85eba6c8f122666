"""With ``lowerPriorityOnly`` priority is a veto of preempt, whatever the tiers are."""

from __future__ import annotations

from random import Random

import pytest

from pumice.model.events import Object
from pumice.model.pod import Pod
from pumice.model.queue import PriorityClass
from pumice.model.workloads.podgroup import PodGroup
from pumice.testing.build import Ran, cluster, node, pod, podgroup, run
from pumice.volcano.table import DEFAULT_CONF
from tests.unit.volcano.evicting import LEVELS, gang

WORLDS = 60
CLASSES = {f"p{level}": level * 10 for level in range(5)}
TOPOLOGY_AWARE = ", enableTopologyAwarePreemption: true"


def conf(*, veto: bool, agree: bool, more: str = "") -> str:
    arguments = f"lowerPriorityOnly: {str(veto).lower()}, allMustAgree: {str(agree).lower()}{more}"
    return f"{DEFAULT_CONF}configurations: [{{name: preempt, arguments: {{{arguments}}}}}]\n"


def crowded(dice: Random) -> list[Object]:
    """Make full nodes of gangs of any priority and minimum, and one gang that waits."""
    found: list[Object] = [PriorityClass(name, value) for name, value in CLASSES.items()]
    free = {f"n{i}": dice.randint(2, 5) for i in range(dice.randint(1, 4))}
    found += [node(name, cpu, pods=110) for name, cpu in free.items()]
    for j in range(dice.randint(2, 6)):
        size = dice.randint(1, 3)
        places = [name for name, left in free.items() for _ in range(left)]
        on = dice.sample(places, min(size, len(places)))
        for name in on:
            free[name] -= 1
        level = dice.choice(list(CLASSES))
        found.append(podgroup(f"r{j}", dice.randint(0, len(on)), phase="Running", priority_class=level))
        found += [pod(f"r{j}-{i}", f"r{j}", on=name, phase="Running") for i, name in enumerate(on)]
    size = dice.randint(1, 2)
    found.append(podgroup("new", size, phase="Inqueue", priority_class=dice.choice(list(CLASSES))))
    return [*found, *(pod(f"new-{i}", "new", cpu=dice.randint(1, 2)) for i in range(size))]


def outranked(objects: list[Object], ran: Ran) -> int:
    """Count the victims whose job has no lower priority than the gang that waits."""
    priority = {each.key: CLASSES[each.priority_class_name] for each in objects if isinstance(each, PodGroup)}
    group = {each.key: each.group_key for each in objects if isinstance(each, Pod)}
    return sum(priority[group[victim]] >= priority["ns/new"] for victim in ran.evicted)


@pytest.mark.parametrize("more", ["", TOPOLOGY_AWARE], ids=["one by one", "topology aware"])
def test_no_victim_has_the_same_or_a_higher_priority(more: str) -> None:
    evicted = {False: 0, True: 0}
    wrong = {False: 0, True: 0}
    for seed in range(WORLDS):
        objects = crowded(Random(seed))
        for veto in (False, True):
            ran = run(cluster(*objects), conf(veto=veto, agree=seed % 2 == 0, more=more), actions="preempt")
            evicted[veto] += len(ran.evicted)
            wrong[veto] += outranked(objects, ran)
    assert wrong[True] == 0
    assert evicted[True] > WORLDS / 5
    assert wrong[False] > 0, "without the switch the worlds break the law"


def test_a_tier_that_agrees_on_no_pod_hands_over_to_drf_only_without_the_switch() -> None:
    """The gang of lower priority is at its minimum, and the one of higher priority is above it."""
    state = cluster(
        LEVELS,
        PriorityClass("mid", 5),
        node("n", 3),
        gang("low", 1, 1, on="n", level="low"),
        gang("high", 2, 0, on="n", level="high"),
        gang("new", 1, 1, level="mid"),
    )
    assert run(state, conf(veto=False, agree=True), actions="preempt").evicted == ["ns/high-1"]
    assert run(state, conf(veto=True, agree=True), actions="preempt").evicted == []
