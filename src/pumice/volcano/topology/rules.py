"""Network topology as a session means it: soft wishes have become hard ones with a wide bound, tier names have become
numbers; and where jobs with a topology live.

Source: Volcano adjustNetworkTopologySpec (the PodGroup itself is never changed), removeInvalidAllocatedHyperNode,
recoverAllocatedHyperNode.
"""

from __future__ import annotations

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.counting import HELD, PENDING
from pumice.columns.dtypes import I32, AnyArray, some
from pumice.columns.jobs import PENDING_PHASE
from pumice.columns.tables import Tables
from pumice.framework.cycle.session import Session
from pumice.model.workloads.podgroup import NetworkTopology


def job_bound(tables: Tables, job: int) -> int | None:
    """Highest tier the job may span, None where it is not bound."""
    return _bound(tables, tables.jobs.groups[job].topology, int(tables.tree.tier[-1]))


def sub_bound(tables: Tables, sub: int) -> int | None:
    """Highest tier the sub-job may span; a soft one spans at most what its job may."""
    topology = tables.subs.topologies[sub]
    if topology is None:
        return None
    own = job_bound(tables, int(tables.subs.job[sub]))
    return _bound(tables, topology, int(tables.tree.tier[-1]) if own is None else own)


def has_hard(tables: Tables, job: int) -> bool:
    """Whether the job or one of its sub-jobs is bound."""
    jobs = tables.jobs
    if not jobs.has_topology[job]:
        return False
    return job_bound(tables, job) is not None or any(sub_bound(tables, s) is not None for s in jobs.subs[job])


def _bound(tables: Tables, topology: NetworkTopology | None, widest: int) -> int | None:
    if topology is None:
        return None
    if topology.mode == "soft":
        return widest
    if topology.highest_tier is None and topology.highest_tier_name:
        return tables.tree.tier_of_name.get(topology.highest_tier_name)
    return topology.highest_tier


def nothing_waits(tables: Tables) -> bool:
    """Whether no job waits for anything: no pending task, no PodGroup to admit; and none is in a hypernode or should
    be, which is found out at the beginning of a session."""
    jobs = tables.jobs
    if np.count_nonzero(jobs.counts[:, PENDING]):  # rows that are not in use count none; mostly this says it all
        return False
    return not some(((jobs.phase == PENDING_PHASE) & jobs.alive) | jobs.has_topology | (jobs.hypernode >= 0))


def recover_hypernodes(ssn: Session) -> None:
    """Find where jobs with a topology live, from the nodes their tasks are on; forget it for jobs that hold nothing.

    Only looks at jobs where something is missing or stale.
    """
    tables, put = ssn.tables, ssn.journal.put
    jobs, subs = tables.jobs, tables.subs
    if not tables.tree.ready or not (some(jobs.has_topology) or some(jobs.hypernode >= 0)):
        return
    held = jobs.counts @ HELD
    for job in (jobs.alive & (jobs.hypernode >= 0) & (held == 0)).nonzero()[0].tolist():
        put(jobs["hypernode"], job, -1)
        put(subs["hypernode"], list(jobs.subs[job]), -1)
        ssn.trace.moved.add(job)
    for job in (jobs.alive & jobs.has_topology & (jobs.queue >= 0) & (held > 0)).nonzero()[0].tolist():
        changed = False
        for sub in jobs.subs[job]:
            if subs.topologies[sub] is None or subs.hypernode[sub] >= 0:
                continue
            found = _home_of(tables, subs.tasks[sub])
            if found >= 0:
                put(subs["hypernode"], sub, found)
                changed = True
        if changed or jobs.hypernode[job] < 0:
            home = -1
            for sub in jobs.subs[job]:
                home = tables.tree.lca(home, int(subs.hypernode[sub]))
            if home != jobs.hypernode[job]:
                put(jobs["hypernode"], job, home)
                ssn.trace.moved.add(job)
    ssn.journal.forget()


def _home_of(tables: Tables, rows: AnyArray) -> int:
    """The lowest hypernode that holds every placed task, -1 when nothing is placed."""
    tasks = tables.tasks
    nodes: I32 = tasks.node[rows][HELD[tasks.status[rows]].astype(bool)]
    home = -1
    for node in distinct(nodes[nodes >= 0]).tolist():
        home = tables.tree.lca(int(tables.tree.leaf_of[node]), home)
    return home
