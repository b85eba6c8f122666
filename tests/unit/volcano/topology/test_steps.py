"""The steps of trials in domains: more for tasks that filters look at alone, since these are tried one by one."""

from __future__ import annotations

import pytest

from pumice.model.pod import Affinity, LabelSelector, PodAffinityTerm
from pumice.testing.build import cluster, hypernode, node, pod, podgroup, session
from pumice.volcano.topology.domains import steps_in_domains

TERM = Affinity(anti_required=(PodAffinityTerm("host", LabelSelector()),))


@pytest.mark.parametrize(("affinity", "trial"), [(Affinity(), 2 + 7 * 2), (TERM, 2 + 7 * 2 + 3 * 12)])
def test_each_task_with_terms_about_pods_counts_in_each_domain(affinity: Affinity, trial: int) -> None:
    gang = podgroup("g", 3, phase="Inqueue", tier=1), *(pod(f"g-{i}", "g", affinity=affinity) for i in range(3))
    ssn = session(cluster(node("a"), node("b"), hypernode("r0", 1, ["a"]), hypernode("r1", 1, ["b"]), *gang))
    assert steps_in_domains(ssn, 0) == trial * len(ssn.tables.tree.names)
