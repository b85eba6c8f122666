"""List the extension points of Volcano's policy language: those that both languages have, and its own.

Source: Volcano session functions and switches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from itertools import chain

import numpy as np

from pumice.columns.dtypes import F64, I32, Bool
from pumice.columns.rows import Candidates, TaskRows
from pumice.columns.views import Job, Node, Queue, SubJob, Task
from pumice.framework.plugin import combine
from pumice.framework.plugin.adapters import pair_of_single_keys
from pumice.framework.plugin.combine import Named, Rejection, Vote
from pumice.framework.plugin.errors import WrongAnswer
from pumice.framework.plugin.filter_result import Unfit
from pumice.framework.plugin.point import Key, MultiFormQuestion, Point, Question, TwoForms, as_it_is
from pumice.framework.plugin.points import (
    allocatable,
    batch_node_order,
    best_node,
    bind_context,
    class_filters,
    consolidate_victims,
    job_order,
    job_ready,
    job_valid,
    node_map,
    node_order,
    node_reduce,
    on_allocate,
    on_deallocate,
    overused,
    pre_predicate,
    predicate,
    queue_order,
    session_close,
    task_filters,
    task_order,
    task_refused,
    tasks_allowed,
    waits,
)
from pumice.volcano.eviction.context import EvictionContext

# The one comparison of three queues: who loses first depends on who takes. It has no switch, as in Volcano, so no
# policy can turn it off.
victim_queue_order: Point[[Queue, Queue, Queue], int, int] = Point(
    "victim_queue_order",
    "Tasks of which queue are evicted first, for a preemptor of the third queue? Without an answer: in reverse"
    " queue order.",
    "when victims of two queues are compared",
    combine.first_nonzero,
    {("Queue", "Queue", "Queue"): "compare"},
)
sub_job_order: TwoForms[[SubJob], float, [SubJob, SubJob], int, int] = TwoForms(
    "sub_job_order",
    "Which sub-job is placed first? A key, smaller first; or compare two. Ties: match index, UID.",
    "when an action tries a job for the first time",
    combine.first_nonzero,
    {("SubJob",): "key", ("SubJob", "SubJob"): "compare"},
    switch="SubJobOrder",
)
cluster_order: Point[[str, str], int, int] = Point(
    "cluster_order",
    "Which cluster is first? Ties: name.",
    "not asked yet: there is one cluster",
    combine.first_nonzero,
    {("str", "str"): "compare"},
    switch="ClusterOrder",
    # The other switches are on unless a policy file says no; this one, like the hierarchy of queues, must be set.
    # Source: Volcano's loader of the scheduler configuration.
    default_on=False,
)


def finite_scores(tiers: combine.Tiers, subject: object, rows: Sized) -> F64 | float:
    """Return the sum of all scores of some rows, which are finite numbers."""
    found = combine.total(tiers, subject, rows)
    # Asked again only to find the hook whose score is not finite.
    return found if np.isfinite(found).all() else combine.finite_total(tiers, subject, rows)


# Asked about all hypernodes at once, because a score may compare: network-topology-aware prefers, of hypernodes with
# the same best score, those that hold more of the sub-job.
hyper_node_order: Point[[SubJob, I32], F64, F64 | float] = Point(
    "hyper_node_order",
    "How good is each hypernode for the sub-job? One score per row, summed over plugins.",
    "when a sub-job was tried in several hypernodes",
    finite_scores,
    {("SubJob", "I32"): "rows"},
    switch="HyperNodeOrder",
)


# Not combined over plugins, since two ways to walk one tree cannot be merged. Source: Volcano HyperNodeGradientForJobFn
# (framework/session_plugins.go), where the first registered plugin decides alone.
def first_gradient(tiers: combine.Tiers, subject: Job | SubJob, *args: object) -> list[list[int]] | None:
    """Return the groups of hypernodes of the first plugin, None if it has none or no plugin has a hook."""
    hook = next(chain.from_iterable(tiers), None)
    answer = hook(subject, *args) if hook is not None else None
    if hook is None or answer is None:
        return None
    lists = isinstance(answer, list | tuple) and all(isinstance(group, list | tuple) for group in answer)
    # By the kinds that occur: a hook answers for each job with hundreds of hypernodes, which are of one kind.
    if not lists or not all(issubclass(kind, int | np.integer) for kind in set(map(type, chain.from_iterable(answer)))):
        raise WrongAnswer(hook, answer, "None, or lists of hypernodes")
    last = len(subject.tables.tree.names) - 1
    if not all(min(group) >= 0 and max(group) <= last for group in answer if group):
        raise WrongAnswer(hook, answer, f"None, or lists of hypernodes from 0 to {last}")
    return list(answer)


hyper_node_gradient_for_job: Point[[Job, int, str], list[list[int]] | None, list[list[int]] | None] = Point(
    "hyper_node_gradient_for_job",
    "Which hypernodes below the given one should be tried, in groups of falling preference? None: nothing to try. The"
    " text is the purpose: allocate or evict.",
    "when a job with a topology is tried",
    first_gradient,
    {("Job", "int", "str"): "rows"},
    switch="HyperNodeGradient",
)
# A point of its own: a sub-job may have a tighter tier than its job, and starts in the hypernode that is tried for the
# job.
hyper_node_gradient_for_sub_job: Point[[SubJob, int, str], list[list[int]] | None, list[list[int]] | None] = Point(
    "hyper_node_gradient_for_sub_job",
    "Which hypernodes below the given one should be tried for the sub-job? As for a job.",
    "when its job is tried in a hypernode",
    first_gradient,
    {("SubJob", "int", "str"): "rows"},
    switch="HyperNodeGradient",
)
# Two points with one meaning, because a policy switches them off separately: Volcano's chart turns off
# enablePreemptable for gang and drf and leaves their votes on reclaim.
preemptable: TwoForms[[Task, Candidates], Bool | None, [Task, TaskRows], Bool | None, Bool] = TwoForms(
    "preemptable",
    "Which candidates may the task preempt? A mask; None without an opinion. A hook that takes"
    " Candidates answers for many nodes at once, for each node as if there were no other; one that takes"
    " TaskRows is asked node by node.",
    "when a task searches for victims in its own queue",
    combine.intersect_by_node,
    {("Task", "Candidates"): "nodes", ("Task", "TaskRows"): "tasks"},
    switch="Preemptable",
)
reclaimable: TwoForms[[Task, Candidates], Bool | None, [Task, TaskRows], Bool | None, Bool] = TwoForms(
    "reclaimable",
    "Which candidates may the task reclaim from other queues? A mask; None without an opinion. A hook that takes"
    " Candidates answers for many nodes at once, for each node as if there were no other; one that takes"
    " TaskRows is asked node by node.",
    "when a task searches for victims in other queues",
    combine.intersect_by_node,
    {("Task", "Candidates"): "nodes", ("Task", "TaskRows"): "tasks"},
    switch="Reclaimable",
)
# No switch, as in Volcano. A gang takes victims of a whole domain at once, so there are no nodes to answer by.
unified_evictable: Point[[EvictionContext, TaskRows], Bool | None, Bool] = Point(
    "unified_evictable",
    "Which candidates may a whole gang evict? A mask; None without an opinion.",
    "when a gang searches for victims in a domain",
    combine.intersect,
    {("EvictionContext", "TaskRows"): "tasks"},
)
# All tasks at once: gangreclaim asks for a whole gang, and a queue that may take one task need not be allowed to take
# all.
preemptive: Point[[Queue, TaskRows], bool, bool] = Point(
    "preemptive",
    "May the queue reclaim from other queues for these tasks?",
    "before a task of the queue reclaims",
    combine.all_of,
    {("Queue", "TaskRows"): "tasks"},
    switch="Preemptive",
)
# A number as for ``job_ready``, so that a sub-job can be placed in one batch up to its minimum.
sub_job_ready: Point[[SubJob], bool | int, int] = Point(
    "sub_job_ready",
    "Is the sub-job ready? As job_ready. Without sub-group policies, the job is asked instead.",
    "after tasks of the sub-job were placed",
    combine.most_missing,
    {("SubJob",): "sub"},
    switch="SubJobReady",
)
# A vote and not ``all_of``: sla permits in a higher tier what gang rejects below it, and only so does a job that has
# waited too long keep its room. Source: Volcano JobPipelined.
job_pipelined: Point[[Job], Vote, bool] = Point(
    "job_pipelined",
    "Would the job be ready once releasing resources are free?",
    "when a job is not ready after its tasks were placed",
    combine.vote,
    {("Job",): "job"},
    switch="JobPipelined",
)
sub_job_pipelined: Point[[SubJob], Vote, bool] = Point(
    "sub_job_pipelined",
    "Would the sub-job be ready once releasing resources are free?",
    "when a sub-job is not ready after its tasks were placed",
    combine.vote,
    {("SubJob",): "sub"},
    switch="SubJobPipelined",
)
# The form with an amount exists for speed: thousands of pending jobs ask for a handful of different amounts.
job_enqueueable: TwoForms[[Queue, F64], Vote | Rejection, [Job], Vote | Rejection, Rejection | None] = TwoForms(
    "job_enqueueable",
    "May the job be admitted? Asked only for jobs with minResources. A Vote, the text of a rejection, or the QueueLimit"
    " that is exceeded, with its amounts. A rejection by a hook that takes the queue and the amount must still hold"
    " after other jobs are admitted, so that equal jobs are not asked for again.",
    "when enqueue tries a pending job",
    combine.rejection,
    {("Queue", "F64"): "amount", ("Job",): "job"},
    switch="JobEnqueued",
)
job_enqueued: Point[[Job], None, None] = Point(
    "job_enqueued",
    "The job was admitted.",
    "after its admission",
    combine.notify,
    {("Job",): "job"},
    switch="JobEnqueued",
)
# Volcano reserves room for such a task inside of AllocatableFn. Here that hook has no effects, so that its answer can
# be memoized, and the effect has a point of its own under the same switch.
gate_taken_off: Point[[Task], None, None] = Point(
    "gate_taken_off",
    "The scheduling gate with which the task waited for its queue is removed.",
    "when allocate tries a job for the first time, before its tasks are placed",
    combine.notify,
    {("Task",): "task"},
    switch="Allocatable",
)
# Without any hook no job starves, so a policy with preempt and no plugin that knows starving jobs evicts nothing.
# Source: Volcano JobStarving.
job_starving: Point[[Job], bool, bool] = Point(
    "job_starving",
    "May the job preempt or reclaim?",
    "before an action searches for victims for it",
    combine.first_tier_agrees,
    {("Job",): "job"},
    switch="JobStarving",
)
# The next two belonged to the actions elect and reserve, which Volcano has no longer. They are kept so that plugins
# with such hooks, and policies with their switches, still load.
target_job: Point[[Sequence[Job]], Job | None, Job | None] = Point(
    "target_job",
    "Which of the jobs should be favoured?",
    "not asked yet",
    combine.first_registered,
    {("Sequence[Job]",): "jobs"},
    switch="TargetJob",
)
reserved_nodes: Point[[], None, None] = Point(
    "reserved_nodes",
    "Reserve nodes now.",
    "not asked yet",
    combine.notify,
    {(): "none"},
    switch="ReservedNodes",
)
# A union within a tier, and no intersection as above: each plugin evicts for a reason of its own, and one reason is
# enough. Source: Volcano VictimTasks.
victim_tasks: Point[[TaskRows], Bool | combine.MayGo, Bool] = Point(
    "victim_tasks",
    "Which running tasks should be evicted? A mask; MayGo for tasks that may be evicted if another plugin names them.",
    "when shuffle runs",
    combine.union,
    {("TaskRows",): "tasks"},
    switch="Victim",
)
# One of two switches is enough, because plugins of both kinds keep numbers that a simulated move must change. Source:
# Volcano SimulateAddTaskFn.
simulate_add_task: Point[[Task, Task, Node], Unfit | None, Unfit | None] = Point(
    "simulate_add_task",
    "The task is added to the node in a simulation. None or Unfit.",
    "when a preemption is simulated",
    combine.first_unfit,
    {("Task", "Task", "Node"): "task"},
    switches=("Preemptable", "Allocatable"),
)
simulate_remove_task: Point[[Task, Task, Node], Unfit | None, Unfit | None] = Point(
    "simulate_remove_task",
    "The task is removed from the node in a simulation. None or Unfit.",
    "when a preemption is simulated",
    combine.first_unfit,
    {("Task", "Task", "Node"): "task"},
    switches=("Preemptable", "Allocatable"),
)
simulate_predicate: Point[[Task, Node], Unfit | None, Unfit | None] = Point(
    "simulate_predicate",
    "Would the task fit after what was simulated? None or Unfit.",
    "when a preemption is simulated",
    combine.first_unfit,
    {("Task", "Node"): "task"},
    switch="Predicate",
)
simulate_allocatable: Point[[Queue, Task], bool, bool] = Point(
    "simulate_allocatable",
    "Would the queue take the task after what was simulated?",
    "when a preemption is simulated",
    combine.all_of,
    {("Queue", "Task"): "task"},
    switch="Allocatable",
)

# From the names of this module, those that are imported included, so that no point is defined and left out.
POINTS: dict[str, Question] = {p.name: p for p in list(globals().values()) if isinstance(p, Question)}

#: Switches that belong to no point but change what a plugin does.
FEATURE_SWITCHES = {"Hierarchy": False}

# -- questions as they are put


# Volcano asks about one node at a time. A hook written for that must not see candidates of other nodes, since it may
# count those that it has named so far.
def node_by_node(hook: Callable[[Task, TaskRows], Bool | None]) -> Callable[[Task, Candidates], Bool | Named | None]:
    """Wrap a hook that answers for the candidates of one node, so that it answers for several nodes."""

    def over_nodes(task: Task, candidates: Candidates) -> Bool | Named | None:
        if candidates.node_count == 1:
            return hook(task, candidates)
        each = [hook(task, candidates.of_node(nth)) for nth in range(candidates.node_count)]
        victims = np.zeros(len(candidates), dtype=bool)
        for nth, answer in enumerate(each):
            part = candidates.of_node(nth)
            if answer is None:
                continue
            # Checked per node, since a mask of another length would shift the answers of all nodes after it.
            if not combine.is_mask(answer, part):
                raise WrongAnswer(hook, answer, f"None or a mask over {len(part)} tasks")
            victims[candidates.starts[nth] : candidates.starts[nth + 1]] = answer
        # An abstention counts for its node only: on all other nodes the hook takes part in the intersection.
        return Named(victims, np.array([answer is not None for answer in each]))

    return over_nodes


_VICTIMS = {"nodes": as_it_is, "tasks": node_by_node}
preemptable_victims: MultiFormQuestion[[Task, Candidates], Bool] = MultiFormQuestion(
    (preemptable,), _VICTIMS, combine.intersect_by_node
)
reclaimable_victims: MultiFormQuestion[[Task, Candidates], Bool] = MultiFormQuestion(
    (reclaimable,), _VICTIMS, combine.intersect_by_node
)
#: Variants of these, and of ``unified_evictable``, for which every plugin must agree (decision 0017). Volcano drops
#: some votes when it combines tiers.
preemptable_agreed: MultiFormQuestion[[Task, Candidates], Bool] = MultiFormQuestion(
    (preemptable,), _VICTIMS, combine.agree_by_node
)
reclaimable_agreed: MultiFormQuestion[[Task, Candidates], Bool] = MultiFormQuestion(
    (reclaimable,), _VICTIMS, combine.agree_by_node
)
evictable_agreed: MultiFormQuestion[[EvictionContext, TaskRows], Bool] = MultiFormQuestion(
    (unified_evictable,), {"tasks": as_it_is}, combine.agree
)
sub_jobs_compared: MultiFormQuestion[[SubJob, SubJob], int] = MultiFormQuestion(
    (sub_job_order,), {"key": pair_of_single_keys, "compare": as_it_is}, combine.first_nonzero
)
sub_job_keyed: MultiFormQuestion[[SubJob], list[Key]] = MultiFormQuestion(
    (sub_job_order,), {"key": as_it_is}, combine.single_keys
)
amount_rejected: MultiFormQuestion[[Queue, F64], Rejection | None] = MultiFormQuestion(
    (job_enqueueable,), {"amount": as_it_is}, combine.rejection
)
job_rejected: MultiFormQuestion[[Job], Rejection | None] = MultiFormQuestion(
    (job_enqueueable,),
    {
        # Hooks of both forms are asked in the order of the policy, because the first rejection gives the text.
        "amount": lambda hook: lambda job: hook(job.queue, job.tables.jobs.min_resources[job.row]),
        "job": as_it_is,
    },
    combine.rejection,
)

__all__ = [
    "FEATURE_SWITCHES",
    "POINTS",
    "allocatable",
    "amount_rejected",
    "batch_node_order",
    "best_node",
    "bind_context",
    "class_filters",
    "cluster_order",
    "consolidate_victims",
    "evictable_agreed",
    "hyper_node_gradient_for_job",
    "hyper_node_gradient_for_sub_job",
    "hyper_node_order",
    "job_enqueueable",
    "job_enqueued",
    "job_order",
    "job_pipelined",
    "job_ready",
    "job_rejected",
    "job_starving",
    "job_valid",
    "node_map",
    "node_order",
    "node_reduce",
    "on_allocate",
    "on_deallocate",
    "overused",
    "pre_predicate",
    "predicate",
    "preemptable",
    "preemptable_agreed",
    "preemptable_victims",
    "preemptive",
    "queue_order",
    "reclaimable",
    "reclaimable_agreed",
    "reclaimable_victims",
    "reserved_nodes",
    "session_close",
    "simulate_add_task",
    "simulate_allocatable",
    "simulate_predicate",
    "simulate_remove_task",
    "sub_job_keyed",
    "sub_job_order",
    "sub_job_pipelined",
    "sub_job_ready",
    "sub_jobs_compared",
    "target_job",
    "task_filters",
    "task_order",
    "task_refused",
    "tasks_allowed",
    "unified_evictable",
    "victim_queue_order",
    "victim_tasks",
    "waits",
]
