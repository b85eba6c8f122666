"""ConfigMaps, of which only the existence counts. Source: KAI, whose predicate looks for those that pods need."""

from __future__ import annotations

from msgspec import Struct


class ConfigMap(Struct, frozen=True):
    """A ConfigMap, without its contents: a scheduler has no use for them, and they may be large or secret."""

    namespace: str
    name: str

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"
