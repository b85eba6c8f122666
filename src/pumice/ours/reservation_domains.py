"""Within which nodes the pods of a job must be together: the domains in one of which room can be reserved for it."""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import I64, Bool
from pumice.framework.cycle.session import Session
from pumice.placing.derived import derived
from pumice.volcano.topology.rules import common_label, in_label_domain, job_bound, sub_bound

#: Domains that are planned for one job at most, the largest. A plan of each costs as much as one of a job without.
DOMAINS_MAX = 32


def domains_of(ssn: Session, job: int) -> list[Bool | None]:
    """Return the domains in one of which all pods of a job must be, as masks of nodes (N,).

    [None]: it may be anywhere. []: no reservation can say where (domains of sub-groups, or of KAI's topologies).
    """
    tables, jobs = ssn.tables, ssn.tables.jobs
    if jobs.has_policy[job]:
        return []
    if not jobs.has_topology[job]:
        return [None]
    if in_label_domain(tables, job):
        label = common_label(tables, job)
        return [*_of_label(ssn, label)] if label else []
    if jobs.groups[job].gang is not None or not tables.tree.ready:
        return []
    bounds = {job_bound(tables, job), *(sub_bound(tables, sub) for sub in jobs.subs[job])} - {None}
    # A name of a tier that no hypernode has bounds nothing.
    if not bounds:
        return [None]
    return [*_of_hypernodes(ssn, min(bound for bound in bounds if bound is not None))]


def needs_all(ssn: Session, job: int) -> bool:
    """Return True if a job starts only where all of its waiting pods have room, and not only its minimum. Source: the
    plugin network-topology-aware of Volcano, which looks for hypernodes with room for all tasks of a sub-job."""
    return bool(ssn.tables.jobs.has_topology[job]) and not in_label_domain(ssn.tables, job)


def _of_label(ssn: Session, label: str) -> list[Bool]:
    """Return the domains of a node label."""
    codes = derived(ssn).label(label).codes
    sizes = np.bincount(codes[codes >= 0])
    return [codes == number for number in _largest(sizes)]


def _of_hypernodes(ssn: Session, bound: int) -> list[Bool]:
    """Return the hypernodes of this tier or below that are in no other of them: what fits in one fits in its parent."""
    tree, found = ssn.tables.tree, list[Bool]()
    parents = np.where(tree.parent >= 0, tree.tier[tree.parent], np.iinfo(np.int64).max)
    rows = ((tree.tier <= bound) & (parents > bound)).nonzero()[0]
    for at in _largest(np.array([len(tree.nodes[row]) for row in rows.tolist()], dtype=np.int64)):
        within = np.zeros(len(tree.leaf_of), dtype=bool)
        within[tree.nodes[int(rows[at])]] = True
        found.append(within)
    return found


def _largest(sizes: I64) -> list[int]:
    """Return the numbers of the domains with the most nodes, as far as they may be planned, ascending."""
    order = np.argsort(-sizes, kind="stable")[:DOMAINS_MAX]
    found: list[int] = np.sort(order[sizes[order] > 0]).tolist()
    return found
