"""What is nearest in the way of jobs and pods."""

from __future__ import annotations

import pytest

from pumice.model.blockers import Blocker, GangPartial, KeptApart, Shortage
from pumice.model.pod import Affinity, LabelSelector, PodAffinityTerm, Requirement
from pumice.reasons.blockers import Blockers
from pumice.reasons.nearest import NearestBlockers, why_pods_wait
from pumice.runtime.one_cycle import schedule_once
from pumice.testing.build import cluster, node, pod, podgroup, policy, queue, resource, run

FROM_B = PodAffinityTerm("kubernetes.io/hostname", LabelSelector((Requirement("app", "In", ("b",)),)), ("ns",))
AWAY_FROM_B = Affinity(anti_required=(FROM_B,))
CONF = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: overcommit}]
"""


def test_of_equal_gangs_each_is_told_what_is_in_its_own_way() -> None:
    """Both fail as one on a node with one core, and one of them keeps away from its own label as well."""
    objects = [node("n", cpu=1), queue("c")]
    for name, labels in (("plain", {}), ("own", {"app": "b"})):
        objects.append(podgroup(name, 2, queue="c", phase="Inqueue"))
        objects += [pod(f"{name}-{i}", name, 1, labels=labels, affinity=AWAY_FROM_B) for i in range(2)]
    outcome = run(cluster(objects), policy(CONF)).outcome
    assert len(set(outcome.tables.jobs.signature[outcome.live_jobs].tolist())) == 1
    first = {
        key: each.first for key, each in NearestBlockers(outcome).by_key().items() if isinstance(each, GangPartial)
    }
    assert isinstance(first["ns/plain"], Shortage) and isinstance(first["ns/own"], KeptApart)


def test_a_pod_that_was_tried_has_the_text_of_its_language_and_another_what_is_nearest() -> None:
    objects = [node("n", cpu=4), queue("c")]
    for name, cpu, phase in (("tried", 5, "Inqueue"), ("asks", 9, "Pending")):
        objects += [podgroup(name, 1, queue="c", phase=phase, min_resources=resource(cpu)), pod(f"{name}-0", name, cpu)]
    found = why_pods_wait(NearestBlockers(run(cluster(objects), policy(CONF)).outcome))
    assert found["ns/tried-0"] == "0/1 nodes are unavailable: 1 Insufficient cpu."
    assert found["ns/asks-0"] == "the cluster has 4 cores, it asks for 9"


def test_a_gate_of_a_pod_is_named_for_that_pod_alone() -> None:
    objects = [node("n", cpu=1), queue("c"), podgroup("g", 1, queue="c", phase="Inqueue")]
    objects += [pod("held", "g", 1, gates=("example.com/wait",)), pod("large", "g", 2)]
    found = why_pods_wait(NearestBlockers(run(cluster(objects), policy(CONF)).outcome))
    assert found["ns/held"] == "held back by its scheduling gate example.com/wait"
    assert found["ns/large"].startswith("0/1 nodes are unavailable")


def test_pods_and_hints_of_one_cycle_share_the_nearest_blocker_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, nearest = list[int](), Blockers.nearest

    def counted(self: Blockers, job: int) -> Blocker:
        asked.append(job)
        return nearest(self, job)

    monkeypatch.setattr(Blockers, "nearest", counted)
    objects = [node("n", cpu=4), queue("c"), podgroup("g", 1, queue="c", min_resources=resource(9)), pod("g-0", "g", 9)]
    answer = schedule_once(objects, policy(CONF), 1_000.0)
    assert answer.unscheduled["ns/g-0"] == answer.hints["ns/g"] == "the cluster has 4 cores, it asks for 9"
    assert len(asked) == 1
