"""Nodes as the API server describes them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pumice.model.pod import EMPTY_MAP
from pumice.model.resources import EMPTY, Resource


class Taint(Struct, frozen=True):
    """A taint of a node, which rejects pods that do not tolerate it."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


# With its size, because the score of ImageLocality is by bytes that need not be pulled.
class NodeImage(Struct, frozen=True):
    """A container image on a node, with all its names."""

    names: tuple[str, ...]
    size_bytes: int


class Node(Struct, frozen=True):
    """A node.

    ``allocatable``: status.allocatable in canonical units, to which ``oversubscription`` is added. ``unparsable``:
    fields that could not be read, and why; the node is ``unschedulable`` then if they may have forbidden something.
    """

    name: str
    allocatable: Resource
    capacity: Resource = EMPTY
    # Apart from ``allocatable``, which some of Volcano's rules read without it (GetNodeAllocatable).
    oversubscription: Resource = EMPTY
    uid: str = ""
    creation: float = 0.0
    labels: Mapping[str, str] = EMPTY_MAP
    annotations: Mapping[str, str] = EMPTY_MAP
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    images: tuple[NodeImage, ...] = ()
    resource_version: str = ""
    unparsable: tuple[str, ...] = ()

    @property
    def quarantined(self) -> bool:
        """True if an unreadable field may have forbidden something. Such a node accepts no new pods."""
        # Stronger than a cordon: a pod that tolerates cordons is not placed here either.
        return bool(self.unparsable) and self.unschedulable
