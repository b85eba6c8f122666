"""List victims for one gang, place by place: which nodes have any, and more and more of them to try. Source: Volcano
gangpreempt and gangreclaim actions.
"""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import EPS, F64, AnyArray, Bool
from pumice.columns.nodes import IDLE, RELEASING
from pumice.columns.rows import TaskRows
from pumice.columns.views import Job
from pumice.framework.cycle.session import Session
from pumice.model.blockers import TooFewVictims
from pumice.placing.batch import placing_of
from pumice.volcano.eviction.candidates import evictable
from pumice.volcano.eviction.context import EvictionContext, EvictionKind
from pumice.volcano.eviction.gangs.places import GangPlace
from pumice.volcano.eviction.gangs.plans import VictimPrefixes
from pumice.volcano.eviction.gangs.victim_sets import victim_sets_of


class VictimsByPlace:
    """Victims for one job.

    ``freed`` (N, R): what nodes would have if all candidates left. ``whole``: jobs may lose tasks below their minimum.
    ``agreed``: count the votes of all plugins about victims (decision 0017).
    """

    def __init__(self, ssn: Session, kind: EvictionKind, job: int, *, whole: bool, agreed: bool) -> None:
        self._ssn, self._kind, self._job, self._whole, self._agreed = ssn, kind, job, whole, agreed
        queue, running = int(ssn.tables.jobs.queue[job]), evictable(ssn)
        reclaims = kind is EvictionKind.GANG_RECLAIM
        self._supply = running.of_other_queues(queue, gangs=True) if reclaims else running.of_queue(queue, gangs=True)
        # An eviction on a node of another shard frees nothing for this scheduler.
        self._outside = placing_of(ssn).feasible.outside
        found = self._supply.has_any()
        self._nodes: Bool = found if self._outside is None else found & ~self._outside
        self.freed: F64 = self._supply.freed()

    def any_in(self, place: GangPlace) -> bool:
        """Return True if a place has tasks among which victims may be found."""
        return bool(self._nodes[place.nodes.rows].any())

    def candidates(self, place: GangPlace) -> TaskRows:
        """Return the tasks in a place that the kind of eviction may touch."""
        nodes = self._own(place)
        if self._kind is EvictionKind.GANG_RECLAIM:
            return self._supply.on(nodes)
        jobs, tasks = self._ssn.tables.jobs, self._ssn.tables.tasks
        # Strictly lower priority, by job and not by task.
        rows = self._supply.on(nodes, but_job=self._job).rows
        return TaskRows(self._ssn.tables, rows[jobs.priority[tasks.job[rows]] < jobs.priority[self._job]])

    def prefixes(self, place: GangPlace, candidates: TaskRows, need: F64) -> VictimPrefixes:
        """Return more and more victim sets among candidates of a place, from the first number that may free enough."""
        ssn = self._ssn
        context = EvictionContext(self._kind, Job(ssn.tables, self._job), hypernode=place.hypernode)
        sets = victim_sets_of(ssn, context, candidates, need, whole=self._whole, agreed=self._agreed)
        if not sets:
            return VictimPrefixes(finding=TooFewVictims(place.name, len(candidates)))
        books = ssn.tables.nodes.books[self._own(place)]
        # One running sum tests all prefixes of the victim sets. A sum over the domain ignores fragmentation, so a
        # prefix that passes is still tried out.
        room = np.cumsum([(books[:, IDLE] + books[:, RELEASING]).sum(axis=0), *(each.freed for each in sets)], axis=0)
        enough = (need - room[1:] < EPS).all(axis=1).nonzero()[0].tolist()
        chosen = [row for each in sets for row in each.rows]
        ends = np.cumsum([len(each.rows) for each in sets]).tolist()
        found = TooFewVictims(place.name, len(candidates), len(chosen), len(sets), enough=bool(enough))
        return VictimPrefixes(chosen, [ends[last] for last in enough], found)

    def _own(self, place: GangPlace) -> AnyArray:
        """Return the nodes of a place that are in this scheduler's shard."""
        nodes = place.nodes.rows
        return nodes if self._outside is None else nodes[~self._outside[nodes]]
