"""The extension points that both policy languages have, and that the framework itself asks. A dialect's own are in its
``points``.

Source: Volcano's session functions and switches (framework/session_plugins.go, conf/scheduler_conf.go).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, Never, Protocol, TypeVar, overload

from pumice.columns.dtypes import F64, I64, AnyArray, Bool
from pumice.columns.job_rows import JobRows
from pumice.columns.rows import ClassRows, NodeRows, TaskRows
from pumice.columns.runs import TaskRun
from pumice.columns.views import Job, Node, Queue, Task, TaskClass
from pumice.framework.plugin import combine
from pumice.framework.plugin import incremental as in_turn
from pumice.framework.plugin.adapters import (
    filter_node_by_node,
    first_of_run,
    masks_of_each,
    of_its_class,
    pair_of_keys,
    pair_of_single_keys,
    score_node_by_node,
    scores_of_each,
)
from pumice.framework.plugin.combine import Allowed
from pumice.framework.plugin.errors import HookFunction
from pumice.framework.plugin.filter_result import ByHook, FilterResult, Invalid, Unfit
from pumice.framework.plugin.point import Key, MultiFormQuestion, P, Point, Question, Reads, TwoForms, as_it_is
from pumice.model.decisions import Refusal

OverRows = TypeVar("OverRows")
OnNode = TypeVar("OnNode")
OfTasks = TypeVar("OfTasks")


# The overloads are written out twice, because a type checker only pairs parameters with an answer if it sees each form.
# A union of forms would accept a mask from a hook that is given one node.
class MarksOverNodes(Protocol[OverRows, OnNode, OfTasks]):
    """What ``@point(reads=…)`` returns: a decorator for a hook of one of the five forms, and no other."""

    @overload
    def __call__(
        self, hook: Callable[[P, TaskClass, NodeRows], OverRows], /
    ) -> Callable[[P, TaskClass, NodeRows], OverRows]: ...
    @overload
    def __call__(self, hook: Callable[[P, Task, NodeRows], OverRows], /) -> Callable[[P, Task, NodeRows], OverRows]: ...
    @overload
    def __call__(self, hook: Callable[[P, TaskClass, Node], OnNode], /) -> Callable[[P, TaskClass, Node], OnNode]: ...
    @overload
    def __call__(self, hook: Callable[[P, Task, Node], OnNode], /) -> Callable[[P, Task, Node], OnNode]: ...
    @overload
    def __call__(self, hook: Callable[[P, TaskClass], OfTasks], /) -> Callable[[P, TaskClass], OfTasks]: ...


class OverNodes(Question, Generic[OverRows, OnNode, OfTasks], frozen=True, eq=False):
    """A question about nodes for a class of tasks or for one task, over rows or for one node at a time, or about what
    to ask about the single tasks of a class."""

    @overload
    def __call__(
        self, hook: Callable[[P, TaskClass, NodeRows], OverRows], /
    ) -> Callable[[P, TaskClass, NodeRows], OverRows]: ...
    @overload
    def __call__(self, hook: Callable[[P, Task, NodeRows], OverRows], /) -> Callable[[P, Task, NodeRows], OverRows]: ...
    @overload
    def __call__(self, hook: Callable[[P, TaskClass, Node], OnNode], /) -> Callable[[P, TaskClass, Node], OnNode]: ...
    @overload
    def __call__(self, hook: Callable[[P, Task, Node], OnNode], /) -> Callable[[P, Task, Node], OnNode]: ...
    @overload
    def __call__(self, hook: Callable[[P, TaskClass], OfTasks], /) -> Callable[[P, TaskClass], OfTasks]: ...
    @overload
    def __call__(self, /, *, reads: Reads, several: str | None = None) -> MarksOverNodes[OverRows, OnNode, OfTasks]: ...
    def __call__(
        self, hook: HookFunction | None = None, /, *, reads: Reads | None = None, several: str | None = None
    ) -> object:
        return self.decorate(hook, reads=reads, several=several)


#: A form is recognized by the names of its annotations, as written: modules of plugins use ``from __future__ import
#: annotations``, and evaluating these would import what the author imports for type checkers only.
_CLASS, _TASK, _OF_TASKS = ("TaskClass", "NodeRows"), ("Task", "NodeRows"), ("TaskClass",)
_OVER_NODES: Mapping[tuple[str, ...], str] = {
    _CLASS: "class",
    _TASK: "task",
    ("TaskClass", "Node"): "class_node",
    ("Task", "Node"): "task_node",
}

job_order: TwoForms[[JobRows], AnyArray, [Job, Job], int, int] = TwoForms(
    "job_order",
    "Which job goes first? One key per job, smaller first; or compare two (negative: left). Ties: older, then UID.",
    "when an action sorts the jobs that it will go through",
    combine.first_nonzero,
    {("JobRows",): "key", ("Job", "Job"): "compare"},
    switch="JobOrder",
)
queue_order: TwoForms[[Queue], Key, [Queue, Queue], int, int] = TwoForms(
    "queue_order",
    "Which queue goes first? A key (a number, or a tuple of them), smaller first; or compare two. Ties: older, then"
    " name.",
    "whenever a queue is put among those that an action has yet to visit",
    combine.first_nonzero,
    {("Queue",): "key", ("Queue", "Queue"): "compare"},
    switch="QueueOrder",
)
task_order: TwoForms[[TaskRows], AnyArray, [Task, Task], int, int] = TwoForms(
    "task_order",
    "Which task of a job goes first? One key per task, smaller first; or compare two. Ties: index in the pod name,"
    " older, UID.",
    "when an action tries a job for the first time",
    combine.first_nonzero,
    {("TaskRows",): "key", ("Task", "Task"): "compare"},
    switch="TaskOrder",
)
predicate: OverNodes[FilterResult | None, Unfit | None, in_turn.TaskFilter | None] = OverNodes(
    "predicate",
    "May the task run on the node? Rows answer a FilterResult, or None if nothing objects; one node answers None or"
    " Unfit. A TaskClass alone answers None, if its single tasks do not matter, or a TaskFilter. A hook about a class"
    " may name a method for several (`several=`), which answers a mask, classes by nodes, or None.",
    "before a task is placed: for a class once, and then for rows that changed; for a task each time",
    combine.filter_results,
    {**_OVER_NODES, _OF_TASKS: "of_tasks"},
    switch="Predicate",
)
#: Switched with ``predicate``: it completes a filter, and would be wrong for a filter that is off.
waits: Point[[Task, NodeRows], Bool | None, Bool | None] = Point(
    "waits",
    "On which nodes that may take the task would it have to wait for something other than resources that others still"
    " have? A mask; None: on none.",
    "when a task should be bound at once if possible",
    combine.any_mask,
    {_TASK: "task"},
    switch="Predicate",
)
pre_predicate: TwoForms[[TaskClass], Unfit | None, [Task], Unfit | None, Unfit | None] = TwoForms(
    "pre_predicate",
    "Is it useful to examine nodes? None or Unfit.",
    "before nodes are examined for a task",
    combine.first_unfit,
    {("TaskClass",): "class", ("Task",): "task"},
    switch="Predicate",
)
node_order: OverNodes[F64 | None, float, Never] = OverNodes(
    "node_order",
    "How good is the node for the task? Higher is better; summed over plugins. None over rows: nothing to say about the"
    " class. A hook about a class may name a method for several (`several=`), which answers scores, classes by nodes.",
    "if a task can go to more than one node",
    combine.total,
    _OVER_NODES,
    switch="NodeOrder",
)
#: Two points for scores, as in Volcano: a score that is scaled to the best candidate needs all candidates, and one that
#: is not stays valid when the set of candidates changes.
batch_node_order: OverNodes[F64 | float | None, Never, in_turn.TaskScore | float | None] = OverNodes(
    "batch_node_order",
    "How good is each candidate for the task, beside the others? Higher is better. One number: the same for each. A"
    " TaskClass alone answers None or one number, if its single tasks do not matter, or a TaskScore. A hook about a"
    " class may name a method for several (`several=`), which answers scores, classes by nodes.",
    "if a task can go to more than one node",
    combine.total,
    {_CLASS: "class", _TASK: "task", _OF_TASKS: "of_tasks"},
    switch="NodeOrder",
)
node_map: Point[[Task, Node], float, list[float]] = Point(
    "node_map",
    "A score per node that the plugin's own node_reduce rewrites; ignored without one.",
    "if a task can go to more than one node, and the plugin has a node_reduce",
    combine.each,
    {("Task", "Node"): "task_node"},
    switch="NodeOrder",
)
node_reduce: Point[[Task, NodeRows, I64], F64, list[F64]] = Point(
    "node_reduce",
    "Rewrite the plugin's mapped scores (whole numbers, one per candidate).",
    "after its node_map",
    combine.each,
    {("Task", "NodeRows", "I64"): "task"},
    switch="NodeOrder",
)
best_node: Point[[Task, NodeRows, F64], int | None, int | None] = Point(
    "best_node",
    "Which of the scored candidates, if not the one with the highest score? A node row or None.",
    "after the candidates for one task have their scores",
    combine.first_row,
    {("Task", "NodeRows", "F64"): "task"},
    switch="BestNode",
)
overused: Point[[Queue], bool, bool] = Point(
    "overused",
    "May the queue be dropped for the rest of the session?",
    "when allocate or reclaim comes to a queue",
    combine.any_of,
    {("Queue",): "queue"},
    switch="Overused",
)
allocatable: TwoForms[[Queue, TaskRows], int | Unfit, [Queue, Task], bool | Unfit, Allowed] = TwoForms(
    "allocatable",
    "How many of these tasks, which would be placed in this order, may the queue take? After these are placed, it"
    " takes none of the others. A hook that takes one Task answers True or False. Either may answer an Unfit with"
    " the reason.",
    "before tasks of a queue are placed",
    combine.fewest,
    {("Queue", "TaskRows"): "run", ("Queue", "Task"): "task"},
    switch="Allocatable",
)
job_ready: Point[[Job], bool | int, int] = Point(
    "job_ready",
    "May the job's placements be committed? True, False, or how many more tasks must be placed at least.",
    "after tasks of the job were placed",
    combine.most_missing,
    {("Job",): "job"},
    switch="JobReady",
)
job_valid: Point[[Job], Invalid | None, Invalid | None] = Point(
    "job_valid",
    "Can the job ever be complete with the pods that exist? None or Invalid.",
    "when an action tries a job for the first time",
    combine.first_invalid,
    {("Job",): "job"},
)
on_allocate: Point[[TaskRun], Refusal | None, Refusal | None] = Point(
    "on_allocate",
    "Tasks were placed (allocated, pipelined, or an eviction undone). A Refusal undoes the placement.",
    "after the bookings have changed, before anything else is decided",
    combine.notify,
    {("TaskRun",): "run"},
    tells=True,
)
#: A rollback restores columns by itself. Notifying plugins that count in columns would undo their numbers twice.
on_deallocate: Point[[TaskRun], Refusal | None, Refusal | None] = Point(
    "on_deallocate",
    "Tasks left their nodes (evicted, or a committed placement refused).",
    "after the bookings have changed. A rollback tells only plugins that keep plain Python state",
    combine.notify,
    {("TaskRun",): "run"},
    tells=True,
)
bind_context: Point[[Task, Node], Mapping[str, object] | None, dict[str, object]] = Point(
    "bind_context",
    "What should the plugin's own work before binding know about the task? A mapping or None, which goes with the"
    " decision.",
    "when a placement is committed, for each task",
    combine.merge,
    {("Task", "Node"): "task"},
)
session_close: Point[[], None, None] = Point(
    "session_close",
    "The session ends.",
    "once, in reverse order of the policy",
    combine.notify,
    {(): "none"},
    tells=True,
)


# -- questions as they are put

jobs_compared: MultiFormQuestion[[Job, Job], int] = MultiFormQuestion(
    (job_order,), {"key": lambda hook: pair_of_keys(hook, JobRows), "compare": as_it_is}, combine.first_nonzero
)
jobs_keyed: MultiFormQuestion[[JobRows], list[AnyArray]] = MultiFormQuestion(
    (job_order,), {"key": as_it_is}, combine.keys
)
queues_compared: MultiFormQuestion[[Queue, Queue], int] = MultiFormQuestion(
    (queue_order,), {"key": pair_of_single_keys, "compare": as_it_is}, combine.first_nonzero
)
queue_keyed: MultiFormQuestion[[Queue], list[Key]] = MultiFormQuestion(
    (queue_order,), {"key": as_it_is}, combine.single_keys
)
tasks_compared: MultiFormQuestion[[Task, Task], int] = MultiFormQuestion(
    (task_order,), {"key": lambda hook: pair_of_keys(hook, TaskRows), "compare": as_it_is}, combine.first_nonzero
)
tasks_keyed: MultiFormQuestion[[TaskRows], list[AnyArray]] = MultiFormQuestion(
    (task_order,), {"key": as_it_is}, combine.keys
)
class_filters: MultiFormQuestion[[TaskClass, NodeRows], list[FilterResult]] = MultiFormQuestion(
    (predicate,), {"class": as_it_is, "class_node": filter_node_by_node}, combine.filter_results
)
task_filters: MultiFormQuestion[[Task, NodeRows], list[FilterResult]] = MultiFormQuestion(
    (predicate,),
    {"task": as_it_is, "task_node": filter_node_by_node, "of_tasks": in_turn.filter_of_tasks},
    combine.filter_results,
)
# For explanations: which plugin refuses is not needed to place a task, and numbering the hooks would cost each
# question.
class_filters_by_hook: MultiFormQuestion[[TaskClass, NodeRows], ByHook] = MultiFormQuestion(
    (predicate,), class_filters.forms, combine.filter_results_by_hook
)
task_filters_by_hook: MultiFormQuestion[[Task, NodeRows], ByHook] = MultiFormQuestion(
    (predicate,), task_filters.forms, combine.filter_results_by_hook
)
_CLASS_SCORES = {"class": as_it_is, "class_node": score_node_by_node}
_TASK_SCORES = {"task": as_it_is, "task_node": score_node_by_node, "of_tasks": in_turn.score_of_tasks}
class_scores: MultiFormQuestion[[TaskClass, NodeRows], F64 | float] = MultiFormQuestion(
    (node_order, batch_node_order), _CLASS_SCORES, combine.total
)
# Asked only after a sum was not finite. Testing each score of each plugin beforehand would cost every question.
class_scores_checked: MultiFormQuestion[[TaskClass, NodeRows], F64 | float] = MultiFormQuestion(
    (node_order, batch_node_order), _CLASS_SCORES, combine.finite_total
)
classes_open: MultiFormQuestion[[ClassRows, NodeRows], Bool | None] = MultiFormQuestion(
    (predicate,),
    {"class": masks_of_each, "class_node": lambda hook: masks_of_each(filter_node_by_node(hook))},
    combine.open_to_each,
    of_several=True,
)
classes_scored: MultiFormQuestion[[ClassRows, NodeRows], F64] = MultiFormQuestion(
    (node_order, batch_node_order),
    {"class": scores_of_each, "class_node": lambda hook: scores_of_each(score_node_by_node(hook))},
    combine.totals,
    of_several=True,
)
task_scores: MultiFormQuestion[[Task, NodeRows, F64 | float], F64 | float] = MultiFormQuestion(
    (node_order, batch_node_order), _TASK_SCORES, combine.total
)
task_scores_checked: MultiFormQuestion[[Task, NodeRows, F64 | float], F64 | float] = MultiFormQuestion(
    (node_order, batch_node_order), _TASK_SCORES, combine.finite_total
)
#: For a run of equal tasks: one question in place of one for each task, if every hook can follow the placements itself.
filters_in_turn: MultiFormQuestion[[TaskRows, NodeRows], list[tuple[in_turn.Hook, in_turn.FilterInTurn]] | None] = (
    MultiFormQuestion(
        (predicate,),
        {
            "task": in_turn.filter_of_first,
            "task_node": lambda hook: in_turn.filter_of_first(filter_node_by_node(hook)),
            "of_tasks": in_turn.in_turn_of(in_turn.TaskFilter),
        },
        in_turn.filters_of,
    )
)
scores_in_turn: MultiFormQuestion[
    [TaskRows, NodeRows], list[tuple[in_turn.Hook, in_turn.ScoreInTurn | float]] | None
] = MultiFormQuestion(
    (node_order, batch_node_order),
    {
        "task": in_turn.score_of_first,
        "task_node": lambda hook: in_turn.score_of_first(score_node_by_node(hook)),
        "of_tasks": in_turn.in_turn_of(in_turn.TaskScore),
    },
    in_turn.scores_of,
)
#: Points that are asked about tasks and nodes.
ABOUT_NODES: tuple[Question, ...] = (predicate, node_order, batch_node_order)
task_refused: MultiFormQuestion[[Task], Unfit | None] = MultiFormQuestion(
    (pre_predicate,), {"class": of_its_class, "task": as_it_is}, combine.first_unfit
)
# A hook about one task speaks of the first only, so the answer is at most 1, and its caller asks again for the next.
tasks_allowed: MultiFormQuestion[[Queue, TaskRows], Allowed] = MultiFormQuestion(
    (allocatable,), {"run": as_it_is, "task": first_of_run}, combine.fewest
)
consolidate_victims: Point[[Job, JobRows], Bool, Bool] = Point(
    "consolidate_victims",
    "Which jobs may be moved for the job? A mask; all plugins must agree.",
    "when consolidation begins for a job",
    combine.every_mask,
    {("Job", "JobRows"): "jobs"},
)
