"""Place a gang of different pods together where placing it pod by pod found no room."""

from __future__ import annotations

import numpy as np

from pumice.columns.rows import NodeRows
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.placing.batch import placing_of
from pumice.placing.small_gangs import Searched, SmallGangs
from pumice.volcano.gangs.attempt import OpenAttempt
from pumice.volcano.gangs.readiness import sub_missing


def place_small_gang(
    ssn: Session, small: SmallGangs, stmt: Statement, sub: int, rows: list[int], attempt: OpenAttempt
) -> bool:
    """Place as many of the tasks as the sub-job misses, on idle resources. Return False if nothing was placed."""
    found = small.search(rows, sub_missing(ssn, sub))
    # What a search found rests on all nodes and all tasks, so an equal gang may not share it. Where counting refutes
    # the gang it fails as it would without.
    attempt.unlike_others = attempt.unlike_others or not found.is_refuted
    return put_found(ssn, stmt, found, attempt)


def put_found(ssn: Session, stmt: Statement, found: Searched, attempt: OpenAttempt) -> bool:
    """Place tasks where a search found room for what their sub-jobs lack. Return False if nothing was placed."""
    if found.cut is not None:
        attempt.findings.append(found.cut)
    if not found.places:
        return False
    mark, subs = stmt.mark(), sorted({int(ssn.tables.tasks.sub[row]) for row, _ in found.places})
    # Up to the first that is refused, which may be one beyond the minimum.
    all(_put(ssn, stmt, row, node, attempt) for row, node in found.places)
    # Half of a gang placed here might take the nodes that pod-by-pod placement of another needs.
    if any(sub_missing(ssn, sub) for sub in subs):
        stmt.rollback(mark)
        return False
    for sub in subs:
        attempt.forget(sub)
    return True


def _put(ssn: Session, stmt: Statement, row: int, node: int, attempt: OpenAttempt) -> bool:
    """Place a task on a node, if filters and its queue agree after those before it."""
    queue = int(ssn.tables.jobs.queue[ssn.tables.subs.job[ssn.tables.tasks.sub[row]]])
    if not attempt.allowed(queue, [row], stmt).tasks:
        return False
    choice = placing_of(ssn).choose(row, NodeRows(ssn.tables, np.array([node])), explain=False)
    return choice.node >= 0 and choice.idle and stmt.allocate([row], [choice.node]) is None
