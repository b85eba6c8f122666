"""Every extension point, each one a value that is also the decorator which puts a function at it.

A point says how the answers of several plugins are combined, by which switch of the conf file a plugin's hook is turned
off, and which shapes a hook may have. The shape is read from the annotations, and it is a contract: a hook that takes
``TaskClass`` cannot see the single task, so its answer is kept for the class; one that takes ``Task`` is asked each
time; one that takes ``NodeRows`` answers for many nodes with one array. A shape that no point knows is an error at
load. Source: Volcano's session functions and switches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pumice.framework import combine
from pumice.framework.errors import PluginError

F = TypeVar("F", bound=Callable[..., Any])
HOOKS_ATTRIBUTE = "__pumice_hooks__"


@dataclass(frozen=True, eq=False)
class Point:
    """One question that plugins answer.

    ``switch`` is the stem of the conf switch (``JobOrder`` for ``enableJobOrder`` and ``enabledJobOrder``), empty when
    the hook cannot be switched off. ``forms`` maps parameter annotations to the name of the shape. ``tells``: of a
    plugin that is listed twice, each instance hears it once; at other points the last one is asked at both places.
    """

    name: str
    switch: str
    combinator: Callable[..., Any]
    asks: str
    forms: dict[tuple[str, ...], str]
    default_on: bool = True
    switches: tuple[str, ...] = field(default=())
    tells: bool = False

    def __call__(self, hook: F) -> F:
        """Put a function or a method at this point. Raises: PluginError when its parameters have no known shape."""
        shape = shape_of(hook)
        if shape not in self.forms:
            known = " or ".join("(" + ", ".join(form) + ")" for form in self.forms)
            raise PluginError(
                f"hook {hook.__qualname__} at point {self.name}: found parameters ({', '.join(shape)}), wanted {known}"
            )
        marks = [*getattr(hook, HOOKS_ATTRIBUTE, ()), (self, self.forms[shape])]
        setattr(hook, HOOKS_ATTRIBUTE, marks)
        return hook

    @property
    def any_switch(self) -> tuple[str, ...]:
        """The switches of which one must be on; empty: always on."""
        return self.switches or ((self.switch,) if self.switch else ())


def shape_of(hook: Callable[..., Any], skip: int = 1) -> tuple[str, ...]:
    """Annotations of the positional parameters, as written, without the first ``skip`` of them (``self`` or
    ``ssn``)."""
    code = hook.__code__
    names = code.co_varnames[: code.co_argcount]
    found = [str(hook.__annotations__.get(name, "?")) for name in names]
    return tuple(found[skip:])


def _point(name: str, switch: str, combinator: Callable[..., Any], asks: str, *forms: str, **more: Any) -> Point:
    """``forms`` are written ``name: A, B``."""
    table = {}
    for form in forms:
        label, _, parameters = form.partition(":")
        table[tuple(p.strip() for p in parameters.split(",") if p.strip())] = label
    return Point(name, switch, combinator, asks, table, **more)


_ROWS = ("class: TaskClass, NodeRows", "task: Task, NodeRows", "class_node: TaskClass, Node", "task_node: Task, Node")

job_order = _point(
    "job_order",
    "JobOrder",
    combine.first_nonzero,
    "Which job goes first? Compare two (negative: the left one), or give one key a job, smaller first."
    " Ties: older, then UID.",
    "compare: Job, Job",
    "key: JobRows",
)
queue_order = _point(
    "queue_order",
    "QueueOrder",
    combine.first_nonzero,
    "Which queue goes first? Compare two, or give a key. Ties: older, then name.",
    "compare: Queue, Queue",
    "key: Queue",
)
victim_queue_order = _point(
    "victim_queue_order",
    "",
    combine.first_nonzero,
    "Whose victims go first, for a preemptor of the third queue? Without an opinion: the reverse of queue order.",
    "compare: Queue, Queue, Queue",
)
task_order = _point(
    "task_order",
    "TaskOrder",
    combine.first_nonzero,
    "Which task of a job goes first? Ties: index in the pod name, older, UID.",
    "compare: Task, Task",
    "key: TaskRows",
)
sub_job_order = _point(
    "sub_job_order",
    "SubJobOrder",
    combine.first_nonzero,
    "Which sub-job goes first? Ties: match index, UID.",
    "compare: SubJob, SubJob",
    "key: SubJob",
)
cluster_order = _point(
    "cluster_order",
    "ClusterOrder",
    combine.first_nonzero,
    "Which cluster goes first? Ties: name.",
    "compare: str, str",
    default_on=False,
)
predicate = _point(
    "predicate",
    "Predicate",
    combine.first_failure,
    "May the task run on the node? Rows answer a Verdict; one node answers None or Unfit. A Task form may answer None:"
    " no objection to this task, nor to further ones of its class, wherever the first ones go.",
    *_ROWS,
)
pre_predicate = _point(
    "pre_predicate",
    "Predicate",
    combine.first_failure,
    "Is there any point in looking at nodes? None or Unfit.",
    "class: TaskClass",
    "task: Task",
)
node_order = _point(
    "node_order",
    "NodeOrder",
    combine.total,
    "How good is the node for the task? Higher is better; summed over plugins.",
    *_ROWS,
)
batch_node_order = _point(
    "batch_node_order",
    "NodeOrder",
    combine.total,
    "The same, seen over all candidates at once. A Task form may answer one number: the same for every candidate, and"
    " for further tasks of the class.",
    *_ROWS[:2],
)
node_map = _point(
    "node_map",
    "NodeOrder",
    combine.total,
    "A score per node that the plugin's own node_reduce rewrites; ignored without one.",
    "task_node: Task, Node",
)
node_reduce = _point(
    "node_reduce",
    "NodeOrder",
    combine.total,
    "Rewrite the plugin's mapped scores (whole numbers, one a candidate).",
    "task: Task, NodeRows, I64",
)
best_node = _point(
    "best_node",
    "BestNode",
    combine.first_answer,
    "Which of the scored candidates, if not the one with the highest score? A node row or None.",
    "task: Task, NodeRows, F64",
)
hyper_node_order = _point(
    "hyper_node_order",
    "HyperNodeOrder",
    combine.total,
    "How good is each hypernode for the sub-job? One score a row, summed over plugins.",
    "rows: SubJob, I32",
)
hyper_node_gradient_for_job = _point(
    "hyper_node_gradient_for_job",
    "HyperNodeGradient",
    combine.first_registered,
    "Which hypernodes to try, below the given one, in groups of falling preference? None: nothing to try.",
    "rows: Job, int, str",
)
hyper_node_gradient_for_sub_job = _point(
    "hyper_node_gradient_for_sub_job",
    "HyperNodeGradient",
    combine.first_registered,
    "The same for one sub-job.",
    "rows: SubJob, int, str",
)
preemptable = _point(
    "preemptable",
    "Preemptable",
    combine.intersect,
    "Which candidates may the task preempt? (victims, vote).",
    "tasks: Task, list[Task]",
)
reclaimable = _point(
    "reclaimable",
    "Reclaimable",
    combine.intersect,
    "Which candidates may the task reclaim from other queues? (victims, vote).",
    "tasks: Task, list[Task]",
)
unified_evictable = _point(
    "unified_evictable",
    "",
    combine.intersect,
    "Which candidates may a whole gang evict? (victims, vote).",
    "tasks: EvictionContext, list[Task]",
)
overused = _point("overused", "Overused", combine.any_of, "Is the queue done for this session?", "queue: Queue")
preemptive = _point(
    "preemptive",
    "Preemptive",
    combine.all_of,
    "May the queue take from others for these tasks?",
    "tasks: Queue, list[Task]",
)
allocatable = _point(
    "allocatable",
    "Allocatable",
    combine.all_of,
    "May the queue take on the task? For a class: how many of the next n tasks?",
    "task: Queue, Task",
    "run: Queue, TaskClass, int",
)
job_ready = _point(
    "job_ready",
    "JobReady",
    combine.most_missing,
    "May the job's placements be committed? True, False, or how many more tasks must be placed at least.",
    "job: Job",
)
sub_job_ready = _point(
    "sub_job_ready",
    "SubJobReady",
    combine.most_missing,
    "The same for one sub-job; without sub-group policies the job is asked.",
    "sub: SubJob",
)
job_pipelined = _point(
    "job_pipelined",
    "JobPipelined",
    combine.vote,
    "Would the job be ready once releasing resources are free?",
    "job: Job",
)
sub_job_pipelined = _point(
    "sub_job_pipelined", "SubJobPipelined", combine.vote, "The same for one sub-job.", "sub: SubJob"
)
job_enqueueable = _point(
    "job_enqueueable",
    "JobEnqueued",
    combine.vote,
    "May the job be admitted? Asked only for jobs with minResources. A hook that takes the queue and what is asked for"
    " answers a Vote, or the text of a rejection; its rejections hold while others are admitted, so equal jobs are not"
    " asked for again.",
    "job: Job",
    "amount: Queue, F64",
)
job_enqueued = _point("job_enqueued", "JobEnqueued", combine.notify, "The job was admitted.", "job: Job")
job_starving = _point(
    "job_starving", "JobStarving", combine.first_tier_agrees, "May the job preempt or reclaim?", "job: Job"
)
job_valid = _point(
    "job_valid",
    "",
    combine.first_failure,
    "Can the job ever be complete with the pods that exist? None or Invalid.",
    "job: Job",
)
target_job = _point(
    "target_job", "TargetJob", combine.first_registered, "Which of the jobs to help along?", "jobs: list[Job]"
)
reserved_nodes = _point("reserved_nodes", "ReservedNodes", combine.notify, "Set nodes aside now.", "none:")
victim_tasks = _point(
    "victim_tasks",
    "Victim",
    combine.union,
    "Which running tasks should leave, of their own accord?",
    "tasks: list[Task]",
)
simulate_add_task = _point(
    "simulate_add_task",
    "",
    combine.first_failure,
    "What if this task were there too? None or Unfit.",
    "task: Task, Task, Node",
    switches=("Preemptable", "Allocatable"),
)
simulate_remove_task = _point(
    "simulate_remove_task",
    "",
    combine.first_failure,
    "What if this task were gone? None or Unfit.",
    "task: Task, Task, Node",
    switches=("Preemptable", "Allocatable"),
)
simulate_predicate = _point(
    "simulate_predicate",
    "Predicate",
    combine.first_failure,
    "Would the task fit after what was simulated? None or Unfit.",
    "task: Task, Node",
)
simulate_allocatable = _point(
    "simulate_allocatable",
    "Allocatable",
    combine.all_of,
    "Would the queue take the task after what was simulated?",
    "task: Queue, Task",
)
on_allocate = _point(
    "on_allocate",
    "",
    combine.notify,
    "Tasks were placed (allocated, pipelined, or an eviction undone). A Refusal undoes the placement.",
    "run: TaskRun",
    tells=True,
)
on_deallocate = _point(
    "on_deallocate",
    "",
    combine.notify,
    "Tasks left their nodes (evicted, or a placement undone).",
    "run: TaskRun",
    tells=True,
)
bind_context = _point(
    "bind_context",
    "",
    combine.merge,
    "What should the plugin's own work before binding know of the task? A mapping or None; it rides along with the"
    " decision.",
    "task: Task, Node",
)
session_close = _point(
    "session_close", "", combine.notify, "The session ends; plugins are told in reverse order.", "none:", tells=True
)

POINTS: dict[str, Point] = {p.name: p for p in list(globals().values()) if isinstance(p, Point)}

#: Switches that gate no point but change what a plugin does.
FEATURE_SWITCHES = {"Hierarchy": False}
SWITCHES: dict[str, bool] = {p.switch: p.default_on for p in POINTS.values() if p.switch} | FEATURE_SWITCHES
