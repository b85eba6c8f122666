"""Volumes, claims for volumes, and where volumes can be provisioned.

Source: Kubernetes core/v1, storage.k8s.io/v1.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pumice.model.pod import EMPTY_MAP, LabelSelector, NodeSelectorTerm

#: Access mode of a claim that only one pod at a time can use.
ONCE_POD = "ReadWriteOncePod"
#: Provisioner of classes for which no volumes are made: only existing volumes can be bound.
NO_PROVISIONER = "kubernetes.io/no-provisioner"


class PersistentVolumeClaim(Struct, frozen=True):
    """A PersistentVolumeClaim. ``volume``: the volume that it has or will have. ``bound``: claim and volume name each
    other. ``lost``: its volume no longer exists. ``node``: node for which a volume is being provisioned. ``size``:
    bytes."""

    namespace: str
    name: str
    uid: str = ""
    class_name: str = ""
    volume: str = ""
    bound: bool = False
    lost: bool = False
    # The scheduler must keep the pod on this node: the provisioner makes a volume that may be reachable only there.
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


# By key of the claim and not by claim: either may be seen before the other exists.
class PersistentVolume(Struct, frozen=True):
    """A PersistentVolume. ``claim``: its claim (``namespace/name``), "" for none; ``claim_uid``: UID of that claim.
    ``nodes``: where it can be used, None for everywhere. ``driver`` and ``handle``: of CSI."""

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


# Immediate binding has been done before the scheduler sees the claim, so ``waits`` is all that matters of the mode.
class StorageClass(Struct, frozen=True):
    """A StorageClass. ``waits``: volumes are bound or provisioned when their pod has a node. ``nodes``: where volumes
    can be provisioned, None for everywhere."""

    name: str
    provisioner: str = NO_PROVISIONER
    waits: bool = False
    nodes: tuple[NodeSelectorTerm, ...] | None = None


# Beside the node, because its drivers write it, each when it starts.
class CSINode(Struct, frozen=True):
    """How many volumes of each driver a node takes. Drivers without a limit are not listed."""

    name: str
    limits: tuple[tuple[str, int], ...] = ()


class CSIStorageCapacity(Struct, frozen=True):
    """How many bytes a class has left on the nodes that ``nodes`` selects, and its largest volume."""

    namespace: str
    name: str
    class_name: str
    nodes: LabelSelector | None = None
    capacity: float = 0.0
    # A class may have enough bytes in total, and still no room for one volume of that size.
    largest: float | None = None

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"
