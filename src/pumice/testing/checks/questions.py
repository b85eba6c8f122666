"""Questions to hooks, in names of a cluster's objects, so that the same question can be asked in another session.

A question is made from the types that a hook takes and from things that belong together: a task with its own job and
queue, victims that run, amounts that the job asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from random import Random
from typing import Any, NamedTuple, NoReturn

import numpy as np
from msgspec import Struct

from pumice.columns.dtypes import F64
from pumice.columns.job_rows import JobRows
from pumice.columns.rows import Candidates, NodeRows, TaskRows
from pumice.columns.tables import Tables
from pumice.columns.views import Job, Node, Queue, SubJob, Task
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import combine, points
from pumice.framework.plugin.hooks import Hook
from pumice.framework.plugin.point import MultiFormQuestion
from pumice.kai.engine.groups import Subset, groups_of
from pumice.kai.engine.parts import Part, Scenario, amount_of
from pumice.kai.engine.points import QueueRequest
from pumice.kai.engine.tree_order import QueueTree
from pumice.model.devices.gpu import GPU_RESOURCE
from pumice.model.status import PREEMPTABLE_STATUSES, TaskStatus
from pumice.volcano.eviction.context import EvictionContext, EvictionKind


class Subject(NamedTuple):
    """One argument. ``kind``: how ``names`` are looked up. ``value``: what has no name."""

    kind: str
    names: tuple[str, ...] = ()
    value: Any = None

    @property
    def text(self) -> str:
        """Return the subject in words."""
        if self.kind == "value":
            return repr(self.value)
        return f"{self.kind} {' '.join(self.names)}" if self.names else self.kind


class Question(NamedTuple):
    """A question to one hook: ``plugin``, ``point`` and name of the function."""

    plugin: str
    point: str
    hook: str
    subjects: tuple[Subject, ...]

    @property
    def where(self) -> str:
        """Return the hook and its point."""
        return f"{self.hook} at {self.point}"

    @property
    def text(self) -> str:
        """Return the subjects in words."""
        return ", ".join(subject.text for subject in self.subjects)


class Names:
    """Rows by name in the tables of one session."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._made: dict[Subject, Any] = {}

    @cached_property
    def tasks(self) -> dict[str, int]:
        """Return the row of each living task by key."""
        tasks = self.tables.tasks
        return {tasks.pods[row].key: row for row in tasks.alive.nonzero()[0].tolist()}

    @cached_property
    def jobs(self) -> dict[str, int]:
        """Return the row of each job by uid."""
        return {self.tables.jobs.uids[row]: row for row in self.tables.jobs.live.tolist()}

    @cached_property
    def subs(self) -> dict[str, int]:
        """Return the row of each sub-job by uid."""
        subs = self.tables.subs
        return {subs.uids[row]: row for row in subs.alive.nonzero()[0].tolist()}

    @cached_property
    def queues(self) -> dict[str, int]:
        """Return the row of each queue by name."""
        return {name: row for row, name in enumerate(self.tables.queues.names)}

    @cached_property
    def nodes(self) -> dict[str, int]:
        """Return the row of each node by name."""
        return self.tables.nodes.facts.row_of

    def task(self, key: str) -> Task:
        """Return a task of a job that belongs to the session. Raises: KeyError."""
        row = self.tasks[key]
        return Task(self.tables, row) if self.tables.tasks.job[row] in self._live else self._gone(key)

    def sub_job(self, uid: str) -> SubJob:
        """Return a sub-job of a job that belongs to the session. Raises: KeyError."""
        row = self.subs[uid]
        return SubJob(self.tables, row) if self.tables.subs.job[row] in self._live else self._gone(uid)

    @cached_property
    def _live(self) -> frozenset[int]:
        return frozenset(self.jobs.values())

    def _gone(self, name: str) -> NoReturn:
        raise KeyError(name)

    def argument(self, subject: Subject) -> Any:
        """Return the argument that the hook is given. Raises: KeyError if something is no longer there."""
        # Made once, because hooks may recognize an object, and one session hands out the same object.
        if subject not in self._made:
            self._made[subject] = _MADE[subject.kind](self, subject)
        return self._made[subject]

    def rows(self, subject: Subject) -> list[int]:
        """Return the rows of the nodes or jobs that a subject names."""
        of = {"nodes": self.nodes, "jobs": self.jobs}[subject.kind]
        return [of[name] for name in subject.names]

    def array(self, subject: Subject) -> Any:
        """Return ``rows`` as an array."""
        return np.array(self.rows(subject), dtype=np.int64)


