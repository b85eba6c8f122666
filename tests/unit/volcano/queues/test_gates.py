"""Gates that a queue is asked to take off: whose, when, and what is kept for them until they are placed."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.framework.memo import Memo
from pumice.model.decisions import GateRemoval
from pumice.model.pod import QUEUE_GATE, Pod
from pumice.sim.cluster import SimCluster
from pumice.sim.engine import Engine
from pumice.testing.build import cluster, node, podgroup, pods, policy, queue, resource, run
from pumice.testing.check import check_plugin

CONF = "actions: 'enqueue, allocate'\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: capacity}]}]"
ASKS = {QUEUE_GATE: "true"}
OTHER = "example.com/wait"
ELSEWHERE = (("zone", "that no node is in"),)


def gated(group: str, count: int, **more: Any) -> list[Pod]:
    return pods(group, count, **{"annotations": ASKS, "gates": (QUEUE_GATE,), **more})


def taken_off(*objects: Any, conf: str = CONF) -> tuple[list[str], dict[str, str]]:
    """Pods whose gate is taken off, and what is bound, in one cycle on a node of 16 cores."""
    ran = run(cluster(node("n", 16), queue("q", capability=resource(cpu=4, memory="64Gi")), *objects), conf)
    return [removal.pod for removal in ran.outcome.gates], ran.binds


def group(name: str = "g", minimum: int = 1, **more: Any) -> Any:
    return podgroup(name, minimum, "q", phase="Inqueue", **more)


@pytest.mark.parametrize(
    ("of", "count"),
    [
        pytest.param({}, 2, id="those that ask"),
        pytest.param({"annotations": {}}, 0, id="nobody who does not ask"),
        pytest.param({"annotations": {QUEUE_GATE: "True"}}, 0, id="true is written so"),
        pytest.param({"gates": (QUEUE_GATE, OTHER)}, 0, id="nobody whom others hold too"),
        pytest.param({"gates": (OTHER,)}, 0, id="nobody who has another gate alone"),
        pytest.param({"cpu": 3}, 1, id="no more than the queue may take on"),
        pytest.param({"cpu": 5}, 0, id="nobody whom the queue may not take on"),
    ],
)
def test_whose_gate_is_taken_off(of: dict[str, Any], count: int) -> None:
    found, binds = taken_off(group(), gated("g", 2, **of))
    assert (found, binds) == ([f"ns/g-{i}" for i in range(count)], {})


def test_a_gang_that_does_not_fit_loses_its_gates_all_the_same() -> None:
    """The queue decides, not the nodes: an autoscaler then sees pods that wait for nodes."""
    big = gated("g", 2, cpu=2, node_selector=ELSEWHERE)
    assert taken_off(group(minimum=2), big) == (["ns/g-0", "ns/g-1"], {})


def test_queues_that_may_not_take_more_open_no_gate() -> None:
    closed = queue("q", capability=resource(cpu=4, memory="64Gi"), state="Closed")
    ran = run(cluster(node("n", 16), closed, group(), gated("g", 1)), CONF)
    assert ran.outcome.gates == ()


def test_two_jobs_share_what_the_queue_has_room_for() -> None:
    found, _ = taken_off(group("a"), gated("a", 1, cpu=3), group("b", creation=1.0), gated("b", 1, cpu=3, creation=1.0))
    assert found == ["ns/a-0"]


def test_equal_jobs_lose_their_gates_in_one_cycle() -> None:
    """None of them can be placed now, each for the same reason: that is not why the next one's gate stays."""
    found, _ = taken_off(*(each for name in "abcdef" for each in (group(name), gated(name, 1, cpu=1))))
    assert found == [f"ns/{name}-0" for name in "abcd"]


def test_room_is_kept_for_who_lost_the_gate_until_it_is_placed() -> None:
    """The one that waits for a node holds its place in the queue against one that came later."""
    waits = pods("a", 1, cpu=3, node_selector=ELSEWHERE, annotations=ASKS)
    _, binds = taken_off(group("a"), waits, group("b", creation=1.0), pods("b", 1, cpu=3, creation=1.0))
    assert binds == {}
    _, binds = taken_off(group("a"), pods("a", 1, cpu=3, annotations=ASKS), group("b"), pods("b", 1, cpu=1))
    assert sorted(binds) == ["ns/a-0", "ns/b-0"]  # it does not block itself


def test_room_is_kept_in_ancestors_too() -> None:
    conf = CONF.replace("{name: capacity}", "{name: capacity, enableHierarchy: true}")
    tree = (
        queue("root"),
        queue("top", parent="root", capability=resource(cpu=4, memory="64Gi")),
        queue("left", parent="top"),
        queue("right", parent="top"),
    )
    waits = podgroup("a", 1, "left", phase="Inqueue"), pods("a", 1, cpu=3, node_selector=ELSEWHERE, annotations=ASKS)
    later = podgroup("b", 1, "right", phase="Inqueue", creation=1.0), pods("b", 1, cpu=2, creation=1.0)
    assert run(cluster(node("n", 16), *tree, *waits, *later), conf).binds == {}
    assert run(cluster(node("n", 16), *tree, *later), conf).binds == {"ns/b-0": "n"}


def test_a_cycle_with_a_memory_takes_off_the_same() -> None:
    """What was sent may be lost: as long as the gate is there, each cycle takes it off."""
    state, memo, under = cluster(node("n", 16), queue("q"), group(), gated("g", 2)), Memo(), policy(CONF)
    first = run(state, under, memo=memo).outcome.gates
    assert first == run(state, under, memo=memo).outcome.gates == run(state, under).outcome.gates
    assert first == (GateRemoval("ns/g-0", "ns-g-0"), GateRemoval("ns/g-1", "ns-g-1"))


def test_a_simulated_cluster_takes_off_this_gate_and_no_other() -> None:
    simulated = SimCluster(Engine())
    (pod,) = gated("g", 1, gates=(OTHER, QUEUE_GATE))
    simulated.put(pod)
    simulated.remove_gate(GateRemoval(pod.key, "another"))
    assert simulated.pods[pod.key].gates == (OTHER, QUEUE_GATE)
    simulated.remove_gate(GateRemoval(pod.key, pod.uid))
    assert simulated.pods[pod.key].gates == (OTHER,)


def asks_its_queue(obj: Any, dice: Random) -> Any:
    """Half of all pods ask, whether they are gated, wait or run."""
    if not isinstance(obj, Pod) or dice.random() < 0.5:
        return obj
    return replace(obj, annotations={**obj.annotations, **ASKS})


@pytest.mark.parametrize("hierarchy", [False, True])
def test_capacity_keeps_the_contract_where_room_is_kept(hierarchy: bool) -> None:
    check_plugin("capacity", switches={"enableHierarchy": hierarchy}, seeds=range(3), alter=asks_its_queue)
