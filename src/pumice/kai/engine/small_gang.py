"""Place a small gang of different pods together where placing it pod by pod found no room."""

from __future__ import annotations

import numpy as np

from pumice.columns.counting import PENDING
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.kai.engine.chunks import tasks_in_order
from pumice.kai.engine.parts import Part
from pumice.kai.engine.place_part import placer
from pumice.placing.small_gangs import SmallGangs


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
    why, found = placing.why, small.search(rows, len(part.rows))
    if found.cut is not None:
        ssn.trace.tell_of_jobs(np.array([part.job]), found.cut)
    if not found.places:
        return False
    with stmt.trial() as trial:
        for row, node in found.places:
            there = np.zeros(tables.nodes.capacity, dtype=bool)
            there[node] = True
            # The search has counted resources only. Here the plugins answer, and one may refuse the node that it chose.
            if not placing.place(stmt, Part(part.job, {sub: [row]}), there):
                # The reasons against the gang are those that were found pod by pod.
                placing.why = why
                return False
        trial.keep()
    return True
