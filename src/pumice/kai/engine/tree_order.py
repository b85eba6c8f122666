"""Order jobs in a tree of queues: the best job of the best queue, at every level.

The order of queues depends on their best jobs and on what they hold, and both change with every placement. All queues
are compared by ``best_leaf``. ``Ranking`` keeps them in order by keys and places anew only those that have changed.
Source: KAI JobsOrderByQueues.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np

from pumice.algorithms.queue_order import Amounts, Key
from pumice.columns.counting import RELEASING
from pumice.columns.dtypes import I64, AnyArray
from pumice.columns.tables import Tables
from pumice.columns.views import Queue
from pumice.framework.cycle.ordering import Line, older
from pumice.framework.cycle.session import Session
from pumice.framework.memo import Ground
from pumice.framework.plugin import points
from pumice.kai.engine.chunks import are_ordered, chunk_of, order_tasks
from pumice.kai.engine.members import may_wait
from pumice.kai.engine.parts import Part, gated_tasks
from pumice.kai.engine.points import (
    QueueRequest,
    queue_request_keyed,
    queue_request_order,
    queue_requests_compared,
)

#: Number of successive jobs whose tasks are sorted together.
#: One sort for several jobs costs little more than for one. More than are likely to be reached would be sorted in vain.
_TOGETHER = 32

#: Section of a policy file with the number of jobs per queue that each action tries. The name is KAI's.
QUEUE_DEPTH = "queueDepthPerAction"


def depth_problems(section: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each invalid depth."""
    for action, depth in section.items():
        # A bool is an int in Python, and ``true`` is no depth.
        if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
            yield f"{action}: found {depth!r:.80}, wanted a whole number of jobs, 1 or more"


def may_have_been_passed_over(ssn: Session) -> bool:
    """Return True if the policy limits how many jobs ``allocate`` tries, so that a job may fit without evictions."""
    return "allocate" in ssn.policy.section(QUEUE_DEPTH)


class QueueTree:
    """Queues by parent. ``leaf`` (Q,): the queue has no children and all its ancestors exist; only leaves run jobs."""

    def __init__(self, tables: Tables) -> None:
        queues = tables.queues
        self.parent: list[int] = queues.parent.tolist()
        has_children = np.zeros(len(queues), dtype=bool)
        has_children[queues.parent[queues.parent >= 0]] = True
        #: Per queue, whether all its ancestors exist.
        self.whole = whole = [self._is_whole(tables, row) for row in range(len(queues))]
        self.leaf = ~has_children & np.array(whole, dtype=bool)
        #: Per queue, itself and its ancestors, upwards.
        self.path = [self._up(row) if whole[row] else [row] for row in range(len(queues))]

    def _is_whole(self, tables: Tables, row: int) -> bool:
        """Return True if the ancestors of a queue end at a root and form no cycle."""
        queues, seen = tables.queues, 0
        while self.parent[row] >= 0:
            row, seen = self.parent[row], seen + 1
            # More steps than queues: the ancestors form a cycle.
            if seen > len(self.parent):
                return False
        return not queues.objs[row].parent or queues.objs[row].parent == "root"

    def _up(self, row: int) -> list[int]:
        """Return a queue and its ancestors, upwards."""
        found = []
        while row >= 0:
            found.append(row)
            row = self.parent[row]
        return found


def queue_tree(ssn: Session) -> QueueTree:
    """Return the queue tree of the session."""
    return ssn.memo.get("tree of leaves", (ssn.tables.queues["parent"].version,), lambda: QueueTree(ssn.tables))


def best_leaf(ssn: Session, requests: Mapping[int, QueueRequest], *, last: bool = False) -> int:
    """Return the leaf that is first, given the request of each, or the last one if ``last``."""
    # One queue needs no comparison, and plugins need not be asked.
    if len(requests) == 1:
        return next(iter(requests))
    tree, sign = queue_tree(ssn), -1 if last else 1
    queues = ssn.tables.queues
    best = {
        leaf: (leaf, request) for leaf, request in requests.items()
    }  # per queue: its best leaf and that leaf's request
    depth = {queue: len(tree.path[queue]) for queue in best}
    while True:
        # Siblings are compared from the deepest level upwards; the winner then represents their parent.
        deepest = max(depth.values())
        groups: dict[int, list[int]] = {}
        for queue in [queue for queue in best if depth[queue] == deepest]:
            groups.setdefault(tree.parent[queue], []).append(queue)
        for parent, siblings in groups.items():
            # One pass and no sort: only the best is wanted, and the order will be another after the next placement.
            winner = siblings[0]
            for other in siblings[1:]:
                said = compared(ssn, best[other][1], best[winner][1])
                if sign * (said or older(queues.creation, queues.names, other, winner)) < 0:
                    winner = other
            leaf, request = best[winner]
            # These siblings are all that is left, so the levels above have nothing to compare.
            if len(siblings) == len(best):
                return leaf
            for queue in siblings:
                del best[queue], depth[queue]
            best[parent], depth[parent] = (leaf, request._replace(queue=parent)), deepest - 1