def _tasks(names: Names, subject: Subject) -> TaskRows:
    """Return tasks, or candidates if the subject says so, with those of one node beside each other as one group."""
    rows = np.array([names.task(key).row for key in subject.names])
    if subject.value != _CANDIDATES:
        return TaskRows(names.tables, rows)
    node = names.tables.tasks.node[rows]
    return Candidates(
        names.tables, rows, np.array([0, *((node[1:] != node[:-1]).nonzero()[0] + 1).tolist(), len(rows)])
    )


_CANDIDATES = "candidates"


def _waiting(names: Names, job: str) -> list[int]:
    """Return the rows of tasks of a job that wait. Raises: KeyError without a job, or if none waits."""
    tasks, rows = names.tables.tasks, names.tables.jobs.tasks[names.jobs[job]]
    found: list[int] = rows[tasks.status[rows] == TaskStatus.PENDING].tolist()
    return found or names._gone(job)


def asked_for(names: Names, job: str) -> F64 | None:
    """Return what all waiting tasks of a job ask for, or None if none waits. Shape (R,). Raises: KeyError without the
    job."""
    try:
        return amount_of(names.tables, _waiting(names, job))
    except KeyError:
        return None if job in names.jobs else names._gone(job)


def _scenario(names: Names, subject: Subject) -> Scenario:
    """Return a scenario: others leave for a job, of its own queue if the subject says so, otherwise of other queues.

    Raises: KeyError for a job for which no task may leave.
    """
    tables, part = names.tables, _part(names, subject.names[0])
    leaf, queue = QueueTree(tables).leaf, tables.jobs.queue
    own = int(queue[part.job])
    rows = [names.task(key).row for key in subject.names[1:]]
    of = [(row, int(queue[tables.tasks.job[row]])) for row in rows]
    leaves = [row for row, other in of if leaf[other] and (other == own) == subject.value]
    return Scenario(part, leaves) if leaf[own] and leaves else names._gone(subject.names[0])


def _part(names: Names, job: str) -> Part:
    """Return all that waits of a job. Raises: KeyError."""
    by_sub: dict[int, list[int]] = {}
    for row in _waiting(names, job):
        by_sub.setdefault(int(names.tables.tasks.sub[row]), []).append(row)
    return Part(names.jobs[job], by_sub)


_MADE: Mapping[str, Callable[[Names, Subject], Any]] = {
    "task": lambda names, s: names.task(s.names[0]),
    "class of": lambda names, s: names.task(s.names[0]).cls,
    "job": lambda names, s: Job(names.tables, names.jobs[s.names[0]]),
    "sub-job": lambda names, s: names.sub_job(s.names[0]),
    "queue": lambda names, s: Queue(names.tables, names.queues[s.names[0]]),
    "node": lambda names, s: Node(names.tables, names.nodes[s.names[0]]),
    "nodes": lambda names, s: NodeRows(names.tables, names.array(s)),
    "jobs": lambda names, s: JobRows(names.tables, names.array(s)),
    "tasks": _tasks,
    "each job": lambda names, s: [Job(names.tables, names.jobs[name]) for name in s.names],
    "minResources of": lambda names, s: names.tables.jobs.min_resources[names.jobs[s.names[0]]],
    "hypernodes": lambda names, s: np.array([names.tables.tree.row_of[name] for name in s.names], dtype=np.int32),
    "hypernode": lambda names, s: names.tables.tree.row_of[s.names[0]],
    "victims for": lambda names, s: EvictionContext(s.value, Job(names.tables, names.jobs[s.names[0]])),
    "scores of": lambda names, s: np.arange(len(s.names))[::-1].astype(s.value),
    "value": lambda names, s: s.value,
    "numbers": lambda names, s: np.array(s.value),
    "amount of": lambda names, s: amount_of(names.tables, _waiting(names, s.names[0])),
    "queue request": lambda names, s: QueueRequest(names.queues[s.names[0]], asked_for(names, s.names[1])),
    "group": lambda names, s: groups_of(names.tables, _part(names, s.names[0]), lambda member: member.inside),
    "all nodes": lambda names, s: Subset(),
    "scenario": _scenario,
}


