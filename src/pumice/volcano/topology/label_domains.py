"""Domains of a node label, in one of which all pods of a Kubernetes PodGroup must be.

Volcano knows domains as HyperNodes only. Source: ``scheduling.k8s.io``, ``schedulingConstraints.topology`` (KEP-5732).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from pumice.columns.counting import ACTIVE
from pumice.columns.dtypes import I32, Bool
from pumice.columns.rows import NodeRows
from pumice.columns.tables import Tables
from pumice.framework.cycle.session import Session
from pumice.placing.batch import placing_of
from pumice.placing.derived import derived
from pumice.volcano.gangs.readiness import sub_missing
from pumice.volcano.gangs.sub_job import Domain


def label_domains(ssn: Session, job: int, sub: int, rows: Sequence[int]) -> list[Domain]:
    """Return the domains in which the waiting tasks of a job may have room, that with the least room first.

    If some of its tasks have nodes, it is their domain alone; none if they are in several, or in none.
    """
    tables = ssn.tables
    gang = tables.jobs.groups[job].gang
    assert gang is not None and gang.topology is not None
    column = derived(ssn).label(gang.topology.required)
    codes, held = column.codes, _held(tables, job, column.codes)
    # Some domain is known already. With several, an earlier scheduler has broken the constraint, and no place is right.
    numbers = range(len(column.values)) if held is None else held if len(held) == 1 and -1 not in held else ()
    found: list[tuple[float, str, Domain]] = []
    for number in numbers:
        within: Bool = codes == number
        room = _room(ssn, rows, within)
        # A gang that needs less than all of its tasks may fit where not all of them do.
        if room >= min(len(rows), max(sub_missing(ssn, sub), 1)):
            nodes = NodeRows(tables, within.nonzero()[0])
            found.append((room, column.values[number], Domain(ssn, tables.tree.top, nodes)))
    # Large domains stay whole for gangs that need them.
    return [domain for _, _, domain in sorted(found, key=lambda each: each[:2])]


def _held(tables: Tables, job: int, codes: I32) -> list[int] | None:
    """Return the domains in which tasks of a job have nodes, None if no task has one."""
    tasks = tables.tasks
    if not int(tables.jobs.counts[job] @ ACTIVE):
        return None
    rows = tables.jobs.tasks[job]
    there = tasks.node[rows[(ACTIVE[tasks.status[rows]] > 0) & (tasks.node[rows] >= 0)]]
    return sorted(set(codes[there].tolist())) or None


def _room(ssn: Session, rows: Sequence[int], within: Bool) -> float:
    """Return how many of the tasks fit on the nodes ``within`` (N,) at most, each class counted by itself."""
    feasible, cls = placing_of(ssn).feasible, ssn.tables.tasks.cls
    found = 0.0
    for each, count in Counter(cls[list(rows)].tolist()).items():
        # No more than there are tasks of the class: room for one kind must not make up for missing room for another.
        found += min(float(np.maximum(feasible.capacity(each)[within], 0.0).sum()), float(count))
    return found
