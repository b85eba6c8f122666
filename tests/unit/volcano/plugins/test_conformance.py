"""conformance: what the cluster itself needs is never a victim."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.rows import Candidates, TaskRows
from pumice.columns.views import Job, Task
from pumice.testing.build import cluster, node, pod, podgroup, session
from pumice.volcano.eviction.context import EvictionContext, EvictionKind


@pytest.mark.parametrize(
    ("special", "may_go"),
    [
        pytest.param({}, True, id="anybody"),
        pytest.param({"priority_class_name": "batch"}, True, id="of some class"),
        pytest.param({"priority_class_name": "system-cluster-critical"}, False, id="critical for the cluster"),
        pytest.param({"priority_class_name": "system-node-critical"}, False, id="critical for a node"),
        pytest.param({"namespace": "kube-system"}, False, id="in the system namespace"),
    ],
)
def test_who_may_be_evicted(special: dict[str, Any], may_go: bool) -> None:
    namespace = special.get("namespace", "ns")
    objects = node("n"), podgroup("g", 1, namespace=namespace), pod("p", "g", on="n", **special)
    ssn = session(cluster(*objects, podgroup("w"), pod("w-0", "w")), "tiers: [{plugins: [{name: conformance}]}]")
    plugin, names = ssn.hooks.plugin("conformance"), [each.name for each in ssn.tables.tasks.pods if each is not None]
    row, waiting = np.array([names.index("p")]), Task(ssn.tables, names.index("w-0"))
    assert plugin.evictable(waiting, Candidates(ssn.tables, row)).tolist() == [may_go]
    context = EvictionContext(
        EvictionKind.GANG_PREEMPT, Job(ssn.tables, waiting.job.row), hypernode=ssn.tables.tree.top
    )
    assert plugin.unified_evictable(context, TaskRows(ssn.tables, row)).tolist() == [may_go]
