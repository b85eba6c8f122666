"""Kubernetes' CompositePodGroups: groups of PodGroups that are scheduled together. Source: ``scheduling.k8s.io``,
KEP-6012."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pumice.model.pod import EMPTY_MAP
from pumice.model.workloads.gang import TopologyConstraint
from pumice.model.workloads.podgroup import PodGroupCondition

#: The first part of the name that the tree of a CompositePodGroup has among PodGroups, which may have the same name.
#: No object of the API can have it, because a name contains no colon.
COMPOSITE_PREFIX = "composite:"
#: Levels of groups in one tree: CompositePodGroups, and the PodGroups that are the last level. Source: KEP-6012.
LEVELS_MAX = 4


class CompositePodGroup(Struct, frozen=True):
    """A CompositePodGroup. ``parent``: the one that it belongs to, "" at the top. ``min_groups``: how many of its
    groups must be placed together; 1 under the policy ``basic``, where each is enough for itself. ``leaves_whole``,
    ``never_preempts``: as of a PodGroup. ``unparsable``: fields that could not be read and may forbid something."""

    namespace: str
    name: str
    uid: str
    api_version: str
    queue: str = "default"
    parent: str = ""
    min_groups: int = 1
    topology: TopologyConstraint | None = None
    leaves_whole: bool = False
    never_preempts: bool = False
    priority_class_name: str = ""
    creation: float = 0.0
    labels: Mapping[str, str] = EMPTY_MAP
    annotations: Mapping[str, str] = EMPTY_MAP
    conditions: tuple[PodGroupCondition, ...] = ()
    resource_version: str = ""
    unparsable: tuple[str, ...] = ()
    generation: int = 0

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def tree_name(self) -> str:
        """The name under which it is among PodGroups and sub-groups."""
        return f"{COMPOSITE_PREFIX}{self.name}"


def tree_key(composite: str) -> str:
    """Return the key that the tree of a CompositePodGroup, given by its key, has among PodGroups."""
    namespace, _, name = composite.partition("/")
    return f"{namespace}/{COMPOSITE_PREFIX}{name}"
