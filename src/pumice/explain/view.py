"""What all hints after one cycle look at: the cluster as the session left it, and sums that several of them need."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from pumice.algorithms.sums import sums_by
from pumice.columns.counting import HELD
from pumice.columns.dtypes import EPS, F64, AnyArray, Bool
from pumice.columns.jobs import INQUEUE_PHASE, RUNNING_PHASE
from pumice.columns.nodes import FUTURE, IDLE
from pumice.columns.views import Job
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.memo import Memo
from pumice.model.pod import PodSpec
from pumice.model.status import TaskStatus
from pumice.placing.derived import Derived


class View:
    """Shapes: N nodes, J jobs, Q queues, R resources. Nothing here is written."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome, self.tables, self.trace = outcome, outcome.tables, outcome.trace
        self.axis = outcome.tables.axis
        self.facts = outcome.tables.nodes.facts
        self.derived = Derived(self.facts, Memo(), outcome.tables.classes)

    # -- names --------------------------------------------------------------------------------------------------------

    def queue_of(self, job: int) -> str:
        found: str = self.tables.queues.names[self.tables.jobs.queue[job]]
        return found

    def argument(self, plugin: str, name: str) -> object:
        """An argument of a plugin of the policy, None where either is not there."""
        for option in self.outcome.policy.options:
            if option.spec.name == plugin:
                return option.arguments.get(name)
        return None

    def has_plugin(self, *names: str) -> bool:
        return any(option.spec.name in names for option in self.outcome.policy.options)

    # -- amounts ------------------------------------------------------------------------------------------------------

    def asked_in(self, amounts: F64) -> list[int]:
        """Return the dimensions in which something is requested, without pod slots and without what no node offers."""
        skipped = (self.axis.pods, self.axis.unoffered)
        return [d for d in (amounts >= EPS).nonzero()[0].tolist() if d not in skipped]

    @cached_property
    def total(self) -> F64:
        return np.asarray(self.facts.total)

    @cached_property
    def held(self) -> F64:
        """What of the jobs of each queue counts against its limit: what they hold, less what is above their minima
        (Q, R)."""
        jobs = self.tables.jobs
        rows = jobs.live
        counts = np.minimum(jobs.allocated[rows], np.where(jobs.has_min[rows, None], jobs.min_resources[rows], 0.0))
        held = np.where(jobs.has_min[rows, None], counts, 0.0)
        return sums_by(jobs.queue[rows], held, len(self.tables.queues))

    @cached_property
    def promised(self) -> tuple[AnyArray, F64]:
        """Jobs that were promised something and do not hold all of it, and what they still want. (rows,), (rows,
        R)."""
        jobs = self.tables.jobs
        whole = jobs.counts @ HELD >= jobs.min_available
        which = (jobs.phase == INQUEUE_PHASE) | ((jobs.phase == RUNNING_PHASE) & whole)
        rows = (jobs.alive & (jobs.queue >= 0) & jobs.has_min & which).nonzero()[0]
        return rows, np.maximum(jobs.min_resources[rows] - jobs.allocated[rows], 0.0)

    @cached_property
    def idle(self) -> F64:
        return self.tables.nodes.books[:, IDLE]

    @cached_property
    def future(self) -> F64:
        return self.tables.nodes.books[:, FUTURE]

    # -- jobs and their pods ------------------------------------------------------------------------------------------

    def waiting_rows(self, job: int) -> list[int]:
        """Tasks of a job that wait for a node."""
        rows = self.tables.jobs.tasks[job]
        found: list[int] = rows[self.tables.tasks.status[rows] == TaskStatus.PENDING].tolist()
        return found

    def needed(self, job: int) -> int:
        """How many more of its pods must get a node for the job to begin; of one that runs, one."""
        return max(1, Job(self.tables, job).missing_count)

    def first_failed(self, job: int) -> int | None:
        """The first task that nodes were looked at for in vain."""
        errors = self.trace.errors_of(job)
        return next((row for row, error in errors.items() if not error.skipped), None)

    def spec(self, row: int) -> PodSpec:
        found: PodSpec = self.tables.classes.specs[self.tables.tasks.cls[row]]
        return found

    def request(self, row: int) -> F64:
        """What one task asks for (R,)."""
        found: F64 = self.tables.classes.req[self.tables.tasks.cls[row]]
        return found

    def asks(self, job: int) -> F64:
        """What the job asks for until it can begin: its next tasks together (R,)."""
        rows = self.waiting_rows(job)[: self.needed(job)]
        found: F64 = sum((self.request(row) for row in rows), start=np.zeros(len(self.axis)))
        return found

    def fits(self, request: F64, room: F64) -> Bool:
        """Where one such task has room: (R,), (N, R) -> (N,)."""
        asked = self.asked_in(request)
        return np.asarray((request[asked] - room[:, asked] < EPS).all(axis=1))

    def can_ever_run(self, job: int) -> bool:
        """Whether each of its pods has room on some node as long as it is empty."""
        kinds = set(self.tables.tasks.cls[self.tables.jobs.tasks[job]].tolist())
        amounts = [self.tables.classes.req[cls] for cls in sorted(kinds)]
        return all(bool(self.fits(each, self.facts.allocatable).any()) for each in amounts)

    def scarcest(self, request: F64, room: F64) -> int:
        """The asked dimension of which the least pods could be made: (R,), (N, R)."""
        asked = self.asked_in(request)
        if not asked or not len(room):
            return asked[0] if asked else 0
        count = np.floor((room[:, asked] + EPS) / request[asked]).clip(min=0).sum(axis=0)
        return asked[int(count.argmin())]

    def shortest(self, request: F64, room: F64) -> int:
        """The asked dimension in which the most nodes have too little for one, else the scarcest: (R,), (N, R)."""
        asked = self.asked_in(request)
        short = (request[asked] - room[:, asked] >= EPS).sum(axis=0)
        return asked[int(short.argmax())] if len(short) and short.any() else self.scarcest(request, room)
