"""Decide whether a task may evict others or should wait for its nominated node. Source: Volcano preempt action, and
PodEligibleToPreemptOthers of kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pumice.columns.rows import NodeRows
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.framework.plugin.filter_result import Code, Unfit
from pumice.model.blockers import NODE, Blocker, Missing, NeverPreempts, Reserved
from pumice.model.pod import Pod
from pumice.volcano import points

NEVER = "Never"


def never_preempts(task: Task) -> bool:
    """Return True if the preemptionPolicy of the pod or its group is Never."""
    # From the pod and not from its priority class: the API server has copied it there.
    if task.pod.spec.preemption_policy == NEVER:
        return True
    return bool(task.job) and task.job.group.never_preempts


def why_not_eligible(ssn: Session, task: Task, *, was_tried: bool, is_void: bool) -> Blocker | None:
    """Return why a task may not evict others, or None if it may.

    A nominated task waits for its node while filters accept it there, or while a victim is terminating there.
    ``was_tried`` False: no node has been examined for it in this session. ``is_void``: ignore the nomination, since
    the node is not getting room for the task.
    """
    if never_preempts(task):
        return NeverPreempts()
    name = task.pod.nominated_node
    if not name:
        return None
    node = ssn.tables.nodes.facts.row_of.get(name, -1)
    # Volcano ends with an error here, so that the task evicts for no other node either.
    if node < 0:
        return Missing(NODE, name)
    if is_void or ssn.tables.tasks.nominated[task.row] < 0:
        # An earlier action cleared the nomination, or the node has not become free for the task.
        return None
    reasons = _reasons(ssn, task, node)
    # Quirk of Volcano, kept on purpose: filters that read other pods need a state that is prepared when nodes are
    # examined. Without it they return an error, which counts as a rejection.
    if not reasons and (was_tried or ssn.hooks.forms(points.predicate).isdisjoint(("task", "of_tasks"))):
        return Reserved("", (name,))
    if any(unfit.code is Code.UNRESOLVABLE for unfit in reasons):
        return None
    # Otherwise each cycle would evict more pods for a task whose room is already being made.
    return Reserved("", (name,), leaving=True) if _makes_room(ssn, task, node) else None


def pipelined_again(stmt: Statement, task: Task, fits: Callable[[Task, int], bool]) -> bool:
    """Return True if the task was pipelined to its nominated node again, because it fits there without evictions.

    Volcano lets such a task wait for allocate, which does not place a part of a gang. If a scheduler stopped when only
    some nodes of a gang were vacated, the gang would wait forever (decision 0016).
    """
    node = int(task.tables.tasks.nominated[task.row])
    return node >= 0 and fits(task, node) and stmt.pipeline([task.row], [node], evicted=False) is None


def _reasons(ssn: Session, task: Task, node: int) -> list[Unfit]:
    """Return the reasons of filters that reject one node."""
    one = NodeRows(ssn.tables, np.array([node]))
    filter_results = ssn.ask(points.class_filters, task.cls, one) + ssn.ask(points.task_filters, task, one)
    return [unfit for filter_result in filter_results for unfit in filter_result.why[filter_result.codes[0]]]


def _makes_room(ssn: Session, task: Task, node: int) -> bool:
    """Return True if a pod of lower priority that a scheduler preempted is terminating on the node."""
    tasks, own = ssn.tables.tasks, _priority(task.pod)
    pods = [tasks.pods[row] for row in (tasks.node == node).nonzero()[0].tolist()]
    return any(_is_preempted(pod) and _priority(pod) < own for pod in pods)


def _priority(pod: Pod) -> int:
    """Return the priority of a pod."""
    return pod.spec.priority or 0


def _is_preempted(pod: Pod) -> bool:
    """Return True if a scheduler preempted the pod."""
    said = ("DisruptionTarget", "True", "PreemptionByScheduler")
    return pod.deletion is not None and any((c.type, c.status, c.reason) == said for c in pod.conditions)
