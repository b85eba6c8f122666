"""What the shell asks of a cluster: the same port over a simulated one and over an API server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pumice.model.decisions import Decision, GateRemoval, PodGroupUpdate, PodNotice, Refusal
from pumice.model.events import News
from pumice.model.queue import QueueUsage
from pumice.model.resources import Resource


class Cluster(Protocol):
    """A cluster to schedule. Calls return at once; what comes of them is told as events."""

    def drain(self) -> Sequence[News]:
        """What happened since the last call, oldest first."""
        ...

    def submit(self, decisions: Sequence[Decision]) -> Mapping[int, Refusal]:
        """Put pods on their nodes and take pods off theirs, in this order. The refusals, by place: of those decisions
        nothing was done."""
        ...

    def write_group(self, update: PodGroupUpdate) -> None:
        """Write a PodGroup's status."""
        ...

    def write_queue(self, name: str, allocated: Resource, usage: QueueUsage | None = None) -> None:
        """Write a queue's status.allocated, and what else the status of a queue of KAI's says."""
        ...

    def take_off_gate(self, removal: GateRemoval) -> None:
        """Take the queue gate off a pod. One that fails comes again with a later cycle."""
        ...

    def notice(self, notice: PodNotice) -> None:
        """Write a waiting pod's PodScheduled condition and nomination."""
        ...
