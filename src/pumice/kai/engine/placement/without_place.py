"""Remember which parts of jobs find no place: as long as no node changes, equal parts of other queues find none either.

What is kept names no job and no queue. Whether a queue may take a part is asked before, for each part, and the reason
against it is made from the finding for each job.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from pumice.framework.cycle.session import Session
from pumice.framework.memo import Ground, ground
from pumice.framework.plugin import points
from pumice.framework.plugin.point import JOBS, PODS, QUEUES
from pumice.kai.engine.equivalence import answer_equally
from pumice.kai.engine.parts import Part
from pumice.model.blockers import Blocker, NoNode, NoRoom
from pumice.placing.feasibility import Feasibility

#: Points that are asked between the question to the queue and a task without a node.
_ASKED = (points.pre_predicate, *points.ABOUT_NODES, points.waits, points.on_allocate)


class NoPlace(NamedTuple):
    """The pod set ``sub`` has a task that found no place, after ``placed`` of its tasks were placed, because of
    ``why``."""

    sub: int
    placed: int
    why: Blocker


class PartsWithoutPlace:
    """The parts of jobs that were tried on all nodes and found no place, under the policy of a session."""

    def __init__(self, ssn: Session, feasible: Feasibility) -> None:
        self._tables, self._memo, self._feasible = ssn.tables, ssn.memo, feasible
        reading = ssn.hooks.reading(*_ASKED)
        # The tasks that are placed before the last one are another job's, of another queue: a hook that looks at more
        # than nodes may see them.
        apart = not answer_equally(ssn, _ASKED) or reading.words & {PODS, QUEUES, JOBS}
        self._columns = None if apart else reading.columns(ssn.world)

    def of(self, part: Part) -> NoPlace | None:
        """Return what the part would find, None if it has to be tried."""
        if self._columns is None:
            return None
        known: NoPlace | None = self._memo.recall(self._question(part), self._rests_on())
        return None if known is None else known._replace(sub=list(part.tasks)[known.sub])

    def keep(self, part: Part, found: NoPlace) -> None:
        """Keep what a part found. None of its tasks may be placed any more."""
        # A refusal by a plugin is the job's own.
        if self._columns is not None and isinstance(found.why, NoRoom | NoNode):
            # With the position of the pod set in its part: an equal part has other pod sets.
            known = found._replace(sub=list(part.tasks).index(found.sub))
            self._memo.keep(self._question(part), self._rests_on(), known, 8 * len(part.rows))

    def _question(self, part: Part) -> Hashable:
        """Return what is equal for equal parts: the classes of tasks in order, by pod set."""
        classes = self._tables.classes.identities(self._tables.tasks.cls[part.rows])
        return "no place", classes.tobytes(), tuple(map(len, part.tasks.values()))

    def _rests_on(self) -> Ground:
        assert self._columns is not None
        return (*self._feasible.everything(), *ground(*self._columns))
