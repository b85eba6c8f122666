"""Quotas and budgets say at every moment what their controllers would write."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.model.disruption import PodDisruptionBudget
from pumice.model.pod import LabelSelector, Requirement
from pumice.model.queue import ResourceQuota
from pumice.model.resources import Resource
from pumice.sim.faults import FaultPlan, Faults
from pumice.sim.namespace_status import NamespaceStatus
from pumice.sim.world import Simulation
from tests.unit.sim.kit import FirstFit, job, node, pod, world

PLAN = FaultPlan(
    quiet_after_s=600, node_gone_every_s=150, node_back_after_s=40, pod_deleted_every_s=60, pod_killed_every_s=70
)
ALL = LabelSelector((Requirement("app", "Exists"),))


@pytest.mark.parametrize("seed", range(5))
def test_a_quota_counts_the_pods_that_have_not_ended(seed: int) -> None:
    cluster, controller = world(*(node(f"n{i}") for i in range(4)))
    hard = Resource(9000.0, 0.0, {"pods": 9.0})
    cluster.put(ResourceQuota("ns", "q", hard, limited=("cpu", "pods")))
    cluster.put(ResourceQuota("other", "q", hard, limited=("cpu",)))
    cluster.add_pods({"ns/old": pod("old", 2, node_name="n0", phase="Running")})
    NamespaceStatus(cluster)
    controller.submit_all(job(f"j{i}", 1 + i % 6, seconds=50, at=20 * i) for i in range(30))
    scheduler, seen = FirstFit(cluster), set[float]()

    def check() -> None:
        mine, other = (next(q for q in cluster.objects(ResourceQuota) if q.namespace == ns) for ns in ("ns", "other"))
        there = [each for each in cluster.pods.values() if each.phase not in ("Succeeded", "Failed")]
        cpu = sum(each.spec.request.milli_cpu for each in there)
        assert (mine.used.milli_cpu, mine.used.get("pods")) == (cpu, len(there))
        assert other.used.milli_cpu == 0
        seen.add(cpu)

    Faults(cluster, PLAN, np.random.default_rng(seed), restart=scheduler.reports.clear)
    Simulation(cluster, controller, scheduler, after_event=check).run()
    assert len(seen) > 5


def test_what_a_quota_counts_beside_the_pods_that_are_there_stays() -> None:
    cluster, _ = world(node("n"))
    cluster.add_pods({"ns/old": pod("old", 2, node_name="n", phase="Running")})
    cluster.put(ResourceQuota("ns", "q", Resource(9000.0), Resource(5000.0), ("cpu",)))
    NamespaceStatus(cluster)
    cluster.remove_pod("ns/old")
    (quota,) = cluster.objects(ResourceQuota)
    assert quota.used.milli_cpu == 3000


def test_a_budget_allows_less_while_a_pod_that_it_covers_is_gone() -> None:
    cluster, _ = world(node("n"))
    covered = {f"ns/{name}": pod(name, node_name="n", phase="Running", labels={"app": "web"}) for name in "abc"}
    cluster.add_pods(covered)
    cluster.put(PodDisruptionBudget("ns", "web", ALL, allowed=1))
    NamespaceStatus(cluster)

    def allowed() -> int:
        (budget,) = cluster.objects(PodDisruptionBudget)
        return int(budget.allowed)

    cluster.remove_pod("ns/a")
    assert allowed() == 0
    cluster.remove_pod("ns/b")
    assert allowed() == 0
    cluster.add_pods({"ns/a": replace(covered["ns/a"], uid="again"), "ns/d": pod("d", node_name="n", phase="Running")})
    assert allowed() == 0, "one more that runs is not enough, and d is not covered"
    cluster.add_pods({"ns/b": replace(covered["ns/b"], uid="again")})
    assert allowed() == 1
    cluster.add_pods({"ns/e": replace(covered["ns/b"], name="e", uid="e")})
    assert allowed() == 1, "never more than its status said"
