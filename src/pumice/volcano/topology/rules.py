"""Interpret network topology constraints as a session does, and track which hypernodes jobs occupy.

Soft constraints become hard ones with a wide bound, and tier names become numbers. Source: Volcano
adjustNetworkTopologySpec, which does not change the PodGroup; removeInvalidAllocatedHyperNode,
recoverAllocatedHyperNode.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.counting import HELD, PENDING
from pumice.columns.dtypes import I32, AnyArray, some
from pumice.columns.jobs import PENDING_PHASE
from pumice.columns.tables import Tables
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.policy_file import Policy
from pumice.model.workloads.podgroup import NetworkTopology
from pumice.placing.gang_tree import Member, is_tree, members_of
from pumice.volcano import points


def keeps_within_hypernodes(policy: Policy) -> bool:
    """Return True if a plugin of the policy is known to keep jobs within hypernodes. Without one the constraints of
    jobs bind nothing: the whole cluster is the only domain that the actions try."""
    point = points.hyper_node_gradient_for_job
    return any(option.enabled(point) and option.spec.is_known_at(point) for option in policy.options)


def job_bound(tables: Tables, job: int) -> int | None:
    """Return the highest tier that the job may span, or None if it has no bound."""
    return _bound(tables, tables.jobs.groups[job].topology, int(tables.tree.tier[-1]))


def kept_bound(policy: Policy, tables: Tables, job: int) -> int | None:
    """Return the highest tier that the job may span under a policy, or None if the policy keeps it to no bound."""
    return job_bound(tables, job) if keeps_within_hypernodes(policy) else None


def sub_bound(tables: Tables, sub: int) -> int | None:
    """Return the highest tier that the sub-job may span, or None. A soft constraint allows what the job may span."""
    topology = tables.subs.topologies[sub]
    if topology is None:
        return None
    # A soft bound of a sub-job must not forbid what a hard bound of its job allows.
    own = job_bound(tables, int(tables.subs.job[sub]))
    return _bound(tables, topology, int(tables.tree.tier[-1]) if own is None else own)


def in_label_domain(tables: Tables, job: int) -> bool:
    """Return True if all pods of a job, or of a group in its tree, must be in one domain of a node label."""
    return bool(tables.jobs.has_topology[job]) and tables.jobs.groups[job].native is not None


def common_label(tables: Tables, job: int) -> str:
    """Return the node label in one domain of which all pods of a job must be, "" if there is none, or if groups in its
    tree have domains of their own."""
    gang = tables.jobs.groups[job].gang if in_label_domain(tables, job) else None
    if gang is None or gang.topology is None or any(each.topology is not None for each in gang.sub_groups):
        return ""
    return gang.topology.required


class GroupDomain(NamedTuple):
    """A node label, in one domain of which all pods of a group in a tree must be. ``subs``: the sub-jobs of the
    group."""

    label: str
    subs: tuple[int, ...]


def domains_of_groups(tables: Tables, job: int) -> dict[int, tuple[GroupDomain, ...]]:
    """Return the domains in which each sub-job must be, those of the groups that contain it first, for a tree of which
    some groups have domains of their own. Empty for other jobs."""
    if not (in_label_domain(tables, job) and is_tree(tables, job)):
        return {}
    found: dict[int, tuple[GroupDomain, ...]] = {}

    def walk(member: Member, above: tuple[GroupDomain, ...]) -> None:
        if member.topology is not None:
            above = (*above, GroupDomain(member.topology.required, tuple(member.subs)))
        if member.sub >= 0 and above:
            found[member.sub] = above
        for each in member.inside:
            walk(each, above)

    # The domain of the tree itself is that of the job.
    for each in members_of(tables, job).inside:
        walk(each, ())
    return found


def has_hard(tables: Tables, job: int) -> bool:
    """Return True if the job or one of its sub-jobs has a bound."""
    jobs = tables.jobs
    # One flag settles this for most jobs, without a look at their sub-jobs.
    if not jobs.has_topology[job]:
        return False
    return job_bound(tables, job) is not None or any(sub_bound(tables, s) is not None for s in jobs.subs[job])


def _bound(tables: Tables, topology: NetworkTopology | None, widest: int) -> int | None:
    """Return the highest tier that a constraint allows, or None."""
    if topology is None:
        return None
    if topology.mode == "soft":
        return widest
    if topology.highest_tier is None and topology.highest_tier_name:
        return tables.tree.tier_of_name.get(topology.highest_tier_name)
    return topology.highest_tier


def nothing_waits(tables: Tables) -> bool:
    """Return True if no task is pending, no PodGroup waits for admission, and no job has a topology or occupies a
    hypernode."""
    jobs = tables.jobs
    # The usual answer first, from one column; unused rows count nothing.
    if np.count_nonzero(jobs.counts[:, PENDING]):
        return False
    # Jobs with a topology are checked when a session opens, so such a session is not empty.
    return not some(((jobs.phase == PENDING_PHASE) & jobs.alive) | jobs.has_topology | (jobs.hypernode >= 0))


def recover_hypernodes(ssn: Session) -> None:
    """Find the hypernodes of jobs with a topology from the nodes of their tasks, and clear those of jobs that hold
    nothing."""
    tables, put = ssn.tables, ssn.journal.put
    jobs, subs = tables.jobs, tables.subs
    # Without a tree no hypernode can be found, and those that are remembered may come back with it.
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
            # A hypernode that was remembered stays: it is where the sub-job was placed, and its pods may span less of
            # it now.
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
    # These writes correct the snapshot and must not be rolled back with a statement.
    ssn.journal.forget()


def _home_of(tables: Tables, rows: AnyArray) -> int:
    """Return the lowest hypernode that contains every placed task, or -1."""
    tasks = tables.tasks
    nodes: I32 = tasks.node[rows][HELD[tasks.status[rows]].astype(bool)]
    home = -1
    for node in distinct(nodes[nodes >= 0]).tolist():
        home = tables.tree.lca(int(tables.tree.leaf_of[node]), home)
    return home
