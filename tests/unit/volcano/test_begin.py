"""What a session of Volcano's language does before its plugins open."""

from __future__ import annotations

from msgspec.structs import replace

from pumice.framework.plugin.policy_file import Policy
from pumice.model.blockers import Unreadable
from pumice.model.workloads.gang import Gang, TopologyConstraint
from pumice.model.workloads.native_group import NativeGroup
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.policy.conf import loaded_from_text
from pumice.runtime.policy.languages import builtin_registry
from pumice.testing.build import cluster, node, podgroup, pods, session

POLICY = "actions: allocate, kai/consolidation\ntiers: [{plugins: [{name: gang}]}]\n"
ALONE = "tiers: [{plugins: [{name: gang}]}]"


def two_languages() -> Policy:
    return loaded_from_text(POLICY, builtin_registry(), where="conf").policy


def native(name: str, topology: TopologyConstraint | None) -> PodGroup:
    return replace(podgroup(name), gang=Gang(topology=topology), native=NativeGroup("scheduling.k8s.io/v1beta1"))


def test_with_actions_of_two_languages_a_gang_that_must_stay_in_a_label_domain_is_held_back() -> None:
    groups = [native("held", TopologyConstraint("", "rack")), native("free", None), podgroup("volcano", tier=1)]
    ssn = session(cluster(node("a"), *groups, *(pods(each.name, 1) for each in groups)), two_languages())
    jobs = ssn.tables.jobs
    held = {jobs.uids[row] for row in (jobs.alive & jobs.quarantined).nonzero()[0].tolist()}
    assert held == {groups[0].key}
    (entry,) = [each for each in ssn.trace.log if isinstance(each.finding, Unreadable)]
    assert entry.subject == groups[0].key


def test_volcanos_own_actions_hold_no_gang_back() -> None:
    group = native("g", TopologyConstraint("", "rack"))
    ssn = session(cluster(node("a"), group, pods("g", 1)), ALONE)
    assert not (ssn.tables.jobs.alive & ssn.tables.jobs.quarantined).any()
