"""The port to a cluster, simulated or behind an API server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pumice.model.decisions import Decision, GateRemoval, PodGroupUpdate, PodNotice, Refusal
from pumice.model.events import News
from pumice.model.queue import QueueUsage
from pumice.model.resources import Resource


class Cluster(Protocol):
    """A cluster to schedule. Calls return at once; their results arrive as events."""

    def drain(self) -> Sequence[News]:
        """Return the events since the last call, oldest first."""
        ...

    def submit(self, decisions: Sequence[Decision]) -> Mapping[int, Refusal]:
        """Bind and evict pods, in this order. Return refusals by index: of those decisions nothing was done."""
        ...

    def write_group(self, update: PodGroupUpdate) -> None:
        """Write a PodGroup's status."""
        ...

    def write_queue(self, name: str, allocated: Resource, usage: QueueUsage | None = None) -> None:
        """Write a queue's status.allocated, and the further status of a queue of KAI."""
        ...

    def remove_gate(self, removal: GateRemoval) -> None:
        """Remove the queue gate from a pod. If it fails, a later cycle requests it again."""
        ...

    def notice(self, notice: PodNotice) -> None:
        """Write a waiting pod's PodScheduled condition and nomination."""
        ...
