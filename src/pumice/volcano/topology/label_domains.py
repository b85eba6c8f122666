"""Domains of a node label, in one of which all pods of a Kubernetes PodGroup must be.

Volcano knows domains as HyperNodes only. Source: ``scheduling.k8s.io``, ``schedulingConstraints.topology`` (KEP-5732).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from pumice.columns.counting import ACTIVE
from pumice.columns.dtypes import F64, I32, AnyArray, Bool
from pumice.columns.rows import NodeRows
from pumice.framework.cycle.session import Session
from pumice.placing.batch import placing_of
from pumice.placing.derived import derived
from pumice.placing.gang_tree import domains_held
from pumice.volcano.gangs.readiness import sub_missing
from pumice.volcano.gangs.sub_job import Domain
from pumice.volcano.topology.rules import common_label


def label_domains(ssn: Session, job: int, sub: int, rows: Sequence[int]) -> list[Domain]:
    """Return the domains in which the waiting tasks of a job may have room, that with the least room first.

    If some of its tasks have nodes, it is their domain alone; none if they are in several, or in none.
    """
    tables = ssn.tables
    gang = tables.jobs.groups[job].gang
    assert gang is not None and gang.topology is not None
    # A gang that needs less than all of its tasks may fit where not all of them do.
    need = min(len(rows), max(sub_missing(ssn, sub), 1))
    there = tables.jobs.tasks[job] if int(tables.jobs.counts[job] @ ACTIVE) else ()
    return [
        Domain(ssn, tables.tree.top, NodeRows(tables, within.nonzero()[0]))
        for within in domains_with_room(ssn, gang.topology.required, there, rows, need)
    ]


def domains_with_room(
    ssn: Session,
    label: str,
    members: Sequence[int] | AnyArray,
    rows: Sequence[int],
    need: int,
    only: Bool | None = None,
) -> list[Bool]:
    """Return the domains of a label as masks of nodes (N,): those in which ``need`` of the waiting tasks ``rows`` may
    have room, that with the least room first. ``only``: the nodes that may be used (N,).

    If some of the tasks ``members`` have nodes, it is their domain alone; none if they are in several, or in none.
    """
    found = [each for each in _domains(ssn, label, members, rows, only) if each[0] >= need]
    # Large domains stay whole for gangs that need them.
    return [within for _, _, within in sorted(found, key=lambda each: each[:2])]


def domains_to_vacate(
    ssn: Session, label: str, members: Sequence[int] | AnyArray, rows: Sequence[int], only: Bool | None = None
) -> list[tuple[str, Bool]]:
    """Return the domains of a label in which room may be made for the waiting tasks ``rows``, by name and as masks of
    nodes (N,): that with the most room first, where the fewest must leave. ``members`` and ``only`` as above."""
    found = sorted(_domains(ssn, label, members, rows, only), key=lambda each: (-each[0], each[1]))
    return [(name, within) for _, name, within in found]


def held_domain(ssn: Session, job: int) -> Bool | None:
    """Return the nodes of the domain in which pods of a gang are already, if all of its pods must be in one domain of a
    node label. None if it has no pods on nodes, or may be anywhere. Shape (N,)."""
    label = common_label(ssn.tables, job)
    if not label:
        return None
    codes = derived(ssn).label(label).codes
    held = domains_held(ssn.tables, ssn.tables.jobs.tasks[job], codes)
    # With several an earlier scheduler has broken the constraint, and no node is right.
    return None if held is None else (codes == held[0]) & (len(held) == 1 and held[0] >= 0)


def _domains(
    ssn: Session, label: str, members: Sequence[int] | AnyArray, rows: Sequence[int], only: Bool | None
) -> Iterator[tuple[float, str, Bool]]:
    """Yield the domains in which the tasks may be: how many may have room, the name, and the nodes (N,)."""
    column = derived(ssn).label(label)
    codes, held = column.codes, domains_held(ssn.tables, members, column.codes)
    # Some domain is known already. With several, an earlier scheduler has broken the constraint, and no place is right.
    numbers = range(len(column.values)) if held is None else held if len(held) == 1 and -1 not in held else ()
    usable = codes >= 0 if only is None else (codes >= 0) & only
    room = _room(ssn, rows, np.where(usable, codes, -1), len(column.values))
    for number in numbers:
        yield float(room[number]), column.values[number], usable & (codes == number)


def _room(ssn: Session, rows: Sequence[int], codes: I32, count: int) -> F64:
    """Return how many of the tasks fit in each of ``count`` domains at most, each class counted by itself.
    ``codes``: the domain of each node, -1 for none."""
    feasible, cls = placing_of(ssn).feasible, ssn.tables.tasks.cls
    inside, found = (codes >= 0).nonzero()[0], np.zeros(count)
    for each, tasks in Counter(cls[list(rows)].tolist()).items():
        room = np.bincount(codes[inside], np.maximum(feasible.capacity(each)[inside], 0.0), count)
        # No more than there are tasks of the class: room for one kind must not make up for missing room for another.
        found += np.minimum(room, tasks)
    return found
