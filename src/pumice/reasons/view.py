"""What all hints after one cycle read: the cluster as the session left it, and sums that several of them need."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TypeVar

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.algorithms.sums import sums_by
from pumice.columns.counting import HELD
from pumice.columns.dtypes import EPS, F64, I64, AnyArray, Bool
from pumice.columns.jobs import INQUEUE_PHASE, RUNNING_PHASE
from pumice.columns.nodes import FUTURE, IDLE
from pumice.columns.views import Job
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.memo import Memo
from pumice.framework.plugin.filter_result import Code
from pumice.kai.engine.tree_order import QueueTree
from pumice.kai.usage import amounts_by_queue, summed_up
from pumice.model.pod import PodSpec
from pumice.model.status import TaskStatus
from pumice.placing.derived import Derived
from pumice.reasons.terms_apart import TermsApart

K = TypeVar("K")


class View:
    """The state after a cycle, and sums over it. Shapes: N nodes, J jobs, Q queues, R resources. Nothing is written."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome, self.tables, self.trace = outcome, outcome.tables, outcome.trace
        self.axis = outcome.tables.axis
        self.facts = outcome.tables.nodes.facts
        self._in_hypernodes: dict[tuple[int, bool], list[float]] = {}
        self.derived = Derived(self.facts, Memo(), outcome.tables.classes)

    # -- names --------------------------------------------------------------------------------------------------------

    def queue_of(self, job: int) -> str:
        """Return the name of a job's queue."""
        found: str = self.tables.queues.names[self.tables.jobs.queue[job]]
        return found

    def argument(self, plugin: str, name: str) -> object:
        """Return an argument of a plugin of the policy, or None if either is missing."""
        for option in self.outcome.policy.options:
            if option.spec.name == plugin:
                return option.arguments.get(name)
        return None

    def has_plugin(self, *names: str) -> bool:
        """Return True if the policy has one of these plugins."""
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
        """What jobs of each queue hold of their minimums, which is what counts against the queue's limit. Shape (Q,
        R)."""
        jobs = self.tables.jobs
        rows = jobs.live
        counts = np.minimum(jobs.allocated[rows], np.where(jobs.has_min[rows, None], jobs.min_resources[rows], 0.0))
        held = np.where(jobs.has_min[rows, None], counts, 0.0)
        return sums_by(jobs.queue[rows], held, len(self.tables.queues))

    @cached_property
    def promised(self) -> tuple[AnyArray, F64]:
        """Jobs that were promised their minimum and do not hold all of it, and what they still lack. Shapes (rows,),
        (rows, R)."""
        jobs = self.tables.jobs
        whole = jobs.counts @ HELD >= jobs.min_available
        which = (jobs.phase == INQUEUE_PHASE) | ((jobs.phase == RUNNING_PHASE) & whole)
        # Groups without pods may hold their queue no more, although they are admitted.
        which = which & ~self.outcome.figures.get("job.given_back", np.zeros(len(which), dtype=bool))
        rows = (jobs.alive & (jobs.queue >= 0) & jobs.has_min & which).nonzero()[0]
        return rows, np.maximum(jobs.min_resources[rows] - jobs.allocated[rows], 0.0)

    @cached_property
    def held_in_tree(self) -> tuple[QueueTree, F64, F64]:
        """The tree of KAI's queues, what each holds with those below it, and the part of it of jobs that are not
        preemptible. Shapes (Q, 3)."""
        tree = QueueTree(self.tables)
        held, fast, _ = (summed_up(tree, own) for own in amounts_by_queue(self.tables))
        return tree, held, fast

    @cached_property
    def slots(self) -> AnyArray:
        """How many more pods each node may run. Shape (N,)."""
        nodes = self.tables.nodes
        left = self.facts.max_pods - nodes.view[:, -1]
        # KAI counts pods as a resource, and those of the cycle nowhere else.
        found: AnyArray = np.minimum(left, self.future[:, self.axis.pods]).clip(min=0).astype(np.int64)
        return found

    def in_hypernodes(self, d: int, *, of_size: bool) -> list[float]:
        """Return how much of a resource each hypernode will have free, or with ``of_size`` has when it is empty."""
        found = self._in_hypernodes.get((d, of_size))
        if found is None:
            column = (self.facts.allocatable if of_size else self.future)[:, d].clip(min=0)
            found = self._in_hypernodes[d, of_size] = [float(column[rows].sum()) for rows in self.tables.tree.nodes]
        return found

    @cached_property
    def idle(self) -> F64:
        return self.tables.nodes.books[:, IDLE]

    @cached_property
    def future(self) -> F64:
        return self.tables.nodes.books[:, FUTURE]

    # -- jobs and their pods ------------------------------------------------------------------------------------------

    def waiting_rows(self, job: int) -> list[int]:
        """Return the tasks of a job that wait for a node."""
        rows = self.tables.jobs.tasks[job]
        found: list[int] = rows[self.tables.tasks.status[rows] == TaskStatus.PENDING].tolist()
        return found

    def needed(self, job: int) -> int:
        """Return how many more pods must get a node before the job can begin; 1 for a job that runs."""
        return max(1, Job(self.tables, job).missing_count)

    def reserved(self, job: int) -> list[int]:
        """Return the nodes that are reserved for pods of a job, one for each."""
        tasks, rows = self.tables.tasks, self.tables.jobs.tasks[job]
        found: list[int] = tasks.node[rows[tasks.status[rows] == TaskStatus.PIPELINED]].tolist()
        return found

    def others(self, job: int) -> AnyArray:
        """Return the tasks that are on nodes, without those of the job for which a node is only reserved."""
        tasks, rows = self.tables.tasks, self._on_nodes
        # Most jobs have no node reserved, and then it is one answer for all of them.
        if not self.tables.jobs.counts[job, TaskStatus.PIPELINED]:
            return rows
        found: AnyArray = rows[(tasks.job[rows] != job) | (tasks.status[rows] != TaskStatus.PIPELINED)]
        return found

    @cached_property
    def terms_apart(self) -> TermsApart:
        """The terms by which tasks on nodes keep other pods away."""
        tables = self.tables
        # By class: a cluster runs many pods, and few kinds of them.
        specs = (tables.classes.specs[cls] for cls in distinct(tables.tasks.cls[self._on_nodes]).tolist())
        return TermsApart(term for spec in specs for term in spec.affinity.anti_required)

    @cached_property
    def by_namespace(self) -> dict[str, I64]:
        """The tasks on nodes of each namespace."""
        pods = self.tables.tasks.pods
        return self._grouped((pods[row].namespace, row) for row in self._on_nodes.tolist())

    @cached_property
    def by_label(self) -> dict[tuple[str, str], I64]:
        """The tasks on nodes with each label, as (key, value)."""
        pods = self.tables.tasks.pods
        return self._grouped((label, row) for row in self._on_nodes.tolist() for label in pods[row].labels.items())

    @cached_property
    def _on_nodes(self) -> AnyArray:
        tasks = self.tables.tasks
        found: AnyArray = (tasks.alive & (tasks.view_node >= 0)).nonzero()[0]
        return found

    @staticmethod
    def _grouped(pairs: Iterable[tuple[K, int]]) -> dict[K, I64]:
        found: dict[K, list[int]] = {}
        for key, row in pairs:
            found.setdefault(key, []).append(row)
        return {key: np.array(rows, dtype=np.int64) for key, rows in found.items()}

    def first_failed(self, job: int) -> int | None:
        """Return the first task for which nodes were examined in vain, or None."""
        errors = self.trace.errors_of(job)
        return next((row for row, error in errors.items() if not error.skipped), None)

    def not_given_up(self, job: int, row: int) -> Bool:
        """Return the nodes that no filter has refused to a task for a reason that no other pod can lift. Shape
        (N,)."""
        found, errors = np.ones(len(self.facts), dtype=bool), self.trace.errors_of(job).get(row)
        if errors is not None and errors.node_rows is not None and errors.codes is not None:
            found[errors.node_rows[errors.codes == Code.UNRESOLVABLE]] = False
        return found

    def spec(self, row: int) -> PodSpec:
        found: PodSpec = self.tables.classes.specs[self.tables.tasks.cls[row]]
        return found

    def request(self, row: int) -> F64:
        """Return the request of one task. Shape (R,)."""
        found: F64 = self.tables.classes.req[self.tables.tasks.cls[row]]
        return found

    def asks(self, job: int) -> F64:
        """Return what the job asks for before it can begin: its next tasks together. Shape (R,)."""
        rows = self.waiting_rows(job)[: self.needed(job)]
        found: F64 = sum((self.request(row) for row in rows), start=np.zeros(len(self.axis)))
        return found

    def fits(self, request: F64, room: F64) -> Bool:
        """Return the nodes with room for one such task. Shapes (R,), (N, R) -> (N,)."""
        asked = self.asked_in(request)
        return np.asarray((request[asked] - room[:, asked] < EPS).all(axis=1))

    def can_ever_run(self, job: int) -> bool:
        """Return True if each pod of the job fits on some node that is empty."""
        kinds = set(self.tables.tasks.cls[self.tables.jobs.tasks[job]].tolist())
        amounts = [self.tables.classes.req[cls] for cls in sorted(kinds)]
        return all(bool(self.fits(each, self.facts.allocatable).any()) for each in amounts)

    def scarcest(self, request: F64, room: F64) -> int:
        """Return the requested dimension that limits the number of such pods most. Shapes (R,), (N, R)."""
        asked = self.asked_in(request)
        if not asked or not len(room):
            return asked[0] if asked else 0
        count = np.floor((room[:, asked] + EPS) / request[asked]).clip(min=0).sum(axis=0)
        return asked[int(count.argmin())]

    def shortest(self, request: F64, room: F64) -> int:
        """Return the requested dimension that is short on most nodes, or else the scarcest. Shapes (R,), (N, R)."""
        asked = self.asked_in(request)
        short = (request[asked] - room[:, asked] >= EPS).sum(axis=0)
        return asked[int(short.argmax())] if len(short) and short.any() else self.scarcest(request, room)
