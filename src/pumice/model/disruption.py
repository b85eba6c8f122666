"""PodDisruptionBudgets."""

from __future__ import annotations

from msgspec import Struct

from pumice.model.pod import LabelSelector


# Its status and not its spec, because the controller has already turned percentages into a number of pods.
class PodDisruptionBudget(Struct, frozen=True):
    """A PodDisruptionBudget. ``allowed``: how many of its pods may be disrupted now, as its controller has written.
    ``disrupted``: names of pods being disrupted, which ``allowed`` already counts, sorted."""

    namespace: str
    name: str
    selector: LabelSelector | None = None
    allowed: int = 0
    disrupted: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"
