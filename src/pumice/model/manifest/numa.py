"""Decode Numatopologies. Source: Volcano's custom resource in nodeinfo.volcano.sh."""

from __future__ import annotations

from math import ceil

from pumice.model.devices.numa import CPUS_MAX, NUMA_NODES_MAX, Cpu, Numatopology
from pumice.model.manifest.reading.fields import FieldError, Obj, at, name, shown, table, tables, text
from pumice.model.quantity import QuantityError, milli_value

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
