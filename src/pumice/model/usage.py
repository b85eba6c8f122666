"""How busy nodes really are, and what queues had of the cluster lately, as somebody measured it."""

from __future__ import annotations

from msgspec import Struct


class NodeUsage(Struct, frozen=True):
    """What a node's programs use: ``cpu`` and ``memory`` in percent of what the machine has, the mean of the last ten
    minutes; ``at``: when that was measured, seconds since the epoch, 0 where it never was."""

    name: str
    cpu: float
    memory: float
    at: float = 0.0


class QueueHistory(Struct, frozen=True):
    """Which part of all ``cpu``, ``memory`` and ``gpu`` of the cluster a queue had over a window that ended ``at`` a
    moment, seconds since the epoch: 0 to 1, more where the cluster was larger than is known. Source: KAI usage
    database."""

    name: str
    cpu: float
    memory: float
    gpu: float
    at: float = 0.0
