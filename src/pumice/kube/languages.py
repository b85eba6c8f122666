"""What a policy language means on a cluster: whose objects are followed, and names where no flag gives others."""

from __future__ import annotations

from dataclasses import dataclass

from pumice.framework.policy import Policy
from pumice.kube.kinds import FOLLOWED, KAI_FOLLOWED, Kind


@dataclass(frozen=True, slots=True)
class ClusterLanguage:
    """``followed``: the kinds that decide. ``scheduler``: whose pods; ``default_queue``: of PodGroups that name none.

    ``lease``: namespace and name of the Lease by which one of several schedulers leads.
    """

    dialect: str
    followed: tuple[Kind, ...]
    scheduler: str
    default_queue: str
    lease: tuple[str, str]


VOLCANO = ClusterLanguage("volcano", FOLLOWED, "volcano", "default", ("volcano-system", "volcano"))
KAI = ClusterLanguage("kai", KAI_FOLLOWED, "kai-scheduler", "default-queue", ("kai-scheduler", "kai-scheduler"))


def language_of(policy: Policy) -> ClusterLanguage:
    """By the dialect that the policy file names; plugins and actions of another one change nothing about it."""
    return KAI if policy.dialect.name == KAI.dialect else VOLCANO
