"""Disruption budgets."""

from __future__ import annotations

from msgspec import Struct

from pumice.model.pod import LabelSelector


class PodDisruptionBudget(Struct, frozen=True):
    """A PodDisruptionBudget. ``allowed``: how many of its pods may be disrupted now, as its controller last wrote;
    ``disrupted``: names of pods that are on their way out and counted already, sorted."""

    namespace: str
    name: str
    selector: LabelSelector | None = None
    allowed: int = 0
    disrupted: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"
