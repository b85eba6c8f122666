"""Actions that changed nothing.

Where jobs wait and there is no room for them, cycle after cycle asks the same questions. What an action found then is
an answer like any other: it holds as long as all that the action could see is the same, and what was told is told
again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.trace import Said
from pumice.framework.memo import Ground, ground_of_rows
from pumice.framework.plugin.point import Question
from pumice.framework.plugin.resolution import Reading


def act(ssn: Session, what: str, rows: AnyArray, asks: tuple[Question, ...], run: Callable[[], None]) -> None:
    """Run an action for some jobs, by row, of which it looks at no others; ``what`` names it and its arguments,
    ``asks`` are the points at which it asks.

    It is not run where it changed nothing when all was the same: what it told then is told again.
    """
    trace = ssn.trace
    noted = np.count_nonzero(trace.failed_as[rows]) or not trace.errors.keys().isdisjoint(rows.tolist())
    if noted or ssn.policy.python_plugins:  # an action goes by what earlier ones found; plugins may keep anything
        run()
        return
    rests_on = _rests_on(ssn, rows, ssn.hooks.reading(*asks, rows=True))
    known: Said | None = ssn.memo.recall(("in vain", what), rests_on)
    if known is not None:
        trace.say_again(known)
        return
    mark, begun = trace.mark(), ssn.tables.versions.next()
    run()
    said = trace.said_since(mark)
    if said is not None and not _has_written(ssn, begun):
        ssn.memo.keep(("in vain", what), rests_on, said)


def _rests_on(ssn: Session, rows: AnyArray, reads: Reading) -> Ground:
    """All that an action can see but the rows of other jobs; these too, and the clock, where some plugin reads them."""
    tables = ssn.tables
    jobs = tables.jobs
    return (
        rows.tobytes(),
        ground_of_rows(jobs.stamps, rows),
        tables.nodes.facts.version,
        tables.tree.version,
        *[
            column.version
            for table in (tables.nodes, tables.queues, tables.tasks, tables.subs, tables.classes)
            for column in table.columns.values()
        ],
        *reads.rests_on(ssn.world),
    )


def _has_written(ssn: Session, since: int) -> bool:
    """Whether a write since a version stands; whoever takes a write back takes its version back."""
    return any(column.version > since for column in ssn.world.moving_columns())
