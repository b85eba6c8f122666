"""One scheduling cycle's world: tables to write on through the journal, the plugins' hooks, and what has been noted so
far."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from inspect import ismethod
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from pumice.columns.counting import ALLOCATED
from pumice.columns.dtypes import F64, I64, AnyArray, Bool
from pumice.columns.journal import Journal
from pumice.columns.ledger import Ledger
from pumice.columns.nodes import PIPELINED, RELEASING
from pumice.columns.rows import NodeRows, TaskRun
from pumice.columns.snapshot import Snapshot
from pumice.columns.views import Job, Queue, SubJob, Task
from pumice.framework import points
from pumice.framework.combine import Vote
from pumice.framework.errors import PluginError
from pumice.framework.feasible import Feasibility, rows_hook
from pumice.framework.fitting import FitNotes
from pumice.framework.placing import Plans
from pumice.framework.points import Point, shape_of
from pumice.framework.policy import Policy
from pumice.framework.statement import Kind, Operation, Statement
from pumice.framework.status import Conditions
from pumice.framework.story import Entry, GroupEvent, JobsEntry
from pumice.framework.topology import TopologyRules, recover_hypernodes
from pumice.framework.verdict import Unfit
from pumice.model.decisions import Decision, Refusal
from pumice.model.status import TaskStatus

V = TypeVar("V")
HookList = list[tuple[str, Callable[..., Any]]]  # (form, hook)


class Room(NamedTuple):
    """An answer to how many of the next ``wanted`` tasks like this one their queue may take on."""

    task: int
    wanted: int
    allowed: int


class Planner(Protocol):
    """The one seam for effects: takes each committed decision, may refuse it."""

    def submit(self, decision: Decision) -> Refusal | None: ...


class Session:
    """Opened on a snapshot under a policy at a moment; closed by ``close``.

    ``now`` is seconds since the epoch. ``touched`` (J,) marks jobs whose status may have to be written anew.
    ``failed_as`` (J,) numbers the failure that a job took over from another one, 0 for none.
    ``standing`` grows with everything that stays in the session: while it is the same, the session is as it was.
    """

    def __init__(
        self, snapshot: Snapshot, policy: Policy, now: float, planner: Planner, *, to_write: bool = True
    ) -> None:
        """``to_write`` False: nothing will be moved; then no column is copied, a write is an error, and a plugin is
        opened when somebody asks for it."""
        self.snapshot = snapshot
        self.policy = policy
        self.now = now
        self.planner = planner
        self.uid = snapshot.uid
        self.tables = snapshot.tables.session_copy(to_write=to_write)
        self.journal = Journal()
        self.ledger = Ledger(self.tables, self.journal)
        self.open_statements = 0
        self.standing = 0
        self.topology = TopologyRules(self.tables)
        self.touched: Bool = np.zeros(self.tables.jobs.capacity, dtype=bool)
        self.failed_as: I64 = np.zeros(self.tables.jobs.capacity, dtype=np.int64)
        self.moved_hypernodes: set[int] = set()  # jobs whose hypernodes should be remembered
        self.story: list[Entry | JobsEntry] = []
        self.rooms: list[Room] = []
        self.events: list[GroupEvent] = []
        self.turned_down: list[tuple[AnyArray, str]] = []  # job rows, and the text of their rejection at admission
        self.fit_notes = FitNotes(self)
        self.conditions = Conditions(self)
        self.action = ""
        self.error_cache = True
        books = self.tables.nodes.books
        self.futures_differ = bool(books[:, RELEASING : PIPELINED + 1].any())
        self.total: F64 = self.tables.nodes.facts.total
        self.all_nodes = NodeRows(self.tables, np.arange(len(self.tables.nodes.facts)))
        self._opened: dict[int, Any] = {}  # plugins by their position in the policy
        self._added: dict[tuple[int, Point], HookList] = {}  # by plugins with Volcano's life cycle
        self._tiers: dict[Point, list[HookList]] = {}
        self._asked: dict[Point, Any] = {}
        self._opening: int | None = None
        self._shared: dict[Hashable, Any] = {}
        self.feasibility = Feasibility(self)
        self.plans = Plans(self)
        if self.tables.tree.ready:
            recover_hypernodes(self)
        if to_write:
            for position in range(len(policy.options)):
                self._open(position)

    def let_go(self) -> None:
        """Forget everything. The session and those that it made know each other: taken apart, all of it is free at
        once, and no collector has to find that out."""
        self.__dict__.clear()

    # -- plugins ------------------------------------------------------------------------------------------------------

    def _open(self, position: int) -> Any:
        """The plugin at a position of the policy."""
        instance = self._opened.get(position)
        if instance is None:
            option, self._opening = self.policy.options[position], position
            instance = option.spec.build(self, option.arguments)
            if hasattr(instance, "on_session_open"):
                instance.on_session_open(self)
            self._opened[position], self._opening = instance, None
        return instance

    @property
    def plugins(self) -> list[tuple[str, Any]]:
        """Every plugin with its name, in the order of the policy."""
        return [(option.spec.name, self._open(i)) for i, option in enumerate(self.policy.options)]

    @property
    def opened(self) -> list[Any]:
        """The plugins that were opened, likewise."""
        return [self._opened[position] for position in sorted(self._opened)]

    def plugin(self, name: str) -> Any:
        """The plugin of a name, None without one; of two the one that answers, which is the last."""
        at = [i for i, option in enumerate(self.policy.options) if option.spec.name == name]
        return self._open(at[-1]) if at else None

    def _hooks_of(self, plugin: int, point: Point) -> HookList:
        """Hooks at a point of the plugin at a position of the policy: those of its class, then those it added when the
        session opened."""
        instance = self._open(plugin)
        if point in getattr(instance, "unused_points", ()):
            return []
        own = self.policy.options[plugin].spec.hooks_at(point)
        hooks = [(form, getattr(instance, attribute) if attribute else instance) for form, attribute in own]
        return hooks + self._added[plugin, point] if (plugin, point) in self._added else hooks

    def add(self, point: Point, hook: Callable[..., Any]) -> None:
        """Register a hook while a plugin's ``on_session_open`` runs (Volcano's life cycle).

        Raises: PluginError outside of it, or when the hook's parameters have no known shape.
        """
        if self._opening is None:
            raise PluginError(f"hook at point {point.name} added outside of on_session_open")
        shape = shape_of(hook, skip=int(ismethod(hook)))
        form = point.forms.get(shape)
        if form is None:
            name, found = self.policy.options[self._opening].spec.name, ", ".join(shape)
            known = " or ".join("(" + ", ".join(f) + ")" for f in point.forms)
            raise PluginError(f"plugin {name}, point {point.name}: found parameters ({found}), wanted {known}")
        self._added.setdefault((self._opening, point), []).append((form, hook))

    def tiers(self, point: Point) -> list[HookList]:
        """Hooks at a point by tier, as (form, hook); plugins that are switched off there, and empty tiers, are left
        out."""
        found = self._tiers.get(point)
        if found is None:
            found = self._tiers[point] = []
            for plugins in self.policy.plugins_at(point):
                hooks = [hook for plugin in plugins for hook in self._hooks_of(plugin, point)]
                if hooks:
                    found.append(hooks)
        return found

    def ask(self, point: Point, *args: Any) -> Any:
        """Put a question to every plugin at the point and combine the answers as the point says."""
        hooks = self._asked.get(point)
        if hooks is None:
            hooks = self._asked[point] = [[self._asked_for_a_job(*hook) for hook in tier] for tier in self.tiers(point)]
        return point.combinator(hooks, *args)

    def _asked_for_a_job(self, form: str, hook: Callable[..., Any]) -> Callable[..., Any]:
        """The hook as a question about one job, where it is written for an amount that a queue is asked for."""
        if form != "amount":
            return hook

        def of_job(job: Job) -> Any:
            answer = hook(Queue(self.tables, job.queue), self.tables.jobs.min_resources[job.row])
            if isinstance(answer, str):
                self.turned_down.append((np.array([job.row]), answer))
                return Vote.REJECT
            return answer

        return of_job

    def has(self, point: Point) -> bool:
        """Whether any plugin answers at the point."""
        return bool(self.tiers(point))

    def column(self, shape: int | tuple[int, ...]) -> F64:
        """A plugin's own numbers, zero at first; write them with ``ssn.journal.put`` and a rollback restores them."""
        return np.zeros(shape)

    def shared(self, key: Hashable, build: Callable[[], V]) -> V:
        """What several plugins need in this session, built by the first that asks."""
        if key not in self._shared:
            self._shared[key] = build()
        return self._shared[key]  # type: ignore[no-any-return]

    def remembered(self, function: Callable[..., F64], *arrays: F64) -> F64:
        """``function(*arrays)``, taken over from the last cycle where the arrays were the same then. Not to be written
        on."""
        asked = tuple((array.shape, array.tobytes()) for array in arrays)
        before: tuple[Any, F64] | None = self.snapshot.memory.get(function.__qualname__)
        if before is None or before[0] != asked:
            before = self.snapshot.memory[function.__qualname__] = asked, function(*arrays)
        return before[1]

    # -- readiness: a sub-job of a job without sub-group policies is asked as its job ---------------------------------

    def job_missing(self, job: int) -> int:
        """How many more tasks must be placed at least until JobReady; 0 when ready."""
        return int(self.ask(points.job_ready, Job(self.tables, job)))

    def job_ready(self, job: int) -> bool:
        return self.job_missing(job) == 0

    def job_pipelined(self, job: int) -> bool:
        return bool(self.ask(points.job_pipelined, Job(self.tables, job)))

    def sub_missing(self, sub: int) -> int:
        """The same for a sub-job."""
        job = int(self.tables.subs.job[sub])
        if not self.tables.jobs.has_policy[job]:
            return self.job_missing(job)
        return int(self.ask(points.sub_job_ready, SubJob(self.tables, sub)))

    def sub_pipelined(self, sub: int) -> bool:
        job = int(self.tables.subs.job[sub])
        if not self.tables.jobs.has_policy[job]:
            return self.job_pipelined(job)
        return bool(self.ask(points.sub_job_pipelined, SubJob(self.tables, sub)))

    def allowed_count(self, queue: int, task: int, count: int) -> int:
        """How many of the next ``count`` tasks equal to ``task`` the queue may take on (Allocatable of every plugin);
        kept in ``rooms``."""
        allowed = count if queue < 0 else self._allowed_count(queue, task, count)
        self.rooms.append(Room(task, count, allowed))
        return allowed

    def _allowed_count(self, queue: int, task: int, count: int) -> int:
        handle = Queue(self.tables, queue)
        one = Task(self.tables, task)
        for form, hook in self._allocatable:
            if form == "run":
                count = min(count, hook(handle, one.cls, count))
            else:
                count = min(count, 1) if hook(handle, one) else 0
            if count <= 0:
                return 0
        return count

    @cached_property
    def _allocatable(self) -> HookList:
        return [hook for tier in self.tiers(points.allocatable) for hook in tier]

    @cached_property
    def rooms_by_class(self) -> bool:
        """Whether queues answer ``allowed_count`` by the class of the task."""
        return all(form == "run" for form, _ in self._allocatable)

    def pre_predicate(self, task: Task) -> Unfit | None:
        """The first reason not to look at nodes at all."""
        for tier in self.tiers(points.pre_predicate):
            for form, hook in tier:
                unfit: Unfit | None = hook(task.cls if form == "class" else task)
                if unfit is not None:
                    return unfit
        return None

    # -- filters and scores, by what they look at ---------------------------------------------------------------------

    def _over_nodes(self, point: Point, kinds: tuple[str, ...], *, filters: bool) -> list[Any]:
        return [
            rows_hook(self, form, hook, filters=filters)
            for tier in self.tiers(point)
            for form, hook in tier
            if form in kinds
        ]

    @cached_property
    def class_predicates(self) -> list[Any]:
        """Filters (TaskClass, NodeRows) -> Verdict."""
        return self._over_nodes(points.predicate, ("class", "class_node"), filters=True)

    @cached_property
    def task_predicates(self) -> list[Any]:
        """Filters (Task, NodeRows) -> Verdict or None."""
        return self._over_nodes(points.predicate, ("task", "task_node"), filters=True)

    @cached_property
    def class_scores(self) -> list[Any]:
        """Scores (TaskClass, NodeRows) -> array."""
        kinds = ("class", "class_node")
        return self._over_nodes(points.node_order, kinds, filters=False) + self._over_nodes(
            points.batch_node_order, kinds, filters=False
        )

    @cached_property
    def task_scores(self) -> list[Any]:
        """Scores (Task, NodeRows) -> array, a number for all, or None."""
        kinds = ("task", "task_node")
        return self._over_nodes(points.node_order, kinds, filters=False) + self._over_nodes(
            points.batch_node_order, kinds, filters=False
        )

    @cached_property
    def mergeable(self) -> bool:
        """Whether a run of equal tasks may be placed in one go: every hook over single nodes can look at nodes as they
        would be."""
        single = [
            form
            for p in (points.predicate, points.node_order)
            for tier in self.tiers(p)
            for form, _ in tier
            if form == "class_node"
        ]
        return (
            not single
            and not self.has(points.best_node)
            and not self.has(points.node_map)
            and self.snapshot.shard is None
        )

    @cached_property
    def shard_mask(self) -> Bool | None:
        """Nodes of this scheduler's shard (N,), None without sharding."""
        shard = self.snapshot.shard
        return (
            None
            if shard is None
            else np.array([name in shard.nodes for name in self.tables.nodes.facts.names], dtype=bool)
        )

    def reduced_scores(self, task: Task, nodes: NodeRows) -> F64 | float:
        """Sum of mapped scores after each plugin's own reduction; a map without a reduction counts for nothing."""
        total: F64 | float = 0.0
        if not self.has(points.node_reduce):
            return total
        for plugins in self.policy.plugins_at(points.node_map):
            for plugin in plugins:
                maps, reduces = self._hooks_of(plugin, points.node_map), self._hooks_of(plugin, points.node_reduce)
                for (_, mapper), (_, reducer) in zip(maps, reduces, strict=False):
                    mapped = np.array([int(mapper(task, node)) for node in nodes], dtype=np.int64)
                    total = total + reducer(task, nodes, mapped)
        return total

    # -- writing ------------------------------------------------------------------------------------------------------

    def statement(self) -> Statement:
        """A set of operations that is committed or leaves no trace."""
        return Statement(self)

    def set_phase(self, job: int, phase: int) -> None:
        self.journal.put(self.tables.jobs.phase, job, phase)
        self.touched[job] = True

    def dispatch(self, job: int) -> None:
        """Bind every allocated task of a job, whichever statement placed it. Source: Volcano Session.Allocate."""
        tasks = self.tables.tasks
        rows = self.tables.jobs.tasks[job]
        for row in rows[tasks.status[rows] == ALLOCATED].tolist():
            stmt = self.statement()
            stmt.operations.append(Operation(Kind.ALLOCATE, [row], [int(tasks.node[row])]))
            stmt.commit()

    def take_back(self, row: int) -> None:
        """Undo a pipelining that an earlier statement left standing."""
        node = int(self.tables.tasks.node[row])
        self.standing += 1
        self.ledger.move([row], TaskStatus.PENDING, [-1])
        self.ask(points.on_deallocate, self.run_of([row], [node]))

    def told_by_inverse(self, point: Point) -> list[Any]:
        """Event hooks of plugins with plain Python state, which a rollback must tell."""
        return [hook for plugin in self.policy.python_plugins for _, hook in self._hooks_of(plugin, point)]

    def run_of(self, rows: list[int], nodes: list[int]) -> TaskRun:
        return TaskRun(self.tables, rows, nodes)

    def tell(self, subject: str, what: str, detail: str = "") -> None:
        """Add to the story."""
        self.story.append(Entry(self.action, subject, what, detail))

    def tell_of_jobs(self, rows: AnyArray, what: str, detail: str = "") -> None:
        """The same of many jobs."""
        self.story.append(JobsEntry(self.action, rows, what, detail))

    def live_jobs(self) -> AnyArray:
        """Rows of jobs that belong to the session: with a pod group and a queue that exists."""
        return self._live_jobs

    @cached_property
    def _live_jobs(self) -> AnyArray:
        jobs = self.tables.jobs
        return (jobs.alive & (jobs.queue >= 0)).nonzero()[0]

    def holding_jobs(self) -> AnyArray:
        """Those of the live jobs that held resources when the session opened."""
        return self._holding_jobs

    @cached_property
    def _holding_jobs(self) -> AnyArray:
        return self.tables.jobs.holding().nonzero()[0]

    def jobs_to_close(self) -> AnyArray:
        """Rows of jobs whose status may have to be written: touched in this session, or changed since it was last
        found in order, or failed in another way than then."""
        jobs = self.tables.jobs
        due = ~jobs.settled | (self.failed_as != jobs.settled_as)
        rows: AnyArray = (jobs.alive & (jobs.queue >= 0) & (due | self.touched)).nonzero()[0]
        return rows
