"""What a policy language means on a cluster: which objects are followed, and which Lease elects the leader."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pumice.framework.plugin.policy_file import Policy
from pumice.kube.api.kinds import FOLLOWED, KAI_FOLLOWED, KAI_POD_GROUPS, KAI_QUEUES, NODES, Kind
from pumice.model.node import Node
from pumice.model.queue import Queue
from pumice.model.workloads.gang import DEFAULT_NODE_POOL
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.telemetry.kai_metrics import KAI_FAMILIES
from pumice.runtime.telemetry.metrics import Family


class ClusterLanguage(Struct, frozen=True):
    """``followed``: the kinds that decide. ``lease``: namespace and name, unless flags name others. ``metrics``: those
    in addition to Volcano's."""

    dialect: str
    followed: tuple[Kind, ...]
    lease: tuple[str, str]
    metrics: Mapping[str, Family] = {}


VOLCANO = ClusterLanguage("volcano", FOLLOWED, ("volcano-system", "volcano"))
KAI = ClusterLanguage("kai", KAI_FOLLOWED, ("kai-scheduler", "kai-scheduler"), KAI_FAMILIES)


class NodePool(Struct, frozen=True):
    """Objects with a label of one value belong to one scheduler; value "": those without the label.

    Source: KAI, scheduling shards (``--nodepool-label-key``, ``--partition-label-value``).
    """

    label: str = "kai.scheduler/node-pool"
    value: str = ""

    @property
    def name(self) -> str:
        """The name of the pool in conditions."""
        return self.value or DEFAULT_NODE_POOL

    def takes(self, obj: Node | PodGroup | Queue) -> bool:
        return obj.labels.get(self.label, "") == self.value


#: Kinds whose objects belong to pools.
POOLED = (NODES, KAI_POD_GROUPS, KAI_QUEUES)


def language_of(policy: Policy) -> ClusterLanguage:
    """Return the language of the dialect in the policy file. Plugins and actions of another one do not change it."""
    return KAI if policy.dialect.name == KAI.dialect else VOLCANO
