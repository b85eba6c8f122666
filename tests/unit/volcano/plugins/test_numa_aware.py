"""numa-aware: which CPUs a pod gets, which nodes are refused, and what an agent may get wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.rows import NodeRows
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.points import class_filters
from pumice.model.devices.numa import BEST_EFFORT, NONE, SINGLE, Cpu, NumaAsk, Numatopology
from pumice.model.manifest import Decoder
from pumice.model.pod import Pod
from pumice.testing.build import cluster, node, pod, podgroup, session
from pumice.volcano.topology.numa import Machine, assigned, hints, merged, take_cpus

CONF = "actions: allocate\ntiers: [{plugins: [{name: numa-aware}]}]"
#: Two sockets of four CPUs, two to a core, each socket a NUMA node.
CPUS = tuple(Cpu(i, i // 4, i // 4, i // 2) for i in range(8))
ALL = frozenset(range(8))


def own(cpu: int = 1, policy: str = "") -> dict[str, Any]:
    return {"cpu": cpu, "qos": "Guaranteed", "numa": NumaAsk(policy, (("main", 1000.0 * cpu),))}


@pytest.mark.parametrize(
    ("free", "count", "found"),
    [
        pytest.param("01234567", 5, "01234", id="a whole socket and one more"),
        pytest.param("1234567", 4, "4567", id="the socket that is whole"),
        pytest.param("0234567", 2, "23", id="a whole core, of the socket that has fewer"),
        pytest.param("0347", 1, "0", id="of equals the first"),
        pytest.param("0134567", 1, "3", id="what is left of a core"),
        pytest.param("0123", 5, None, id="not enough"),
        pytest.param("", 0, "", id="nothing of nothing"),
    ],
)
def test_which_cpus_are_taken(free: str, count: int, found: str | None) -> None:
    cpus = take_cpus(Machine(CPUS, 0), frozenset(map(int, free)), count)
    assert (None if cpus is None else "".join(map(str, sorted(cpus)))) == found


def test_containers_follow_each_other_and_parts_of_a_cpu_are_shared() -> None:
    ask = NumaAsk("", (("a", 3000.0), ("b", 500.0), ("c", 4000.0), ("d", 2000.0)))
    found = assigned(Machine(CPUS, 0), ALL, ask, SINGLE)
    assert (found.cpus, found.refused) == (frozenset(), "d"), "one is left beside a, none beside c"
    assert assigned(Machine(CPUS, 0), ALL, NumaAsk("", ask.containers[:3]), SINGLE).cpus == ALL - {3}


def test_what_the_system_has_is_nobodys() -> None:
    found = assigned(Machine(CPUS, 1), ALL, NumaAsk("", (("a", 4000.0),)), SINGLE)
    assert found.cpus == frozenset((4, 5, 6, 7))


def test_nothing_to_merge_is_admitted_by_those_that_ask_for_nothing() -> None:
    machine = Machine(CPUS, 0)
    asked = [hints(machine, frozenset((3, 4)), 2)]
    assert [merged(policy, asked, 0b11)[1] for policy in (NONE, BEST_EFFORT, SINGLE)] == [True, True, False]


def opened(topology: Numatopology | None, waits: Pod, *there: Pod) -> Session:
    objects = [node("n", 16), *([] if topology is None else [topology]), podgroup("g", phase="Inqueue"), waits, *there]
    return session(cluster(objects), CONF)


def against(ssn: Session) -> str:
    row = next(row for row, each in enumerate(ssn.tables.tasks.pods) if each is not None and each.name == "w")
    filter_results = ssn.ask(class_filters, Task(ssn.tables, row).cls, NodeRows(ssn.tables, np.arange(1)))
    return next((v.why[v.codes[0]][0].reason for v in filter_results if v.codes[0]), "")


STATIC = Numatopology("n", "static", SINGLE, CPUS, tuple(range(8)))


@pytest.mark.parametrize(
    ("topology", "policy", "said"),
    [
        (None, SINGLE, "numa info is empty"),
        (None, "", ""),
        (Numatopology("n", "none", SINGLE, CPUS, (0,)), SINGLE, "cpu manager policy isn't static"),
        (Numatopology("n", "none", SINGLE, CPUS, (0,)), "", ""),
        (STATIC, BEST_EFFORT, f"task topology policy[{BEST_EFFORT}] is different with node[{SINGLE}]"),
        (Numatopology("n", "static", SINGLE, CPUS), SINGLE, "no topo information"),
        (Numatopology("n", "static", SINGLE, CPUS, ()), SINGLE, "cpu allocatable map is empty"),
        (Numatopology("n", "static", NONE, CPUS, ()), "", ""),
        (Numatopology("n", "static", SINGLE, CPUS, (3, 4)), "", "container main cannot be assigned by numa"),
        (STATIC, SINGLE, ""),
    ],
)
def test_objections_to_a_node(topology: Numatopology | None, policy: str, said: str) -> None:
    assert against(opened(topology, pod("w", "g", **own(2, policy)))) == said


def test_a_pod_without_cpus_of_its_own_goes_anywhere() -> None:
    assert against(opened(Numatopology("n", "static", SINGLE, CPUS, ()), pod("w", "g", 2))) == ""


def test_a_pod_that_the_agent_has_not_reported_has_its_cpus_all_the_same() -> None:
    there = pod("t", "g", on="n", **own(4))
    assert against(opened(STATIC, pod("w", "g", **own(4)), there)) == ""
    more = pod("u", "g", on="n", **own(1))
    assert against(opened(STATIC, pod("w", "g", **own(4)), there, more)) == "container main cannot be assigned by numa"
    reports = Numatopology("n", "static", SINGLE, CPUS, (4, 5, 6, 7), assigned=((there.uid, there.key),))
    assert against(opened(reports, pod("w", "g", **own(4)), there)) == ""


# -- what agents write


def topology_of(**spec: Any) -> Numatopology:
    raw = {
        "apiVersion": "nodeinfo.volcano.sh/v1alpha1",
        "kind": "Numatopology",
        "metadata": {"name": "n"},
        "spec": spec,
    }
    found = Decoder().read(raw).value
    assert isinstance(found, Numatopology)
    return found


DETAIL = {str(cpu.id): {"numa": cpu.numa, "socket": cpu.socket, "core": cpu.core} for cpu in CPUS}


def test_a_topology_is_read() -> None:
    found = topology_of(
        policies={"CPUManagerPolicy": "static", "TopologyManagerPolicy": SINGLE},
        cpuDetail=DETAIL,
        numares={"cpu": {"allocatable": "0-2, 7,99", "capacity": 8}},
        resReserved={"cpu": "1500m"},
        podAllocations=[{"uid": "u", "namespace": "a", "name": "b"}],
    )
    assert found == Numatopology("n", "static", SINGLE, CPUS, (0, 1, 2, 7), 2, (("u", "a/b"),))


@pytest.mark.parametrize(
    "spec",
    [
        {"cpuDetail": {"x": {}}},
        {"cpuDetail": {"0": 5}},
        {"cpuDetail": {str(i): {"numa": i} for i in range(64)}},
        {"cpuDetail": {str(i): {} for i in range(5000)}},
        {"cpuDetail": {"9" * 50: {}}},
        {"cpuDetail": DETAIL, "numares": {"cpu": {"allocatable": "0-99999999999"}}},
        {"cpuDetail": DETAIL, "numares": {"cpu": {"allocatable": "3-1"}}},
        {"cpuDetail": DETAIL, "resReserved": {"cpu": "much"}},
        {"cpuDetail": [1]},
    ],
)
def test_a_topology_that_cannot_be_read_has_no_free_cpus(spec: dict[str, Any]) -> None:
    found = topology_of(policies={"CPUManagerPolicy": "static", "TopologyManagerPolicy": SINGLE}, **spec)
    assert (found.free, found.cpus, bool(found.unparsable)) == (None, (), True)
    assert against(opened(found, pod("w", "g", **own(2, SINGLE)))) == "cpu manager policy isn't static"


def test_a_manifest_says_what_is_guaranteed() -> None:
    same = {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}
    raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "annotations": {"volcano.sh/numa-topology-policy": SINGLE}},
        "spec": {"containers": [{"name": "a", "resources": same}]},
    }
    found = Decoder().decode(raw)
    assert isinstance(found, Pod)
    assert found.spec.numa == NumaAsk(SINGLE, (("a", 2000.0),))
    same["limits"] = {"cpu": "3", "memory": "1Gi"}
    burstable = Decoder().decode(raw)
    assert isinstance(burstable, Pod)
    assert burstable.spec.numa is None
