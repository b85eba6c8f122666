"""Network topology as the session means it: soft wishes have become hard ones with a wide bound, tier names have
become numbers.

Source: Volcano adjustNetworkTopologySpec; the PodGroup itself is never changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.columns.counting import HELD
from pumice.columns.dtypes import I32, AnyArray
from pumice.columns.tables import Tables
from pumice.model.podgroup import NetworkTopology

if TYPE_CHECKING:
    from pumice.framework.session import Session


class TopologyRules:
    """Bounds of jobs and sub-jobs in tier numbers; None: not bound."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._top_tier = int(tables.tree.tier[-1])

    def job_bound(self, job: int) -> int | None:
        """Highest tier the job may span."""
        return self._bound(self._tables.jobs.groups[job].topology, self._top_tier)

    def sub_bound(self, sub: int) -> int | None:
        """Highest tier the sub-job may span; a soft one spans at most what its job may."""
        topology = self._tables.subs.topologies[sub]
        if topology is None:
            return None
        own = self.job_bound(int(self._tables.subs.job[sub]))
        return self._bound(topology, self._top_tier if own is None else own)

    def has_hard(self, job: int) -> bool:
        """Whether the job or one of its sub-jobs is bound."""
        jobs = self._tables.jobs
        if not jobs.has_topology[job]:
            return False
        return self.job_bound(job) is not None or any(self.sub_bound(s) is not None for s in jobs.subs[job])

    def _bound(self, topology: NetworkTopology | None, widest: int) -> int | None:
        if topology is None:
            return None
        if topology.mode == "soft":
            return widest
        if topology.highest_tier is None and topology.highest_tier_name:
            return self._tables.tree.tier_of_name.get(topology.highest_tier_name)
        return topology.highest_tier


def recover_hypernodes(ssn: Session) -> None:
    """Find where jobs with a topology live, from the nodes their tasks are on; forget it for jobs that hold nothing.

    Only looks at jobs where something is missing or stale. Source: Volcano removeInvalidAllocatedHyperNode and
    recoverAllocatedHyperNode.
    """
    tables = ssn.tables
    jobs, subs = tables.jobs, tables.subs
    if not jobs.has_topology.any() and not (jobs.hypernode >= 0).any():
        return
    held = jobs.counts @ HELD
    for job in (jobs.alive & (jobs.hypernode >= 0) & (held == 0)).nonzero()[0].tolist():
        jobs.hypernode[job] = -1
        subs.hypernode[list(jobs.subs[job])] = -1
        ssn.moved_hypernodes.add(job)
    for job in (jobs.alive & jobs.has_topology & (jobs.queue >= 0) & (held > 0)).nonzero()[0].tolist():
        changed = False
        for sub in jobs.subs[job]:
            if subs.topologies[sub] is None or subs.hypernode[sub] >= 0:
                continue
            found = _home_of(tables, subs.tasks[sub])
            if found >= 0:
                subs.hypernode[sub] = found
                changed = True
        if changed or jobs.hypernode[job] < 0:
            home = -1
            for sub in jobs.subs[job]:
                home = tables.tree.lca(home, int(subs.hypernode[sub]))
            if home != jobs.hypernode[job]:
                jobs.hypernode[job] = home
                ssn.moved_hypernodes.add(job)


def _home_of(tables: Tables, rows: AnyArray) -> int:
    """The lowest hypernode that holds every placed task, -1 when nothing is placed."""
    tasks = tables.tasks
    nodes: I32 = tasks.node[rows][HELD[tasks.status[rows]].astype(bool)]
    home = -1
    for node in np.unique(nodes[nodes >= 0]).tolist():
        home = tables.tree.lca(int(tables.tree.leaf_of[node]), home)
    return home
