"""Place a small gang of different pods together where placing it pod by pod found no room."""

from __future__ import annotations

import numpy as np

from pumice.columns.counting import PENDING
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.kai.engine.chunks import tasks_in_order
from pumice.kai.engine.members import members
from pumice.kai.engine.parts import Part, active_of
from pumice.kai.engine.placement.place_part import placer
from pumice.placing.gang_tree import Member, is_tree
from pumice.placing.small_gangs import Searched, SmallGangs
from pumice.placing.small_trees import SmallTrees


def place_small_gang(ssn: Session, small: SmallGangs, stmt: Statement, part: Part) -> bool:
    """Place as many tasks of the part's job as the part has, on idle resources. Return False with nothing changed."""
    placing, tables = placer(ssn), ssn.tables
    # A search counts whole amounts on nodes, and knows neither domains nor devices that are shared.
    if len(part.tasks) != 1 or placing.is_grouped(part.job) or ssn.ledger.devices is not None:
        return False
    (sub,) = part.tasks
    rows = [
        row for row in tasks_in_order(ssn, sub) if tables.tasks.status[row] == PENDING and not tables.tasks.gate[row]
    ]
    if len(part.rows) < 2 or not small.concerns(part.job, rows):
        return False
    return _put(ssn, stmt, part.job, small.search(rows, len(part.rows)), len(part.rows))


def place_small_tree(ssn: Session, trees: SmallTrees, stmt: Statement, job: int) -> bool:
    """Place groups of a tree that make up its minimum, on idle resources. Return False with nothing changed."""
    tables = ssn.tables
    if not is_tree(tables, job) or ssn.ledger.devices is not None:
        return False

    def needed(member: Member) -> list[int] | None:
        """Return the tasks that a pod set lacks of its minimum, None if it has too few."""
        missing = member.least - (active_of(tables, member.sub) if member.sub >= 0 else 0)
        waiting = tasks_in_order(ssn, member.sub) if missing > 0 and member.sub >= 0 else ()
        rows = [row for row in waiting if tables.tasks.status[row] == PENDING and not tables.tasks.gate[row]]
        return rows[: max(missing, 0)] if len(rows) >= missing else None

    found = trees.search(members(ssn, job), needed)
    return _put(ssn, stmt, job, found, len(found.places))


def _put(ssn: Session, stmt: Statement, job: int, found: Searched, least: int) -> bool:
    """Place tasks where a search found room for them, up to the first that is refused, and at ``least`` so many. Return
    False with nothing changed."""
    placing, tables = placer(ssn), ssn.tables
    if found.cut is not None:
        ssn.trace.tell_of_jobs(np.array([job]), found.cut)
    if not found.places:
        return False
    with stmt.trial() as trial:
        for placed, (row, node) in enumerate(found.places):
            there = np.zeros(tables.nodes.capacity, dtype=bool)
            there[node] = True
            # The search has counted resources only. Here the plugins answer, and one may refuse the node that it chose.
            if placing.place(stmt, Part(job, {int(tables.tasks.sub[row]): [row]}), there) is not None:
                if placed < least:
                    return False
                break
        trial.keep()
    return True
