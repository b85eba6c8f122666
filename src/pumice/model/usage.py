"""How busy nodes really are, as somebody measured it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """What a node's programs use: ``cpu`` and ``memory`` in percent of what the machine has, the mean of the last ten
    minutes; ``at``: when that was measured, seconds since the epoch, 0 where it never was."""

    name: str
    cpu: float
    memory: float
    at: float = 0.0
