"""Decode the load of nodes and the history of queues: kinds of Pumice, for clusters in files."""

from __future__ import annotations

from pumice.model.manifest.reading.fields import Obj, amount, instant, name, table
from pumice.model.usage import NodeUsage, QueueHistory

#: Percent of one machine. Above 100, because load may be counted more than once.
PERCENT_MAX = 1e4
#: Shares of a cluster. Above 1, because a queue may have had more than a smaller cluster has now.
SHARE_MAX = 1e4
_SHARES = ("cpuShare", "memoryShare", "gpuShare")


def read_node_usage(obj: Obj) -> NodeUsage:
    status = table(obj, "status", "")
    return NodeUsage(
        name=name(table(obj, "metadata", ""), "name", "metadata"),
        cpu=_percent(status, "cpuPercent"),
        memory=_percent(status, "memoryPercent"),
        at=instant(status, "measuredAt", "status") or 0.0,
    )


def read_queue_history(obj: Obj) -> QueueHistory:
    status = table(obj, "status", "")
    cpu, memory, gpu = (amount(status, key, "status", 0.0, 0.0, SHARE_MAX, or_else=SHARE_MAX) for key in _SHARES)
    at = instant(status, "measuredAt", "status") or 0.0
    return QueueHistory(name(table(obj, "metadata", ""), "name", "metadata"), cpu, memory, gpu, at)


def _percent(status: Obj, key: str) -> float:
    return amount(status, key, "status", 0.0, 0.0, PERCENT_MAX, or_else=PERCENT_MAX)
