"""What the API server said about a node."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pumice.model.pod import EMPTY_MAP
from pumice.model.resources import EMPTY, Resource


class Taint(Struct, frozen=True):
    """What keeps pods away that do not tolerate it."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


class NodeImage(Struct, frozen=True):
    """A container image that is on a node, by all its names."""

    names: tuple[str, ...]
    size_bytes: int


class Node(Struct, frozen=True):
    """One node. ``allocatable`` is status.allocatable in canonical units; ``oversubscription`` comes on top of it.

    ``unread``: what of it could not be read, and why. It is ``unschedulable`` then, where that may have forbidden
    something.
    """

    name: str
    allocatable: Resource
    capacity: Resource = EMPTY
    oversubscription: Resource = EMPTY
    uid: str = ""
    creation: float = 0.0
    labels: Mapping[str, str] = EMPTY_MAP
    annotations: Mapping[str, str] = EMPTY_MAP
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    images: tuple[NodeImage, ...] = ()
    resource_version: str = ""
    unread: tuple[str, ...] = ()

    @property
    def barred(self) -> bool:
        """Whether what could not be read of it may have forbidden something: then it accepts no new pods, whoever
        tolerates a cordon."""
        return bool(self.unread) and self.unschedulable
