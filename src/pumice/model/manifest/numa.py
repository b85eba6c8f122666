"""Decode Numatopologies (Volcano's custom resource in nodeinfo.volcano.sh) and NodeResourceTopologies (that of
topology.node.k8s.io, as KAI reads it)."""

from __future__ import annotations

import re
from math import ceil

from pumice.model.devices.numa import (
    BEST_EFFORT,
    CPUS_MAX,
    NONE,
    NUMA_NODES_MAX,
    RESTRICTED,
    SINGLE,
    Cpu,
    NodeResourceTopology,
    Numatopology,
    NumaZone,
)
from pumice.model.manifest.reading.fields import FieldError, Obj, at, name, shown, table, tables, text
from pumice.model.quantity import QuantityError, milli_value
from pumice.model.resources import Resource

_ID_MAX = 65_535


def read_numa_topology(obj: Obj) -> Numatopology:
    metadata, spec = table(obj, "metadata", ""), table(obj, "spec", "")
    policies, cpus = table(spec, "policies", "spec"), _cpus(table(spec, "cpuDetail", "spec"))
    resources = table(spec, "numares", "spec")
    cpu = table(resources, "cpu", "spec.numares") if "cpu" in resources else None
    known = {each.id for each in cpus}
    free = None if cpu is None else _cpu_set(text(cpu, "allocatable", "spec.numares.cpu"), "spec.numares.cpu")
    return Numatopology(
        name=name(metadata, "name", "metadata"),
        cpu_policy=text(policies, "CPUManagerPolicy", "spec.policies"),
        topology_policy=text(policies, "TopologyManagerPolicy", "spec.policies"),
        cpus=cpus,
        # CPUs that the machine does not list are dropped, because nothing is known of their place.
        free=None if free is None else tuple(each for each in free if each in known),
        reserved=_reserved(table(spec, "resReserved", "spec")),
        assigned=tuple(
            (text(each, "uid", "spec.podAllocations"), f"{each.get('namespace', '')}/{each.get('name', '')}")
            for each in tables(spec, "podAllocations", "spec")
        ),
    )


def _cpus(detail: Obj) -> tuple[Cpu, ...]:
    """Return the CPUs. Raises: FieldError for invalid numbers, and for more CPUs than a machine has."""
    where = "spec.cpuDetail"
    if len(detail) > CPUS_MAX:
        raise FieldError(where, f"{len(detail)} CPUs", f"at most {CPUS_MAX}")
    found = []
    for key, part in detail.items():
        numbers = [
            _number(key, where),
            *(_number(_part(part, k, where), at(where, key)) for k in ("numa", "socket", "core")),
        ]
        found.append(Cpu(*numbers))
    # All sets of NUMA nodes are tried later, and their number doubles with each node.
    if len({each.numa for each in found}) > NUMA_NODES_MAX:
        raise FieldError(where, f"{len({each.numa for each in found})} NUMA nodes", f"at most {NUMA_NODES_MAX}")
    return tuple(sorted(found, key=lambda each: each.id))


def _part(part: object, key: str, where: str) -> object:
    if not isinstance(part, dict):
        raise FieldError(where, shown(part), "an object")
    return part.get(key, 0)


def _number(value: object, where: str) -> int:
    # Ids are keys of an object, and so texts, but numbers in its values.
    digits = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 6 and int(digits) <= _ID_MAX):
        raise FieldError(where, shown(value), f"a number up to {_ID_MAX}")
    return int(digits)


def _cpu_set(listed: str, where: str) -> list[int]:
    """Return the CPUs in a list such as ``0-3,8``. Raises: FieldError."""
    found: set[int] = set()
    for part in filter(None, (each.strip() for each in listed.split(","))):
        first, dash, last = part.partition("-")
        low, high = _number(first, where), _number(last if dash else first, where)
        # Checked before the range is expanded, because a short text may name a huge one.
        if high < low or high - low > CPUS_MAX or len(found) > CPUS_MAX:
            raise FieldError(where, shown(listed), "a list of CPUs, such as 0-3,8")
        found.update(range(low, high + 1))
    return sorted(found)


def _reserved(reserved: Obj) -> int:
    value = reserved.get("cpu", 0)
    try:
        # Rounded up, because kubelet reserves whole CPUs.
        return min(ceil(max(0, milli_value(value)) / 1000), CPUS_MAX)
    except (QuantityError, TypeError):
        raise FieldError("spec.resReserved.cpu", shown(value), "a quantity >= 0") from None


_POLICIES = {"best-effort": BEST_EFFORT, "restricted": RESTRICTED, "single-numa-node": SINGLE}
#: The older field of a NodeResourceTopology, which names policy and scope in one word.
_OLD_POLICIES = {"BestEffort": BEST_EFFORT, "Restricted": RESTRICTED, "SingleNUMANode": SINGLE}
_OLD_SCOPES = ("PodLevel", "ContainerLevel")


def read_node_resource_topology(obj: Obj) -> NodeResourceTopology:
    attributes = {
        text(each, "name", "attributes"): text(each, "value", "attributes") for each in tables(obj, "attributes", "")
    }
    # Only the first: exporters write one word.
    old = next(iter(obj.get("topologyPolicies") or ()), "")
    policy, by_pod = _old_policy(old if isinstance(old, str) else "")
    # The newer field wins, since an exporter may write both.
    if "topologyManagerPolicy" in attributes:
        policy = _POLICIES.get(attributes["topologyManagerPolicy"].lower(), NONE)
    if "topologyManagerScope" in attributes:
        by_pod = attributes["topologyManagerScope"].lower() == "pod"
    # Zones of other types, such as caches, lie inside of NUMA nodes and would count twice.
    zones = [
        _zone(each, f"zones[{i}]") for i, each in enumerate(tables(obj, "zones", "")) if each.get("type") == "Node"
    ]
    if len(zones) > NUMA_NODES_MAX:
        raise FieldError("zones", f"{len(zones)} of type Node", f"at most {NUMA_NODES_MAX}")
    return NodeResourceTopology(
        name(table(obj, "metadata", ""), "name", "metadata"), policy, by_pod, tuple(sorted(zones, key=_zone_order))
    )


def _old_policy(word: str) -> tuple[str, bool]:
    """Return policy and scope of a word such as ``SingleNUMANodePodLevel``."""
    scope = next((each for each in _OLD_SCOPES if word.endswith(each)), "")
    return _OLD_POLICIES.get(word.removesuffix(scope), NONE), scope == "PodLevel"


def _zone(zone: Obj, path: str) -> NumaZone:
    resources = tables(zone, "resources", path)
    try:
        amounts = [
            Resource.from_list({text(each, "name", path): each[key] for each in resources if each.get(key) is not None})
            for key in ("allocatable", "available")
        ]
    except (QuantityError, TypeError) as error:
        raise FieldError(f"{path}.resources", str(error), "quantities") from None
    return NumaZone(text(zone, "name", path), *amounts)


def _zone_order(zone: NumaZone) -> tuple[int, str]:
    # By number, since "node-10" is after "node-9".
    digits = re.search(r"[0-9]{1,6}$", zone.name)
    return int(digits.group()) if digits else _ID_MAX, zone.name
