"""Choose the queue of which a victim, or the part of the job that is searched for, is placed next.

These are the *entries*. Pending jobs are compared with them but are not placed: when a queue is first with the request
of a pending job, that job is passed over, and the queues are compared again. How many jobs are pending is up to their
tenants, and another tenant's search places again for each set of victims that it tries. So that its steps do not go
into jobs that are not its own:

1. Of the children of the lowest queue above all entries, those that have no entry below them are left out. Which of
   two other children is first does not depend on them.
2. A child is compared by one request: the worst of the pending jobs that come before its next entry, and of the entry.
   The child is first with its entry only after it was first with each of these.
3. The worst request of these pending jobs is sought as far as the choice needs it, and once for each job that is
   searched for: again only if a queue of the child, or the position of its next entry, has changed (``Waiting.ahead``).
   A queue from which victims leave changes with each set of them.

Required is that the comparison of queues is transitive. KAI's is not where keys are equal and the shares of two queues
are incomparable; which queue is then first depends in KAI on the order of comparisons, here on that of rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pumice.columns.dtypes import F64, AnyArray
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.kai.engine.budget import steps_of
from pumice.kai.engine.chunks import chunk_of
from pumice.kai.engine.job_order import Entry, SortedJobs
from pumice.kai.engine.parts import active_count
from pumice.kai.engine.points import QueueRequest, queue_request_order
from pumice.kai.engine.tree_order import best_leaf, compared, queue_tree


@dataclass(slots=True)
class Ahead:
    """The pending jobs before the next entry of a queue and those below it, as far as they are known.

    ``passed``: by leaf, the number of pending jobs that are passed over. ``worst``: the worst request of these, None if
    there are none. ``leaf``: the leaf of the entry once all of them are known, before that -1. ``is_out``: the entry
    asks for nothing, and the queue is not compared.
    """

    passed: dict[int, int]
    worst: QueueRequest | None = None
    leaf: int = -1
    is_out: bool = False


class Waiting:
    """Pending jobs sorted by queue, the best first, kept up to date after commits."""

    def __init__(self, ssn: Session, rows: AnyArray) -> None:
        self._ssn, self._sorted = ssn, SortedJobs(ssn, rows)
        self._requests: dict[int, tuple[float, ...]] = {}
        self._ahead: dict[Hashable, Ahead] = {}
        self._ahead_for = -1
        self._below: dict[tuple[int, ...], dict[int, list[int]]] = {}
        self._runs: dict[tuple[int, tuple[int, ...]], list[int]] = {}

    @property
    def leaves(self) -> Collection[int]:
        """Their queues."""
        return self._sorted.leaves

    def line(self, leaf: int) -> list[Entry]:
        """Return the entries of a queue, sorted."""
        return self._sorted.line(leaf)

    def __contains__(self, job: int) -> bool:
        return job in self._sorted

    def key(self, job: int) -> Any:
        """Return the key of a pending job."""
        return self._sorted.key(job)

    def key_of(self, job: int) -> Any:
        """Return the key of the job for which victims are sought, with the tasks that it has now."""
        # Since KAI 0.17 the job of the part has its active tasks in the comparison: an elastic job that grows comes
        # after victims that have lost their minimum.
        if job in self and not active_count(self._ssn.tables.jobs.counts[job].tolist()):
            return self.key(job)
        return self._ssn.order.job_keys()([job])[0]

    def request(self, job: int) -> tuple[float, ...]:
        """Return the request of a job's next chunk, as a value that can be compared."""
        found = self._requests.get(job)
        if found is None:
            part = chunk_of(self._ssn, job)
            amount = part.amount(self._ssn.tables).tolist() if part is not None else ()
            found = self._requests[job] = tuple(amount)
        return found

    def below(self, above: tuple[int, ...]) -> dict[int, list[int]]:
        """Return the children of a queue, by the path of that queue upwards, each with those of the leaves below it.
        () is the path above the roots."""
        if above not in self._below:
            found: dict[int, list[int]] = {}
            for leaf in self.leaves:
                path = queue_tree(self._ssn).path[leaf]
                if len(path) > len(above) and tuple(path[len(path) - len(above) :]) == above:
                    found.setdefault(path[len(path) - len(above) - 1], []).append(leaf)
            self._below[above] = found
        return self._below[above]

    def run_ends(self, leaf: int, left_out: tuple[int, ...]) -> list[int]:
        """Return for each position in a queue where jobs with another request begin. Positions that are left out end
        no run, and their jobs are not asked."""
        # Kept, since a queue may have hundreds of equal jobs, and each placement comes to them again.
        if (leaf, left_out) not in self._runs:
            line, out = self.line(leaf), set(left_out)
            ends, after = [len(line)] * len(line), -1
            for at in reversed(range(len(line))):
                if at in out:
                    continue
                if after >= 0:
                    is_equal = self.request(line[at][1]) == self.request(line[after][1])
                    ends[at] = ends[after] if is_equal else after
                after = at
            self._runs[leaf, left_out] = ends
        return self._runs[leaf, left_out]

    def ahead(self, job: int) -> dict[Hashable, Ahead]:
        """Return what was found to be ahead of entries while victims for one job are sought."""
        # Not shared with the next job: it would pay less after a job that was searched for than after one that is known
        # to fail, and be cut at another step.
        if job != self._ahead_for:
            self._ahead, self._ahead_for = {}, job
        return self._ahead

    def changed(self, jobs: Collection[int]) -> None:
        """Update jobs whose tasks moved in a commit."""
        self._ahead_for = -1
        self._runs.clear()
        for job in jobs:
            # Only jobs that moved: a request follows from the tasks of its own job.
            self._requests.pop(job, None)
        wait = [job for job in jobs if job in self._sorted and chunk_of(self._ssn, job) is not None]
        self._sorted.put(jobs, there=wait)
        for job in wait:
            # Computed now: within a later simulation the job may be evicted, and its key would be another.
            self._sorted.key(job)


