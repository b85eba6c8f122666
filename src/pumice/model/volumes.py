"""Volumes that pods ask for by claims, and what says where they can be had.

Source: Kubernetes core/v1, storage.k8s.io/v1.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pumice.model.pod import EMPTY_MAP, LabelSelector, NodeSelectorTerm

#: Only one pod at a time may use a claim of this mode.
ONCE_POD = "ReadWriteOncePod"
#: Of a class of which nothing is made: only volumes that are there can be bound.
NO_PROVISIONER = "kubernetes.io/no-provisioner"


class PersistentVolumeClaim(Struct, frozen=True):
    """A PersistentVolumeClaim. ``volume``: the one it has, or is to have. ``bound``: that both say so. ``lost``: its
    volume is gone. ``node``: for which a volume is being made. ``size``: bytes."""

    namespace: str
    name: str
    uid: str = ""
    class_name: str = ""
    volume: str = ""
    bound: bool = False
    lost: bool = False
    node: str = ""
    modes: tuple[str, ...] = ()
    volume_mode: str = "Filesystem"
    size: float = 0.0
    selector: LabelSelector | None = None
    deleting: bool = False

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class PersistentVolume(Struct, frozen=True):
    """A PersistentVolume. ``claim``: whose it is (``namespace/name``), empty for nobody's; ``claim_uid``: of that very
    one. ``nodes``: where it can be used, None everywhere. ``driver`` and ``handle``: of CSI."""

    name: str
    class_name: str = ""
    claim: str = ""
    claim_uid: str = ""
    modes: tuple[str, ...] = ()
    volume_mode: str = "Filesystem"
    size: float = 0.0
    nodes: tuple[NodeSelectorTerm, ...] | None = None
    labels: Mapping[str, str] = EMPTY_MAP
    driver: str = ""
    handle: str = ""
    available: bool = True


class StorageClass(Struct, frozen=True):
    """``waits``: a volume is bound or made when a pod that wants it has its node. ``nodes``: where volumes can be made
    for, None everywhere."""

    name: str
    provisioner: str = NO_PROVISIONER
    waits: bool = False
    nodes: tuple[NodeSelectorTerm, ...] | None = None


class CSINode(Struct, frozen=True):
    """How many volumes of each driver a node takes; drivers without a limit are left out."""

    name: str
    limits: tuple[tuple[str, int], ...] = ()


class CSIStorageCapacity(Struct, frozen=True):
    """How many bytes a class has left for the nodes that ``nodes`` selects, and the largest volume among them."""

    namespace: str
    name: str
    class_name: str
    nodes: LabelSelector | None = None
    capacity: float = 0.0
    largest: float | None = None

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"