def compared(ssn: Session, left: QueueRequest, right: QueueRequest) -> int:
    """Compare two sibling queues, or a queue with itself, by their requests, or by Volcano's queue order if no plugin
    compares these. Below 0: the left one is first."""
    if ssn.has(queue_request_order):
        return ssn.ask(queue_requests_compared, left, right)
    return ssn.ask(points.queues_compared, Queue(ssn.tables, left.queue), Queue(ssn.tables, right.queue))


def waiting_jobs(ssn: Session) -> AnyArray:
    """Return the rows of jobs in leaf queues that have tasks to place and enough pods for their minimums."""
    jobs, tree = ssn.tables.jobs, queue_tree(ssn)
    # Not by the minimum alone, which is out of reach: that of a gang with sub-groups is the sub-groups' own.
    rows = (jobs.alive & (jobs.queue >= 0) & ~jobs.quarantined & (jobs.waits + jobs.best_effort > 0)).nonzero()[0]
    rows = rows[tree.leaf[jobs.queue[rows]]]
    gated = gated_tasks(ssn)[rows]
    plain = (jobs.counts[rows].sum(axis=1) - gated >= jobs.min_available[rows]) & ~jobs.has_policy[rows]
    ended = jobs.counts[rows, RELEASING:].sum(axis=1) + gated > 0
    # Arrays settle the usual jobs; only jobs with sub-groups, gates or ended pods need the exact test.
    sure = plain & ~ended
    keep = [bool(ok) or may_wait(ssn.tables, row) for ok, row in zip(sure.tolist(), rows.tolist(), strict=True)]
    found: AnyArray = rows[np.array(keep, dtype=bool)]
    return found


#: A queue among its siblings in order: key, share, age, name and row.
_Place = tuple[Key, Amounts, float, str, int]


class Ranking:
    """The queues that have requests, in order: only those that changed since the last choice are placed anew.

    Requires that one plugin orders queues, and by keys (``applies``).
    """

    def __init__(self, ssn: Session) -> None:
        self._ssn, self._tree = ssn, queue_tree(ssn)
        self._reading = ssn.hooks.reading(queue_request_order)
        self._ground: Ground = ()
        self._stamps = _stamps(ssn)
        #: The request of each leaf.
        self._requests: dict[int, QueueRequest] = {}
        # By parent, -1 for that of roots: its queues with their present places, the places in order, and the queues
        # whose place is not up to date.
        self._place_of: dict[int, dict[int, _Place | None]] = {}
        self._line: dict[int, list[_Place]] = {}
        self._stale: dict[int, dict[int, None]] = {}

    @staticmethod
    def applies(ssn: Session) -> bool:
        """Return True if a session orders queues by the keys of one plugin."""
        return ssn.hooks.forms(queue_request_order) == {"key"} and len(ssn.hooks.at(queue_request_order)) == 1

    def put(self, request: QueueRequest) -> None:
        """Set the request of a leaf."""
        self._requests[request.queue] = request
        for child, parent in self._upwards(request.queue):
            self._place_of.setdefault(parent, {}).setdefault(child, None)
            self._stale.setdefault(parent, {})[child] = None

    def remove(self, leaf: int) -> None:
        """Remove a leaf, and the queues above it that have no other."""
        if self._requests.pop(leaf, None) is None:
            return
        for child, parent in self._upwards(leaf):
            if self._place_of.get(child):
                self._stale[parent][child] = None
                continue
            self._displace(parent, child)
            del self._place_of[parent][child]
            self._stale[parent].pop(child, None)

    def first(self) -> int:
        """Return the leaf that is first, or -1 if queues with equal keys must be compared in pairs."""
        now, rests_on = _stamps(self._ssn), self._reading.rests_on(self._ssn.world)
        if rests_on != self._ground:
            changed, self._ground = [queue for inside in self._place_of.values() for queue in inside], rests_on
        else:
            changed = (now != self._stamps).nonzero()[0].tolist()
        for queue in changed:
            for child, parent in self._upwards(queue):
                if child in self._place_of.get(parent, ()):
                    self._stale[parent][child] = None
        self._stamps = now
        return self._best(-1)

    def _upwards(self, queue: int) -> Iterator[tuple[int, int]]:
        """Yield a queue and its ancestors, each with its parent."""
        return pairwise((*self._tree.path[queue], -1))

    def _best(self, parent: int) -> int:
        """Return the first leaf below a queue, or -1."""
        inside = self._place_of[parent]
        # A queue alone needs no key, and no plugin is asked for one.
        if len(inside) == 1:
            return self._leaf_of(next(iter(inside)))
        stale = self._stale[parent]
        while stale:
            child = next(iter(stale))
            if not self._place(parent, child):
                return -1
            del stale[child]
        line = self._line[parent]
        first = line[0]
        # Of equal keys and shares the oldest is first. Shares only order some pairs, so who wins among others with
        # equal keys depends on the order in which they are compared.
        if len(line) > 1 and line[1][0] == first[0]:
            last = line[bisect_right(line, first[0], key=itemgetter(0)) - 1]
            if last[1] != first[1]:
                return -1
        return self._leaf_of(first[-1])

    def _leaf_of(self, queue: int) -> int:
        """Return a leaf itself, or the first below a queue, or -1."""
        return queue if queue in self._requests else self._best(queue)

    def _place(self, parent: int, child: int) -> bool:
        """Place a queue by its present key. Return False if its first leaf is not known."""
        leaf = self._leaf_of(child)
        if leaf < 0:
            return False
        self._displace(parent, child)
        request, queues = self._requests[leaf], self._ssn.tables.queues
        request = request if child == leaf else request._replace(queue=child)
        key, share = self._ssn.ask(queue_request_keyed, request)
        place = key, share, float(queues.creation[child]), queues.names[child], child
        self._place_of[parent][child] = place
        insort(self._line.setdefault(parent, []), place)
        return True

    def _displace(self, parent: int, child: int) -> None:
        """Take a queue out of its line."""
        place = self._place_of[parent][child]
        if place is not None:
            line = self._line[parent]
            del line[bisect_left(line, place)]
            self._place_of[parent][child] = None


