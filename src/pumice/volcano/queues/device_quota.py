"""Limit how many devices of a class the pods of a queue may claim. Source: Volcano capacity plugin, DRA quota.

A limit is an entry ``deviceclass/<class>`` in a queue's capability. Only classes that some queue limits are counted. A
claim that several pods of a queue name counts once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from pumice.columns.counting import HELD
from pumice.columns.dtypes import F64
from pumice.columns.jobs import INQUEUE_PHASE
from pumice.columns.views import Job
from pumice.framework.cycle.session import Session
from pumice.model.blockers import DEVICES, QueueLimit, ResourceLimit
from pumice.model.pod import Pod
from pumice.model.status import STATUS_COUNT
from pumice.volcano.queues.tree import QueueTree

PREFIX = "deviceclass/"
# The reader of resource lists counts every unknown name in thousandths.
_MILLI = 1000.0
_TEMPLATE = "template/"


def limited_classes(ssn: Session) -> tuple[str, ...]:
    """Return the device classes that some queue limits, empty if the cluster has no claims."""
    # Most clusters have no claims, and then no queue's capability needs to be read.
    if not len(ssn.tables.claims.objs):
        return ()
    names = {name for queue in ssn.tables.queues.objs if queue.capability for name in queue.capability.scalars or ()}
    # Sorted, because names come out of a set and their order becomes that of columns.
    return tuple(sorted(name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)))


class DeviceQuota:
    """Limits and use of device classes, per queue.

    ``limit`` (Q, K): inf if a queue has none. ``claimed`` (Q, K): by pods of the queue and of queues below it.
    ``naming`` (pairs,): how many pods of a queue hold a claim that several pods name. ``inqueue`` (Q, K): promised to
    admitted jobs.
    """

    def __init__(self, ssn: Session, tree: QueueTree, classes: tuple[str, ...]) -> None:
        self._ssn, self._tables, self._tree, self._classes = ssn, ssn.tables, tree, classes
        self._claims = {claim.key: self._vector(claim.devices) for claim in ssn.tables.claims.objs}
        self.limit = np.array([self._limit_of(queue.capability) for queue in ssn.tables.queues.objs])
        self._claiming = [row for row, pod in enumerate(ssn.tables.tasks.pods) if pod is not None and self._names(pod)]
        named = Counter(key for row in self._claiming for key in self._names(ssn.tables.tasks.pods[row]))
        # A claim that is made from a template belongs to one pod, whatever its name.
        self._shared = {key for key, pods in named.items() if pods > 1 and key in self._claims and _TEMPLATE not in key}
        self._pairs = self._all_pairs()
        claimed, naming = np.zeros_like(self.limit), np.zeros(len(self._pairs))
        for row in self._claiming:
            # A free row has the status -1, which would read the last entry.
            if HELD[max(0, int(ssn.tables.tasks.status[row]))] and self._queue_of(row) >= 0:
                line = self._tree.line(self._queue_of(row))
                own, shared = self._asked(row)
                claimed[line] += own
                naming[[self._pairs[queue, key] for queue in line for key in shared]] += 1
        for (queue, key), number in self._pairs.items():
            if naming[number]:
                claimed[queue] += self._claims[key]
        self.claimed = ssn.column("capacity.devices", "queue", values=claimed)
        self.naming = ssn.column("capacity.naming", values=naming)
        self.inqueue = ssn.column("capacity.devices_inqueue", "queue", values=self._promised())

    def _vector(self, devices: Iterable[tuple[str, int]]) -> F64:
        """Return the number of devices of each class. Shape (K,)."""
        counts = dict(devices)
        return np.array([float(counts.get(each, 0)) for each in self._classes])

    def _limit_of(self, capability: object) -> list[float]:
        """Return the limit of each class in a capability."""
        scalars = getattr(capability, "scalars", None) or {}
        found = [scalars.get(PREFIX + each, 0.0) / _MILLI for each in self._classes]
        # Volcano treats a limit of 0 as no limit.
        return [limit if limit > 0 else np.inf for limit in found]

    @staticmethod
    def _names(pod: Pod) -> list[str]:
        """Return the keys of the claims of a pod."""
        return [f"{pod.namespace}/{name}" for name in pod.spec.resource_claims]

    def _queue_of(self, row: int) -> int:
        """Return the queue of a task, or -1."""
        job = int(self._tables.tasks.job[row])
        return int(self._tables.jobs.queue[job]) if job >= 0 else -1

    def _all_pairs(self) -> dict[tuple[int, str], int]:
        """Number the pairs of a queue and a shared claim that one of its pods may hold."""
        pairs: dict[tuple[int, str], int] = {}
        for row in self._claiming:
            queue = self._queue_of(row)
            for key in self._shared.intersection(self._names(self._tables.tasks.pods[row])) if queue >= 0 else ():
                # Per queue on the path: a claim that pods of two queues share counts once in each, and once in their
                # common ancestor.
                for each in self._tree.line(queue):
                    pairs.setdefault((each, key), len(pairs))
        return pairs

    def _asked(self, row: int) -> tuple[F64, set[str]]:
        """Return what a task claims alone (K,), and the claims that it shares."""
        names = self._names(self._tables.tasks.pods[row])
        shared = self._shared.intersection(names)
        own = [self._claims[key] for key in names if key in self._claims and key not in shared]
        return np.sum(own, axis=0) if own else np.zeros(len(self._classes)), shared

    # -- what holds now -----------------------------------------------------------------------------------------------

    def fitting(self, queue: int, rows: Sequence[int]) -> int:
        """Return how many of the first tasks the queue and its ancestors may take."""
        more, held = np.zeros(len(self._classes)), set[str]()
        for count, row in enumerate(rows):
            own, shared = self._asked(row)
            asked = own + self._sum(shared)
            if asked.any():
                more, held = more + own, held | shared
                if any(self._over(each, more, held, asked) for each in self._tree.line(queue)):
                    return count
        return len(rows)

    def _over(self, queue: int, more: F64, held: set[str], asked: F64) -> bool:
        """Return True if a queue would exceed a limit of a class that is asked for."""
        new = {key for key in held if not self.naming.array[self._pairs[queue, key]]}
        there = self.claimed.array[queue] + more + self._sum(new)
        return bool(((asked > 0) & (there > self.limit[queue])).any())

    def _sum(self, keys: Iterable[str]) -> F64:
        """Return the devices in some claims. Shape (K,)."""
        found: F64 = np.sum([self._claims[key] for key in keys] or [np.zeros(len(self._classes))], axis=0)
        return found

    def move(self, rows: Sequence[int], queue: int, sign: float) -> None:
        """Count tasks of a queue that were placed, or that left."""
        line, journal = self._tree.line(queue), self._ssn.journal
        for row in rows:
            own, shared = self._asked(row)
            if own.any():
                journal.add(self.claimed, line, sign * own)
            # Sorted, because the order of a set must not reach the journal.
            for key in sorted(shared):
                pairs = [self._pairs[each, key] for each in line]
                # Only the first pod that holds a shared claim, or the last one, changes the count.
                alone = self.naming.array[pairs] == (0 if sign > 0 else 1)
                journal.add(self.naming, pairs, sign)
                journal.add(
                    self.claimed,
                    [each for each, is_alone in zip(line, alone, strict=True) if is_alone],
                    sign * self._claims[key],
                )

    # -- admission ----------------------------------------------------------------------------------------------------

    def exceeded(self, job: Job) -> QueueLimit | None:
        """Return the limit of its queue or of an ancestor that the minimum of a job exceeds with what was promised
        before, or None."""
        asked = self.minimum(job)
        for row in self._tree.line(job.queue.row):
            limit, used, promised = self.limit[row], self.claimed.array[row], self.inqueue.array[row]
            over = ((asked > 0) & (used + promised + asked > limit)).nonzero()[0].tolist()
            if over:
                names = [f"{PREFIX}{self._classes[k]}" for k in over]
                amounts = zip(names, *(each[over].tolist() for each in (limit, used, promised, asked)), strict=True)
                queue = self._tables.queues.names[row]
                return QueueLimit(queue, DEVICES, tuple(ResourceLimit(*each) for each in amounts))
        return None

    def promise(self, job: Job) -> None:
        """Count the minimum of an admitted job."""
        asked = self.minimum(job)
        if asked.any():
            self._ssn.journal.add(self.inqueue, self._tree.line(job.queue.row), asked)

    def minimum(self, job: Job) -> F64:
        """Return what the minimum of a job claims: of each role its minimum, or of all tasks the first by name.
        Shape (K,)."""
        tasks = self._tables.tasks
        rows = [row for row in self._tables.jobs.tasks[job.row].tolist() if self._names(tasks.pods[row])]
        # Volcano sorts by namespace, name and UID; all tasks of a job are in one namespace.
        rows.sort(key=lambda row: (tasks.pods[row].name, tasks.pods[row].uid))
        if not job.role_min:
            return self._together(rows[: job.min_available])
        found = np.zeros(len(self._classes))
        for role, least in job.role_min.items():
            first = next((row for row in rows if int(tasks.role[row]) == role), None)
            found += least * self._together([first]) if first is not None and least > 0 else 0.0
        return found

    def _together(self, rows: Sequence[int]) -> F64:
        """Return what tasks claim together. Shape (K,)."""
        found, shared = np.zeros(len(self._classes)), set[str]()
        for row in rows:
            own, of_others = self._asked(row)
            found, shared = found + own, shared | of_others
        return found + self._sum(shared)

    def _promised(self) -> F64:
        """Return what admitted jobs do not hold yet of their minimum. Shape (Q, K)."""
        found, jobs = np.zeros_like(self.limit), self._tables.jobs
        for row in (jobs.alive & (jobs.queue >= 0) & (jobs.phase == INQUEUE_PHASE)).nonzero()[0].tolist():
            # What is held is counted in ``claimed`` already, and must not be promised a second time.
            held = [each for each in jobs.tasks[row].tolist() if HELD[self._tables.tasks.status[each] % STATUS_COUNT]]
            left = self.minimum(Job(self._tables, row)) - self._together(held)
            found[self._tree.line(int(jobs.queue[row]))] += np.maximum(left, 0.0)
        return found