class Context(Struct, frozen=True):
    """Things that belong together: a task of a job of a queue, and others to compare with them."""

    task: str
    mate: str  # of the same job
    mates: tuple[str, ...]
    waiting: tuple[str, ...]
    job: str
    other_job: str
    sub: str
    other_sub: str
    queues: tuple[str, str, str]  # the job's own first
    node: str
    victims: tuple[str, ...]
    others: tuple[str, ...]  # what runs or is leaving, of other jobs
    sharing: tuple[str, ...]  # what shares GPUs
    with_gpus: tuple[str, ...]  # nodes
    jobs: tuple[str, ...]
    nodes: tuple[str, ...]
    hypernodes: tuple[str, ...]
    kind: EvictionKind


def draw_context(names: Names, dice: Random, job_key: str = "") -> Context | None:
    """Return a context in a cluster, of a job if one is given, or None if no job has a task."""
    tables = names.tables
    tasks, jobs = tables.tasks, tables.jobs
    at_work = [row for row in names.jobs.values() if len(jobs.tasks[row])]
    if not at_work or not len(names.nodes):
        return None
    job = names.jobs[job_key] if job_key else dice.choice(at_work)
    rows = jobs.tasks[job].tolist()
    # Waiting tasks are preferred, since most hooks are asked about them in a cycle.
    waiting = [row for row in rows if tasks.status[row] == TaskStatus.PENDING]
    task = dice.choice(waiting or rows)
    subs = [row for row in jobs.subs[job] if tables.subs.alive[row]]
    sub = int(tasks.sub[task])
    queue, queues = tables.queues.names[jobs.queue[job]], list(tables.queues.names)
    runs = [
        row
        for row in names.tasks.values()
        if TaskStatus(int(tasks.status[row])) in PREEMPTABLE_STATUSES and tasks.job[row] in names.jobs.values()
    ]
    key = [tasks.pods[row].key for row in rows]
    live = set(names.jobs.values())
    others = live - {job}
    return Context(
        tasks.pods[task].key,
        dice.choice(key),
        tuple(dice.sample(key, len(key))),
        tuple(tasks.pods[row].key for row in waiting[: dice.randint(1, len(waiting))]) if waiting else (),
        jobs.uids[job],
        jobs.uids[dice.choice(at_work)],
        tables.subs.uids[sub],
        tables.subs.uids[dice.choice(subs)],
        (queue, dice.choice(queues), dice.choice(queues)),
        dice.choice(list(names.nodes)),
        tuple(tasks.pods[row].key for row in dice.sample(runs, min(len(runs), 4))),
        tuple(name for name, row in names.tasks.items() if tasks.node[row] >= 0 and tasks.job[row] in others),
        tuple(name for name, row in names.tasks.items() if tasks.pods[row].spec.gpu_share and tasks.job[row] in live),
        tuple(each.name for each in tables.nodes.facts.objs if each.allocatable.get(GPU_RESOURCE)),
        tuple(dice.sample(list(names.jobs), len(names.jobs))),
        tuple(names.nodes),
        tuple(tables.tree.names),
        dice.choice(list(EvictionKind)),
    )


def questions_of(hook: Hook, name: str, context: Context) -> Question | None:
    """Return the question that a context makes for a hook, or None if the hook is notified and not asked, or takes
    something that this module cannot make."""
    if hook.point.combinator is combine.notify or hook.point.name in NOTIFIED:
        return None
    takes = next(form for form, called in hook.point.forms.items() if called == hook.form)
    subjects: list[Subject] = []
    for i, annotation in enumerate(takes):
        found = _subject(annotation, takes[:i], context, hook.point.name)
        if found is None:
            return None
        subjects.append(found)
    return Question(hook.plugin, hook.point.name, name, tuple(subjects))


#: Points that are not asked but called within a trial: see ``undoing``.
NOTIFIED = ("simulate_add_task", "simulate_remove_task")