class NextQueue:
    """The choice of queues in one placement. ``job``: the one that is searched for. ``entries``: by queue, the best one
    last; those that are placed are removed meanwhile. ``own``: jobs that are not compared as pending ones. ``request``:
    what an entry's job asks for, None if nothing."""

    def __init__(
        self,
        ssn: Session,
        waiting: Waiting,
        job: int,
        entries: Mapping[int, list[Entry]],
        own: Mapping[int, object],
        request: Callable[[int], F64 | None],
    ) -> None:
        self._ssn, self._waiting, self._entries, self._request = ssn, waiting, entries, request
        self._steps, self._tree, self._known = steps_of(ssn), queue_tree(ssn), waiting.ahead(job)
        self._rests_on: Hashable = ()
        self._passed: dict[int, int] = {}
        self._own = own
        #: By leaf, the positions of own jobs among the pending ones.
        self._left_out: dict[int, tuple[int, ...]] = {}
        # The queues that are compared, each with its leaves, with the number of pending jobs before the next entry of
        # each leaf, and with those before its own next entry.
        self._below: dict[int, list[int]] = {}
        self._ends: dict[int, dict[int, int]] = {}
        self._ahead: dict[int, Ahead] = {}
        self._leaves = 0

    def choose(self) -> int:
        """Return the queue of which an entry is next, or -1 if no step is left."""
        # At the first choice, which most placements do not need: their entries are in one queue.
        if not self._leaves:
            self._begin()
        if len(self._entries) != self._leaves:
            self._divide()
        while True:
            requests = self._compared_requests()
            # Victims without a chunk are not compared, and come last.
            if not requests:
                return next(iter(self._entries)) if not self._steps.cut else -1
            if not self._steps.compare(len(requests)):
                return -1
            queue = best_leaf(self._ssn, requests)
            ahead = self._ahead[queue]
            if ahead.leaf >= 0:
                break
            if not self._go_on(queue):
                return -1
        del self._ahead[queue]
        self._passed.update(ahead.passed)
        return ahead.leaf

    def _compared_requests(self) -> dict[int, QueueRequest]:
        """Return the request by which each queue is compared: the worst that is known. None if no step is left."""
        found: dict[int, QueueRequest] = {}
        for queue, leaves in self._below.items():
            if queue not in self._ahead:
                self._ahead[queue] = self._ahead_of(queue, leaves)
            ahead = self._ahead[queue]
            if not ahead.is_out and ahead.leaf < 0 and ahead.worst is None and not self._go_on(queue):
                return {}
            if not ahead.is_out:
                found[queue] = self._worst(queue, ahead)
        return found

    def is_before(self, leaf: int, entry: Entry) -> bool:
        """Return True if a pending job that was not passed over comes before an entry of its queue."""
        waiting, at = self._waiting.line(leaf), self._passed.get(leaf, 0)
        return at < len(waiting) and waiting[at] < entry

    def _begin(self) -> None:
        """Find the own jobs among the pending ones, and what the order of queues rests on."""
        ssn, waiting = self._ssn, self._waiting
        self._rests_on = ssn.hooks.reading(queue_request_order, points.queue_order).rests_on(ssn.world)
        for each in self._own:
            if each in waiting:
                leaf = int(ssn.tables.jobs.queue[each])
                at = bisect_left(waiting.line(leaf), (waiting.key(each), each))
                self._left_out[leaf] = (*self._left_out.get(leaf, ()), at)

    def _divide(self) -> None:
        """Find the queues to compare: children of the lowest queue above all entries that have entries below them."""
        paths, self._leaves = self._tree.path, len(self._entries)
        first, *others = (paths[leaf] for leaf in self._entries)
        level = 1
        while all(path[-level] == first[-level] for path in others):
            level += 1
        pending = self._waiting.below(tuple(first[len(first) - level + 1 :]))
        self._below = {}
        for leaf in self._entries:
            queue = paths[leaf][-level]
            leaves = self._below.get(queue) or pending.get(queue, [])
            self._below[queue] = leaves if leaf in leaves else [*leaves, leaf]
        # A queue may be compared in place of the one above it.
        self._ahead = {queue: ahead for queue, ahead in self._ahead.items() if queue in self._below}

    def _worst(self, queue: int, ahead: Ahead) -> QueueRequest:
        """Return the worst request that is known of a queue, with that of its entry if nothing else comes before it."""
        if ahead.leaf < 0 and ahead.worst is not None:
            return ahead.worst
        request = QueueRequest(queue, self._request(self._entries[ahead.leaf][-1][1]))
        return self._later(request, ahead.worst)

    def _later(self, request: QueueRequest, other: QueueRequest | None) -> QueueRequest:
        """Return the request with which a queue comes later."""
        return request if other is None or compared(self._ssn, request, other) > 0 else other

    def _ahead_of(self, queue: int, leaves: list[int]) -> Ahead:
        """Return what is known to come before the next entry of a queue."""
        passed = {leaf: self._passed.get(leaf, 0) for leaf in leaves}
        self._ends[queue] = ends = {leaf: self._end(leaf) for leaf in leaves}
        # The usual case, which needs no comparison.
        if len(leaves) == 1 and passed[leaves[0]] >= ends[leaves[0]]:
            is_out = self._request(self._entries[leaves[0]][-1][1]) is None
            return Ahead(passed, leaf=leaves[0], is_out=is_out)
        question = self._question(queue, passed, ends)
        if question not in self._known:
            self._known[question] = Ahead(passed)
        return self._known[question]

    def _question(self, queue: int, begin: Mapping[int, int], ends: Mapping[int, int]) -> Hashable:
        """Return all that the pending jobs before the next entry of a queue follow from."""
        stamps, paths = self._ssn.tables.queues.stamps, self._tree.path
        assert stamps is not None
        rows = list(dict.fromkeys(each for leaf in ends for each in paths[leaf][: paths[leaf].index(queue) + 1]))
        found: list[Hashable] = [queue, self._rests_on, stamps[rows].tobytes()]
        for leaf, end in ends.items():
            found += leaf, begin[leaf], end, *self._left_out.get(leaf, ())
            # The request of an entry decides which leaf is first. Of one leaf it only tells whether it is compared.
            request = self._request(self._entries[leaf][-1][1]) if leaf in self._entries else None
            found.append(request.tobytes() if request is not None and len(ends) > 1 else request is not None)
        return tuple(found)

    def _end(self, leaf: int) -> int:
        """Return how many of a queue's pending jobs come before its next entry: all if it has none."""
        line, entries = self._waiting.line(leaf), self._entries.get(leaf)
        if not line or not entries:
            return len(line)
        return bisect_left(line, entries[-1])

    def _go_on(self, queue: int) -> bool:
        """Pass over pending jobs before the next entry of a queue until a worse request is found, or the entry. Return
        False if no step is left."""
        ahead, ends = self._ahead[queue], self._ends[queue]
        before = ahead.worst
        while ahead.worst is before:
            requests, pending = dict[int, QueueRequest](), set[int]()
            for leaf, end in ends.items():
                request = self._request_of(leaf, end, ahead.passed, pending)
                if request is not None:
                    requests[leaf] = QueueRequest(leaf, request)
            if not requests:
                ahead.is_out = True
                return True
            if not self._steps.compare(len(requests)):
                return False
            leaf = best_leaf(self._ssn, requests)
            if leaf not in pending:
                ahead.leaf = leaf
                return True
            ahead.worst = self._later(QueueRequest(queue, requests[leaf].request), ahead.worst)
            self._pass_over(leaf, ends[leaf], ahead.passed)
        return True

    def _request_of(self, leaf: int, end: int, passed: dict[int, int], pending: set[int]) -> F64 | None:
        """Return the request by which a leaf is compared, or None if it has no jobs left. Add the leaf to ``pending``
        if the request is that of a pending job."""
        line, at = self._waiting.line(leaf), passed[leaf]
        while at < end and line[at][1] in self._own:
            at = passed[leaf] = at + 1
        if at < end:
            pending.add(leaf)
            return np.array(self._waiting.request(line[at][1]))
        entries = self._entries.get(leaf)
        return self._request(entries[-1][1]) if entries else None

    def _pass_over(self, leaf: int, end: int, passed: dict[int, int]) -> None:
        """Pass over the next pending job of a queue, and the following ones with the same request."""
        # With an equal request the comparison would choose the same queue again.
        ends = self._waiting.run_ends(leaf, self._left_out.get(leaf, ()))
        passed[leaf] = min(ends[passed[leaf]], end)
