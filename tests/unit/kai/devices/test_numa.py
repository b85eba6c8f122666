"""numa: which zones pods get, hold and give back, and what a NodeResourceTopology may get wrong."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.kube.api.encode_objects import object_of
from pumice.kube.binding.bind_requests import request_of
from pumice.model.bind_request import BindRequest
from pumice.model.decisions import Bind, device_grant
from pumice.model.devices.numa import (
    OBSERVED_ANNOTATION,
    PREDICTED_ANNOTATION,
    ContainerRequests,
    NodeResourceTopology,
    NumaZone,
    zone_amounts,
)
from pumice.model.events import Object
from pumice.model.manifest import Decoder
from pumice.model.pod import Pod
from pumice.model.resources import Resource
from tests.unit.kai.cluster import GPU, Ran, cycle, job, node, policy, queue, store

CONF = policy(("allocate",), ("predicates", "proportion", "nodeavailability", "nodeplacement", "numa"))
PREEMPTS = policy(("allocate", "consolidation", "preempt"), ("predicates", "proportion", "priority", "numa"))


def zones(of: str, policy: str, *cpus: int, gpus: int = 0, by_pod: bool = True) -> NodeResourceTopology:
    each = [Resource(1000.0 * count, scalars={GPU: 1000.0 * gpus} if gpus else None) for count in cpus]
    return NodeResourceTopology(of, policy, by_pod, tuple(NumaZone(f"node-{i}", a, a) for i, a in enumerate(each)))


def pods(
    name: str, tasks: list[str], cpus: float, qos: str = "Guaranteed", held: str = "", **more: Any
) -> list[Object]:
    """A job of one gang. ``held``: the annotation with the zones that each pod holds."""
    containers = more.pop("containers", None)
    request = {"request": Resource(1000.0 * cpus, 1e9, {"pods": 1.0, **({GPU: 1000.0} if more.pop("gpu", 0) else {})})}
    found: list[Object] = []
    for each in job(name, "q", tasks, 0, **more):
        if isinstance(each, Pod):
            spec = replace(each.spec, qos=qos, containers=containers, **request)
            notes = {**each.annotations, **({OBSERVED_ANNOTATION: held} if held else {})}
            each = replace(each, spec=spec, annotations=notes)
        found.append(each)
    return found


def zones_of(ran: Ran) -> dict[str, list[str]]:
    """Return the zones that bound pods are expected to get, by pod."""
    found = {}
    for bind in ran.decisions:
        if isinstance(bind, Bind):
            given = device_grant(bind)
            text = dict(given.annotations)[PREDICTED_ANNOTATION] if given is not None else ""
            found[bind.pod.partition("/")[2]] = [zone for zone, _ in zone_amounts(text)]
    return found


@pytest.mark.parametrize(
    ("there", "asked", "found"),
    [
        pytest.param(zones("a", "single-numa-node", 4, 4), ([""] * 2, 3), [["node-0"], ["node-1"]], id="one each"),
        pytest.param(zones("a", "single-numa-node", 4, 4), ([""] * 3, 3), [], id="a third finds no zone"),
        pytest.param(zones("a", "restricted", 4, 4), ([""], 6), [["node-0", "node-1"]], id="over two zones"),
        pytest.param(zones("a", "best-effort", 4, 4), ([""], 9), [[]], id="more than there is, but not refused"),
        pytest.param(zones("a", "none", 4, 4), ([""], 9), [[]], id="not aligned at all"),
        pytest.param(zones("a", "single-numa-node", 4, 4), ([""], 5, "Burstable"), [[]], id="of another QoS class"),
        pytest.param(zones("a", "single-numa-node", 4, 4), ([""], 5.5), [[]], id="CPUs that are shared"),
    ],
)
def test_zones_of_pods_that_are_placed(
    there: NodeResourceTopology, asked: tuple[Any, ...], found: list[list[str]]
) -> None:
    ran = cycle(store(node("a", 0), there, queue("q"), *pods("j", *asked)), CONF)
    assert list(zones_of(ran).values()) == found


def test_devices_are_aligned_for_each_qos_class() -> None:
    there = node("a", 2), zones("a", "single-numa-node", 1, 1, gpus=1), queue("q")
    ran = cycle(store(*there, *pods("j", ["", ""], 8, "Burstable", gpu=1)), CONF)
    assert sorted(zones_of(ran).values()) == [["node-0"], ["node-1"]]


def test_containers_are_aligned_one_after_another() -> None:
    parts = ContainerRequests((Resource(3000.0), Resource(3000.0)), ((Resource(4000.0), False),))
    for by_pod, bound in ((True, False), (False, True)):
        there = zones("a", "single-numa-node", 4, 4, by_pod=by_pod)
        ran = cycle(store(node("a", 0), there, queue("q"), *pods("j", [""], 6, containers=parts)), CONF)
        assert bool(ran.binds) is bound


def test_a_node_that_needs_fewer_zones_is_preferred() -> None:
    there = (node("a", 0), node("b", 0), zones("a", "restricted", 2, 2), zones("b", "restricted", 4, 4), queue("q"))
    assert cycle(store(*there, *pods("j", [""], 4)), CONF).binds == {"j-0": "b"}


@pytest.mark.parametrize(
    ("held", "bound"),
    [
        pytest.param('[{"zone":"node-0","amount":{"cpu":"3"}}]', {"j-0": "a"}, id="a record"),
        pytest.param('[{"zone":"node-7","amount":{"cpu":"3"}}]', {"j-0": "a", "j-1": "a"}, id="an unknown zone"),
        pytest.param("{", {"j-0": "a", "j-1": "a"}, id="no record"),
    ],
)
def test_pods_hold_the_zones_that_were_recorded(held: str, bound: dict[str, str]) -> None:
    there = node("a", 0), zones("a", "single-numa-node", 4, 4), queue("q"), *pods("old", ["a"], 3, held=held)
    assert cycle(store(*there, *pods("j", ["", ""], 3, minimum=1)), CONF).binds == bound


def test_what_an_agent_reports_as_available_counts_if_it_is_trusted() -> None:
    plugins = [{"name": "predicates"}, {"name": "numa", "arguments": {"reconstructAvailable": False}}]
    used = replace(zones("a", "single-numa-node", 4), zones=(NumaZone("node-0", Resource(4000.0), Resource(1000.0)),))
    there = node("a", 0), used, queue("q"), *pods("j", [""], 3)
    assert cycle(store(*there), CONF).binds == {"j-0": "a"}
    assert not cycle(store(*there), policy(("allocate",), plugins)).binds


@pytest.mark.parametrize(
    ("held", "evicted"),
    [
        # Both zones have two CPUs of another pod. One pod of four needs one of them whole.
        pytest.param("node-1", ["old-0"], id="in the other zone"),
        pytest.param("node-0", ["old-0"], id="in the zone that is needed"),
    ],
)
def test_a_victim_that_gets_another_zone_is_moved(held: str, evicted: list[str]) -> None:
    other = {"node-0": "node-1", "node-1": "node-0"}[held]
    there = (
        *(node("a", 0), zones("a", "single-numa-node", 4, 4), queue("q")),
        *pods("old", ["a"], 2, held=_record(held, 2), priority=1),
        *pods("stays", ["a"], 2, held=_record(other, 2), priority=90),
    )
    ran = cycle(store(*there, *pods("j", [""], 4, priority=80)), PREEMPTS)
    assert ran.evicted == evicted
    assert ran.states["old-0"] == "Pipelined@a", "it is to have what is left of the other zone"


def test_a_victim_that_gets_its_own_zone_back_stays() -> None:
    there = (
        *(node("a", 0), zones("a", "single-numa-node", 4, 4), queue("q")),
        *pods("stays", ["a"], 2, held=_record("node-1", 2), priority=90),
        *pods("first", ["a"], 4, held=_record("node-0", 4), priority=2),
        *pods("second", ["a"], 2, held=_record("node-1", 2), priority=1),
    )
    ran = cycle(store(*there, *pods("j", [""], 4, priority=80)), PREEMPTS)
    assert (ran.evicted, ran.states["second-0"]) == (["first-0"], "Running@a")


def _record(zone: str, cpus: int) -> str:
    return f'[{{"zone":"{zone}","amount":{{"cpu":"{cpus}"}}}}]'


def test_a_bind_request_carries_the_zones_and_counts_by_them() -> None:
    there = [node("a", 0), zones("a", "single-numa-node", 4, 4), queue("q"), *pods("j", [""], 3)]
    ran = cycle(store(*there), CONF)
    bind = next(each for each in ran.decisions if isinstance(each, Bind))
    pod = next(each for each in there if isinstance(each, Pod))
    request = Decoder().decode(object_of(request_of(bind, pod)))
    assert isinstance(request, BindRequest) and zone_amounts(request.numa_zones) == (("node-0", Resource(3000.0)),)
    then = cycle(store(*there, request, *pods("k", [""], 3)), CONF)
    assert zones_of(then) == {"k-0": ["node-1"]}


def test_a_topology_is_read_and_written() -> None:
    there = zones("a", "restricted", 4, 4, gpus=1)
    assert Decoder().decode(object_of(there)) == there
