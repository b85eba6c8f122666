"""A nomination is kept while its node has room for the pod, now or when what leaves has left."""

from __future__ import annotations

import pytest

from pumice.placing.batch import placing_of
from pumice.placing.nominations import kept_nominations
from pumice.testing.build import cluster, node, pod, podgroup, session


@pytest.mark.parametrize(("taken", "leaves", "kept"), [(0, False, True), (2, False, False), (2, True, True)])
def test_a_nomination_is_kept_while_its_node_has_room(taken: int, leaves: bool, kept: bool) -> None:
    old = podgroup("old", 1, phase="Running"), pod("old-0", "old", taken, on="n", deletion=1.0 if leaves else None)
    waits = podgroup("g", 1, phase="Inqueue"), pod("g-0", "g", 2, nominated_node="n")
    ssn = session(cluster(node("n", 2), *old, *waits))
    found = [ssn.tables.jobs.groups[row].name for row in kept_nominations(ssn.tables.tasks, placing_of(ssn).feasible)]
    assert found == (["g"] if kept else [])
