"""Checks of the function tables of numa-aware. Its recorded machine has 8 CPUs in 2 sockets, each a NUMA node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from pumice.model.devices.numa import BEST_EFFORT, NONE, RESTRICTED, SINGLE, Cpu, NumaAsk, Numatopology
from pumice.testing.build import cluster, node, pod, podgroup
from pumice.volcano.plugins.numa_aware import NumaAware, is_listed
from pumice.volcano.topology.numa import Hint, Machine, hints, merged, placed
from tests.conformance.tables.objects import opened
from tests.conformance.tables.table import Row, disagreement, table

_MACHINE = Machine([Cpu(i, i // 4, i // 4, i // 2) for i in range(8)], 0)
_POLICIES, _PROVIDER = "plugins-numaaware-policy", "plugins-numaaware-provider-cpumanager"


def _hint(raw: Mapping[str, Any]) -> Hint:
    return Hint(raw["NUMANodeAffinity"], raw.get("Preferred", False))


@table(f"{_POLICIES}/Test_best_effort_predicate.yaml", policy=BEST_EFFORT)
@table(f"{_POLICIES}/Test_none_predicate.yaml", policy=NONE)
@table(f"{_POLICIES}/Test_restricted_predicate.yaml", policy=RESTRICTED)
@table(f"{_POLICIES}/Test_single_numa_node_predicate.yaml", policy=SINGLE)
def hints_merged(row: Row, *, policy: str) -> str | None:
    lists = [[_hint(each) for each in of_one] for given in row["providersHints"] for of_one in given.values()]
    found, admitted = merged(policy, lists, 0b11)
    expected = row.get("expect", row.get("expected"))
    wanted = Hint(None, preferred=False) if expected is None else _hint(expected)
    admits = policy in (BEST_EFFORT, NONE) or wanted.preferred
    return disagreement((found, admitted), (wanted, admits))


def _cpus(raw: Mapping[str, Any]) -> frozenset[int]:
    return frozenset(int(each) for each in raw.get("elems", ()))


@table(f"{_PROVIDER}/Test_GetTopologyHints.yaml")
def hints_for_a_container(row: Row) -> str | None:
    found = hints(_MACHINE, _cpus(row["resNumaSets"]["cpu"]), int(row["container"]["resources"]["requests"]["cpu"]))
    return disagreement(found, [_hint(each) for each in row["expect"]])


@table(f"{_PROVIDER}/Test_Allocate.yaml")
def cpus_for_a_container(row: Row) -> str | None:
    free, count = _cpus(row["resNumaSets"]["cpu"]), int(row["container"]["resources"]["requests"]["cpu"])
    found = placed(_MACHINE, free, row["bestHit"]["NUMANodeAffinity"], count)
    wanted = {key: sorted(value) for key, value in row["expect"].items()}
    return disagreement({"elems": sorted(map(str, found))} if found else {}, wanted)


@table("api/TestCheckNumaPodAssigned.yaml")
def listed_by_the_agent(row: Row) -> str | None:
    info, pod = row["info"], row["podMeta"]
    listed = ((each["uid"], f"{each['namespace']}/{each['name']}") for each in info.get("PodAllocations", ()))
    topology = Numatopology(info["Name"], assigned=tuple(listed))
    found = is_listed(topology, pod["UID"], f"{pod['Namespace']}/{pod['Name']}")
    return disagreement(found, row.get("want", False))


@table("cache/TestAddUnassignedNumaPods_MultiplePodsAccumulateOnSameNode.yaml")
def pods_that_the_agent_does_not_know_of_yet(row: Row) -> str | None:
    """The CPUs of every such pod are taken, beside those of another one on the node."""
    cpus = tuple(Cpu(i, 0, 0, i) for i in range(4))
    topology = Numatopology("n1", "static", SINGLE, cpus, (0, 1, 2, 3))
    own: dict[str, Any] = {"on": "n1", "qos": "Guaranteed", "numa": NumaAsk("", (("c", 1000.0),))}
    each = [pod("other", "g", **own), replace(pod(row["name"], "g", **own), uid=row["UID"], namespace=row["Namespace"])]
    ssn = opened(cluster(node("n1"), topology, podgroup("g"), each), "numa-aware")
    plugin = ssn.hooks.plugin("numa-aware")
    assert isinstance(plugin, NumaAware)
    return disagreement(int(plugin.free.array.sum()), row.get("expected", 2))
