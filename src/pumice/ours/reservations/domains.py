"""Within which nodes the pods of a job must be together: the domains in one of which room can be reserved for it."""

from __future__ import annotations

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.dtypes import I64, AnyArray, Bool
from pumice.columns.tables import Tables
from pumice.framework.cycle.session import Session
from pumice.ours.reservations.room_over_time import Parts
from pumice.placing.derived import derived
from pumice.volcano.topology.rules import (
    domains_of_groups,
    in_label_domain,
    job_bound,
    keeps_within_hypernodes,
    kept_bound,
    sub_bound,
)

#: Domains that are planned for one job at most, the largest. A plan of each costs as much as one of a job without.
DOMAINS_MAX = 32


def domains_of(ssn: Session, job: int, parts: Parts | None) -> list[Bool | None]:
    """Return the domains in one of which all pods of a job must be, as masks of nodes (N,). ``parts``: of the job, from
    ``parts_of``.

    [None]: it may be anywhere. []: no reservation can say where. Then unlike sub-groups have domains of their own, or
    the topology is KAI's, which no action that asks ``ours/reserve`` follows.
    """
    tables, jobs = ssn.tables, ssn.tables.jobs
    if not jobs.has_topology[job]:
        return [None]
    gang = jobs.groups[job].gang
    if (gang is None and not tables.tree.ready) or (gang is not None and not in_label_domain(tables, job)):
        return []
    if jobs.has_policy[job] and _are_apart(ssn, job) and parts is None:
        return []
    if gang is not None:
        return [None] if gang.topology is None else [*_of_label(ssn, gang.topology.required)]
    # A domain that the action does not keep to would be claimed in vain, and room elsewhere given away.
    bound = kept_bound(ssn.policy, tables, job)
    # A name of a tier that no hypernode has bounds nothing.
    return [None] if bound is None else [*_of_hypernodes(ssn, bound)]


def parts_of(ssn: Session, job: int) -> Parts | None:
    """Return the sub-groups of a job if each of them must be within a domain of its own, None if not, or if they are
    unlike.

    Equal sub-groups of equal pods fit if there is room for enough whole ones, in whichever order they are placed. Of
    unlike ones a small one may go where only a large one fits.
    """
    tables, jobs = ssn.tables, ssn.tables.jobs
    if not jobs.has_policy[job] or not _are_apart(ssn, job):
        return None
    subs = list(jobs.subs[job])
    sizes = {len(tables.subs.tasks[sub]) for sub in subs} | {int(tables.subs.min_available[sub]) for sub in subs}
    classes = distinct(tables.tasks.cls[jobs.tasks[job]])
    is_like = len(sizes) == 1 and len({tables.classes.req[cls].tobytes() for cls in classes.tolist()}) == 1
    domain = _domain_of_nodes(ssn, job) if is_like else None
    return None if domain is None else Parts(sizes.pop(), domain)


def needs_all(ssn: Session, job: int) -> bool:
    """Return True if room for a job is room for all of its waiting pods, and not only for its minimum.

    With a topology it starts only there: the plugin network-topology-aware of Volcano looks for hypernodes with room
    for all tasks of a sub-job. Which of its sub-groups make up a minimum depends on the order of plugins.
    """
    jobs = ssn.tables.jobs
    if jobs.has_policy[job]:
        return True
    in_hypernodes = jobs.has_topology[job] and not in_label_domain(ssn.tables, job)
    return bool(in_hypernodes) and keeps_within_hypernodes(ssn.policy)


def _are_apart(ssn: Session, job: int) -> bool:
    """Return True if a sub-group of a job must be within a domain of its own."""
    tables = ssn.tables
    if in_label_domain(tables, job):
        return bool(domains_of_groups(tables, job))
    if not keeps_within_hypernodes(ssn.policy):
        return False
    return any(bound is not None for bound in _bounds_within(tables, job))


def _bounds_within(tables: Tables, job: int) -> list[int | None]:
    """Return for each sub-group the highest tier that it may span, None if its job may span no more."""
    own = job_bound(tables, job)
    widest = int(tables.tree.tier[-1]) if own is None else own
    bounds = [sub_bound(tables, sub) for sub in tables.jobs.subs[job]]
    return [None if bound is None or bound >= widest else bound for bound in bounds]


def _domain_of_nodes(ssn: Session, job: int) -> I64 | None:
    """Return the number of the domain of each node, where each sub-group of a job must be within one domain; None if
    not all of them have domains of one kind. From 1 on, 0 for a node in none. Shape (N,)."""
    tables, subs = ssn.tables, ssn.tables.jobs.subs[job]
    if in_label_domain(tables, job):
        found = domains_of_groups(tables, job)
        groups = {found.get(sub, ()) for sub in subs}
        labels = {group[0].label for group in groups if len(group) == 1 and len(group[0].subs) == 1}
        if len(groups) < len(subs) or len(labels) != 1 or any(len(group) != 1 for group in groups):
            return None
        codes = derived(ssn).label(labels.pop()).codes
    else:
        # Bounds that differ would need places to be counted twice, in domains that overlap.
        bounds = set(_bounds_within(tables, job))
        bound = bounds.pop()
        if bounds or bound is None:
            return None
        codes = np.full(len(tables.tree.leaf_of), -1)
        for number, row in enumerate(_widest_within(tables, bound).tolist()):
            codes[tables.tree.nodes[row]] = number
    return codes.astype(np.int64) + 1


def _of_label(ssn: Session, label: str) -> list[Bool]:
    """Return the domains of a node label."""
    codes = derived(ssn).label(label).codes
    sizes = np.bincount(codes[codes >= 0])
    return [codes == number for number in _largest(sizes)]


def _of_hypernodes(ssn: Session, bound: int) -> list[Bool]:
    """Return the largest of the hypernodes of this tier or below that are in no other of them."""
    tree, found = ssn.tables.tree, list[Bool]()
    rows = _widest_within(ssn.tables, bound)
    for at in _largest(np.array([len(tree.nodes[row]) for row in rows.tolist()], dtype=np.int64)):
        within = np.zeros(len(tree.leaf_of), dtype=bool)
        within[tree.nodes[int(rows[at])]] = True
        found.append(within)
    return found


def _widest_within(tables: Tables, bound: int) -> AnyArray:
    """Return the hypernodes of this tier or below that are in no other of them: what fits in one fits in its parent."""
    tree = tables.tree
    parents = np.where(tree.parent >= 0, tree.tier[tree.parent], np.iinfo(np.int64).max)
    found: AnyArray = ((tree.tier <= bound) & (parents > bound)).nonzero()[0]
    return found


def _largest(sizes: I64) -> list[int]:
    """Return the numbers of the domains with the most nodes, as far as they may be planned, ascending."""
    order = np.argsort(-sizes, kind="stable")[:DOMAINS_MAX]
    found: list[int] = np.sort(order[sizes[order] > 0]).tolist()
    return found