def _stamps(ssn: Session) -> I64:
    """Return a copy of the stamps of queues."""
    stamps = ssn.tables.queues.stamps
    assert stamps is not None
    return stamps.copy()


class TreeOrder:
    """Iterate over pending jobs in queue order, each with its next chunk.

    A job may be pushed back. If the policy limits the depth of the action, only the first jobs of each queue are
    returned.
    """

    def __init__(self, ssn: Session, rows: AnyArray) -> None:
        self._ssn = ssn
        depth = ssn.policy.section(QUEUE_DEPTH).get(ssn.trace.action)
        self._lines = ssn.order.lines(rows, depth if isinstance(depth, int) else None)
        # Between two choices only the queue that was chosen has another best job, so the requests of all others are
        # kept.
        self._requests: dict[
            int, tuple[QueueRequest, int, Part | None]
        ] = {}  # per queue, with its job's stamp and chunk
        self._ranking = Ranking(ssn) if Ranking.applies(ssn) else None
        #: Queues whose request is not ranked yet.
        self._unranked = dict.fromkeys(self._lines)

    def __iter__(self) -> Iterator[tuple[int, Part | None]]:
        while self._lines:
            yield self._next()

    def _next(self) -> tuple[int, Part | None]:
        """Return the next job and its chunk."""
        leaf = self._best_leaf()
        line, (_, stamp, part) = self._lines[leaf], self._requests[leaf]
        job = line.pop()
        self._moved(leaf)
        # The chunk may be older than the last commit; the stamp of the job tells whether it still holds.
        return job, part if stamp == self._stamp(job) else chunk_of(self._ssn, job)

    def _best_leaf(self) -> int:
        """Return the queue that is first."""
        leaf = -1
        if self._ranking is not None:
            for each in self._unranked:
                self._ranking.put(self._request(each, self._lines[each]))
            self._unranked.clear()
            leaf = self._ranking.first()
        if leaf < 0:
            leaf = best_leaf(self._ssn, {leaf: self._request(leaf, line) for leaf, line in self._lines.items()})
        return leaf

    def _moved(self, leaf: int) -> None:
        """Note that another job of a queue is next, or none."""
        self._requests.pop(leaf, None)
        if self._lines.get(leaf):
            self._unranked[leaf] = None
            return
        self._lines.pop(leaf, None)
        self._unranked.pop(leaf, None)
        if self._ranking is not None:
            self._ranking.remove(leaf)

    def _request(self, leaf: int, line: Line) -> QueueRequest:
        """Return a queue with the request of its next job."""
        cached = self._requests.get(leaf)
        if cached is None:
            job = line.peek()
            part = self._part(line, job)
            request = QueueRequest(leaf, part.amount(self._ssn.tables) if part is not None else None)
            cached = self._requests[leaf] = request, self._stamp(job), part
        return cached[0]

    def _part(self, line: Line, job: int) -> Part | None:
        """Return the next chunk of a job."""
        ssn, subs = self._ssn, self._ssn.tables.jobs.subs
        if not are_ordered(ssn, subs[job]):
            order_tasks(ssn, [sub for each in line.next(_TOGETHER) for sub in subs[each]])
        return chunk_of(ssn, job)

    def _stamp(self, job: int) -> int:
        """Return the stamp of a job's row, which changes with the row."""
        stamps = self._ssn.tables.jobs.stamps
        assert stamps is not None
        return int(stamps[job])

    def push(self, job: int) -> None:
        """Push a job back into its queue."""
        leaf = int(self._ssn.tables.jobs.queue[job])
        line = self._lines.get(leaf)
        if line is None:
            line = self._lines[leaf] = Line(self._ssn.order.job_keys())
        line.push(job)
        self._moved(leaf)

    def drop(self, job: int, leading: Callable[[Iterable[int]], int]) -> None:
        """Remove the next jobs of a job's queue: as many as ``leading`` returns."""
        leaf = int(self._ssn.tables.jobs.queue[job])
        line = self._lines.get(leaf)
        if line is None:
            return
        if line.skip(leading):
            self._moved(leaf)
