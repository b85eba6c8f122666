"""What Kubernetes' own PodGroups say about evictions holds under KAI's language."""

from __future__ import annotations

from msgspec.structs import replace

from pumice.model.events import Object
from pumice.model.workloads.native_group import NativeGroup
from pumice.model.workloads.podgroup import PodGroup
from tests.unit.kai.cluster import cycle, job, node, queue, store


def native(objects: list[Object], *, leaves_whole: bool = False, never_preempts: bool = False) -> list[Object]:
    """A job whose PodGroup is Kubernetes' own."""
    of = NativeGroup("scheduling.k8s.io/v1beta1", leaves_whole=leaves_whole, never_preempts=never_preempts)
    return [replace(each, native=of) if isinstance(each, PodGroup) else each for each in objects]


def test_a_pod_beyond_the_minimum_leaves_alone() -> None:
    victim, urgent = job("v", "q", ["a", "a"], minimum=1), job("u", "q", [""], priority=75)
    assert len(cycle(store(queue("q"), node("a", 2), native(victim), urgent)).evicted) == 1


def test_a_gang_that_leaves_only_together_loses_all_its_pods_or_none() -> None:
    victim, urgent = job("v", "q", ["a", "a"], minimum=1), job("u", "q", [""], priority=75)
    found = cycle(store(queue("q"), node("a", 2), native(victim, leaves_whole=True), urgent))
    assert sorted(found.evicted) == ["v-0", "v-1"]


def test_such_a_gang_on_other_nodes_keeps_them() -> None:
    victims = job("old", "q", ["b"], age=9.0), native(job("v", "q", ["a", "a"], minimum=1, age=1.0), leaves_whole=True)
    urgent = job("u", "q", [""], gpus=3, priority=75)
    found = cycle(store(queue("q"), node("a", 2), node("b", 3), *victims, urgent))
    assert found.evicted == ["old-0"], "the younger one was looked at first, and its nodes do not help"


def test_nothing_is_evicted_for_a_group_that_never_preempts() -> None:
    urgent = native(job("u", "q", [""], priority=75), never_preempts=True)
    assert not cycle(store(queue("q"), node("a", 1), job("v", "q", ["a"]), urgent)).evicted
