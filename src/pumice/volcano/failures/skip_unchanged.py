"""Skip actions that changed nothing when all was the same.

If jobs wait without room for them, every cycle asks the same questions. The result of an action is an answer like any
other: it holds as long as everything is unchanged that the action could read, and its trace entries are written again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pumice.columns.dtypes import AnyArray
from pumice.framework.cycle.budget import is_carried_on
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.trace import ActionRecord
from pumice.framework.memo import Ground, ground_of_rows
from pumice.framework.plugin.point import Question
from pumice.framework.plugin.resolution import Reading


def act(ssn: Session, what: str, rows: AnyArray, asks: tuple[Question, ...], run: Callable[[], None]) -> None:
    """Run an action for some jobs, unless it changed nothing when everything it reads was the same.

    ``what`` names the action and its arguments; ``rows`` are the jobs, and the action reads no others; ``asks`` are
    the points that it asks. If the action is skipped, its trace entries are written again.
    """
    trace = ssn.trace
    noted = np.count_nonzero(trace.failed_as[rows]) or not trace.errors.keys().isdisjoint(rows.tolist())
    # The action reads what earlier actions found in this cycle, and plugins outside the core may keep any state.
    if noted or ssn.policy.python_plugins or is_carried_on(ssn):
        run()
        return
    rests_on = _rests_on(ssn, rows, ssn.hooks.reading(*asks, rows=True))
    known: ActionRecord | None = ssn.memo.recall(("in vain", what), rests_on)
    if known is not None:
        trace.say_again(known)
        return
    # A version of its own, so that any later write has a greater one.
    mark, begun = trace.mark(), ssn.tables.versions.next()
    run()
    said = trace.said_since(mark)
    if said is not None and not _has_written(ssn, begun) and not is_carried_on(ssn):
        ssn.memo.keep(("in vain", what), rests_on, said)


def _rests_on(ssn: Session, rows: AnyArray, reads: Reading) -> Ground:
    """Return the versions of all that an action can read, except rows of other jobs."""
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
        # Adds rows of other jobs, and the clock, if some plugin reads them.
        *reads.rests_on(ssn.world),
    )


def _has_written(ssn: Session, since: int) -> bool:
    """Return True if a write after a version still stands."""
    # A rollback also restores the version, so undone writes do not count.
    return any(column.version > since for column in ssn.world.moving_columns())
