"""What the shell asks of a cluster: the same port over a simulated one and over an API server."""

from __future__ import annotations

from typing import Protocol

from pumice.model.decisions import Bind, Evict, PodGroupUpdate, PodNotice, Refusal
from pumice.model.events import Event
from pumice.model.resources import Resource


class Cluster(Protocol):
    """A cluster to schedule. Calls return at once; what comes of them is told as events."""

    def drain(self) -> list[Event]:
        """What happened since the last call, oldest first."""
        ...

    def bind(self, decision: Bind) -> Refusal | None:
        """Put the pod on its node. A refusal means that nothing was done."""
        ...

    def evict(self, decision: Evict) -> Refusal | None:
        """Take the pod off its node."""
        ...

    def write_group(self, update: PodGroupUpdate) -> None:
        """Write a PodGroup's status."""
        ...

    def write_queue(self, name: str, allocated: Resource) -> None:
        """Write a queue's status.allocated."""
        ...

    def notice(self, notice: PodNotice) -> None:
        """Write a waiting pod's PodScheduled condition and nomination."""
        ...