def _subject(annotation: str, before: tuple[str, ...], c: Context, point: str) -> Subject | None:
    """Return the subject for one parameter, given the types of those before it, or None if there is none."""
    nth = before.count(annotation)
    match annotation:
        case "QueueRequest":
            return Subject("queue request", (c.queues[nth], c.job if nth == 0 else c.other_job))
        case "Group":
            return Subject("group", (c.job,))
        case "Subset":
            return Subject("all nodes", c.nodes)
        case "Scenario":
            return Subject("scenario", (c.job, *c.others), point.startswith("preempt"))
        case "bool":
            return Subject("value", (), len(c.waiting) % 2 == 1)
        case "int" if point == "pod_set_order":
            return Subject("value", (), len(c.waiting) if nth == 0 else len(c.mates))
        case "F64" if point == "device_order":
            return Subject("numbers", (), (0.0, 0.25, 0.5))
        case "F64" if point in ("may_take", "may_reclaim"):
            return Subject("amount of", (c.job,))
        case "Task" if point == "device_order":
            return Subject("task", c.sharing[:1]) if c.sharing else None
        case "Task":
            return Subject("task", (c.task if nth == 0 else c.mate,))
        case "TaskClass":
            return Subject("class of", (c.task,))
        case "Job":
            return Subject("job", (c.job if nth == 0 else c.other_job,))
        case "SubJob":
            return Subject("sub-job", (c.sub if nth == 0 else c.other_sub,))
        case "Queue":
            return Subject("queue", (c.queues[nth],))
        case "Node" if point == "device_order":
            return Subject("node", c.with_gpus[:1]) if c.with_gpus else None
        case "Node":
            return Subject("node", (c.node,))
        case "NodeRows":
            return Subject("nodes", c.nodes)
        case "JobRows":
            return Subject("jobs", c.jobs)
        case "Sequence[Job]":
            return Subject("each job", c.jobs)
        case "TaskRows":
            some = c.waiting if before == ("Queue",) else c.victims if before or point == "victim_tasks" else c.mates
            return Subject("tasks", some) if some else None
        case "Candidates":
            return Subject("tasks", c.victims, _CANDIDATES) if c.victims else None
        case "EvictionContext":
            return Subject("victims for", (c.job,), c.kind)
        case "I32":
            return Subject("hypernodes", c.hypernodes)
        case "int":
            return Subject("hypernode", c.hypernodes[-1:])
        case "str":
            return Subject("value", (), "allocate" if before else c.queues[0])
        case "F64" if "NodeRows" not in before:
            return Subject("minResources of", (c.job,))
        case "F64" | "I64":
            return Subject("scores of", c.nodes, np.float64 if annotation == "F64" else np.int64)
    return None


#: Plugin, point and name of the function: what a hook is known by in any session.
HookKey = tuple[str, str, str]


def hooks_of(ssn: Session, plugins: Iterable[str]) -> dict[HookKey, Hook]:
    """Return every hook that some plugins have in a session."""
    wanted = frozenset(plugins)
    return {
        (hook.plugin, point.name, name_of(hook)): hook
        for point in ssn.policy.dialect.points.values()
        if ssn.policy.plugins_at(point)
        for hook in ssn.hooks.at(point)
        if hook.plugin in wanted
    }


def about_task(hook: Hook) -> Hook:
    """Return a hook that answers for a class what to ask about its tasks as one about a task, and others as they
    are."""
    if hook.form != "of_tasks":
        return hook
    one: MultiFormQuestion[Any, Any]
    one = points.task_filters if hook.point is points.predicate else points.task_scores
    return hook._replace(form="task", call=hook.answers(one))


def about_tasks_in_turn(hook: Hook) -> Hook | None:
    """Return a hook that answers for a class what to ask about its tasks as one about tasks that are placed one after
    the other, None for any other hook."""
    if hook.form != "of_tasks":
        return None
    following: MultiFormQuestion[Any, Any]
    following = points.filters_in_turn if hook.point is points.predicate else points.scores_in_turn
    return hook._replace(form="task", call=hook.answers(following))


def name_of(hook: Hook) -> str:
    """Return ``Class.method``, or the function's name."""
    call: Any = getattr(hook.call, "func", hook.call)
    return str(getattr(call, "__qualname__", "hook")).rpartition("<locals>.")[2]
