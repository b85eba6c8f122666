"""Whether a task may have others evicted, or should wait for the node that it is nominated to. Source: Volcano preempt
eligibility (spec 03 §4.4; kube-scheduler's PodEligibleToPreemptOthers)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pumice.columns.rows import NodeRows
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.framework.plugin.filter_result import Code, Unfit
from pumice.model.blockers import Blocker, Missing, NeverPreempts, Reserved
from pumice.model.pod import Pod
from pumice.volcano import points

NEVER = "Never"


def never_preempts(task: Task) -> bool:
    """Whether its preemptionPolicy says so."""
    return task.pod.spec.preemption_policy == NEVER


def why_not_eligible(ssn: Session, task: Task, *, was_tried: bool, is_void: bool) -> Blocker | None:
    """Why the task may not have others evicted, None where it may.

    One that is nominated to a node waits for that as long as filters let it in, or somebody is on the way out there for
    it. Not ``was_tried``: no node has been looked at for it in this session. Then filters that look at other pods
    have an error instead of an answer in Volcano, so they do not let it in. ``is_void``: its nomination counts for
    nothing, since the node is not getting room for it.
    """
    if never_preempts(task):
        return NeverPreempts()
    name = task.pod.nominated_node
    if not name:
        return None
    node = ssn.tables.nodes.facts.row_of.get(name, -1)
    if node < 0:
        return Missing("Node", name)
    if is_void or ssn.tables.tasks.nominated[task.row] < 0:
        return None  # an earlier action took the nomination back, or nothing came of it
    reasons = _reasons(ssn, task, node)
    if not reasons and (was_tried or "task" not in ssn.hooks.forms(points.predicate)):
        return Reserved("", (name,))
    if any(unfit.code is Code.UNRESOLVABLE for unfit in reasons):
        return None
    return Reserved("", (name,), leaving=True) if _makes_room(ssn, task, node) else None


def promised_again(stmt: Statement, task: Task, fits: Callable[[Task, int], bool]) -> bool:
    """Whether the task was promised its nominated node again, which it ``fits`` without anybody's leaving.

    Volcano has such a task wait for ``allocate``, which places nobody of a gang that is not whole: one that a
    scheduler was killed over, with only some of its nodes free, would wait for ever (decision 0017).
    """
    node = int(task.tables.tasks.nominated[task.row])
    return node >= 0 and fits(task, node) and stmt.pipeline([task.row], [node], evicted=False) is None


def _reasons(ssn: Session, task: Task, node: int) -> list[Unfit]:
    """What filters say against one node."""
    one = NodeRows(ssn.tables, np.array([node]))
    filter_results = ssn.ask(points.class_filters, task.cls, one) + ssn.ask(points.task_filters, task, one)
    return [unfit for filter_result in filter_results for unfit in filter_result.why[filter_result.codes[0]]]


def _makes_room(ssn: Session, task: Task, node: int) -> bool:
    """Whether a pod of lower priority is on its way off the node since a scheduler wanted it so."""
    tasks, own = ssn.tables.tasks, _priority(task.pod)
    pods = [tasks.pods[row] for row in (tasks.node == node).nonzero()[0].tolist()]
    return any(_is_preempted(pod) and _priority(pod) < own for pod in pods)


def _priority(pod: Pod) -> int:
    return pod.spec.priority or 0


def _is_preempted(pod: Pod) -> bool:
    said = ("DisruptionTarget", "True", "PreemptionByScheduler")
    return pod.deletion is not None and any((c.type, c.status, c.reason) == said for c in pod.conditions)
