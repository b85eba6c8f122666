"""How busy a node is, from its decoded object: Pumice's own kind, for clusters that are files."""

from __future__ import annotations

from pumice.model.manifest.fields import Obj, amount, instant, name, table
from pumice.model.usage import NodeUsage

#: Of one machine, in percent: what programs ask for more than once may be counted so.
PERCENT_MAX = 1e4


def read_node_usage(obj: Obj) -> NodeUsage:
    status = table(obj, "status", "")
    return NodeUsage(
        name=name(table(obj, "metadata", ""), "name", "metadata"),
        cpu=_percent(status, "cpuPercent"),
        memory=_percent(status, "memoryPercent"),
        at=instant(status, "measuredAt", "status") or 0.0,
    )


def _percent(status: Obj, key: str) -> float:
    return amount(status, key, "status", 0.0, 0.0, PERCENT_MAX, or_else=PERCENT_MAX)
