"""Claims of devices (dynamic resource allocation), as far as quotas count them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ResourceClaim:
    """``devices``: how many of each device class it asks for, sorted by class."""

    namespace: str
    name: str
    devices: tuple[tuple[str, int], ...] = ()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ResourceClaimTemplate:
    """What every claim that is made from it asks for."""

    namespace: str
    name: str
    devices: tuple[tuple[str, int], ...] = ()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"
