"""Two jobs whose pods differ in one field: a hook that reads it is asked about both, at each point, in each form.

Each cycle decides what it decides without a memory, and what it decides where the two jobs ask for different amounts of
CPU, so that nothing takes them for equal.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

from pumice.api import NOW, PODS, ROWS
from pumice.columns.job_rows import JobRows
from pumice.columns.rows import TaskRows
from pumice.columns.runs import TaskRun
from pumice.columns.views import Job, SubJob, Task
from pumice.framework.cycle.trace import Admitted
from pumice.framework.memo import Memo
from pumice.framework.plugin.filter_result import FilterResult, Invalid, Unfit
from pumice.model.decisions import Refusal
from pumice.model.events import Object
from pumice.model.pod import Pod
from pumice.model.queue import PriorityClass
from pumice.state.store import Store
from pumice.testing.build import Ran, cluster, hypernode, node, pod, podgroup, policy, queue, resource, run
from pumice.testing.fields import FIELDS, field_of
from pumice.volcano.eviction.context import EvictionContext
from tests.unit.framework.every_point import FORMS, PARTS, WORLDS, Form, neutral, plugin_at

#: What the hooks of a test read: rows that they are asked about, or more.
READS: tuple[tuple[str, ...] | None, ...] = (None, (ROWS,), (ROWS, PODS, NOW))
VARIANTS = list(product((False, True), READS, (False, True)))
#: A hook answers by a pod only where it is given one, and not by its class.
SINGLE = {"Task", "TaskRows", "Job", "JobRows", "SubJob", "TaskRun", "EvictionContext"}
#: Points about the parts of one job, of which these have one each.
_ORDERS_ONE = {"task_order", "sub_job_order", "sub_job_ready"}
#: Points whose answers decide nothing, and gates, which no job has in these clusters.
DECIDES_NOTHING = {"on_deallocate", "job_enqueued", "gate_taken_off"}


def objects(world: str, field: str, *, swapped: bool, apart: bool) -> tuple[tuple[Object, ...], Pod]:
    """Two jobs of one pod, of which the second's has another value of a field, and that pod. ``swapped``: the second is
    the older. ``apart``: it asks for a little less."""
    more: dict[str, Any] = {"phase": "Inqueue", "priority_class": "high"}
    if world == "parts":
        more |= {"tier": 1, "sub_groups": PARTS}
    elif world == "gangs of parts":
        more["sub_groups"] = PARTS
    elif world == "admission":
        more |= {"phase": "Pending", "min_resources": resource(1)}
    labels = {"part": "left"}
    first = pod("a-0", "a", priority=100, labels=labels)
    second = FIELDS[field](pod("b-0", "b", cpu=0.999 if apart else 1, priority=100, labels=labels))
    groups = [
        podgroup("a", 1, creation=float(swapped), **more),
        podgroup("b", 1, creation=float(not swapped), namespace=second.namespace, **more),
    ]
    return (*_surroundings(world), *groups, first, second), second


def _surroundings(world: str) -> list[Object]:
    """Return nodes with room, or a node full of two queues, and what else is there."""
    found: list[Object] = [
        PriorityClass("high", 100),
        PriorityClass("low", 1),
        queue(weight=4),
        queue("other", creation=1.0),
    ]
    if not WORLDS[world].places and world != "admission":
        found.append(node("n1", 4))
        for name, of in (("own", "default"), ("others", "other")):
            found.append(podgroup(name, 1, of, phase="Running", priority_class="low"))
            found += [pod(f"{name}-{i}", name, on="n1", priority=1) for i in range(2)]
        return found
    found += [node("n1", 8), node("n2", 8), hypernode("s1", 1, ["n1"]), hypernode("s2", 1, ["n2"])]
    if world == "releasing":
        found += [podgroup("ends", 1, phase="Running"), pod("ends-0", "ends", on="n1", deletion=1.0)]
    return found


class Asked(NamedTuple):
    """The field of the present case, and the value of it that the second pod has."""

    field: str
    own: object

    def by(self, argument: Any) -> list[bool]:
        """Return for each pod of what a hook is asked about whether it has that value."""
        match argument:
            case Task():
                rows = [argument.row]
            case TaskRows():
                rows = argument.rows.tolist()
            case TaskRun():
                rows = argument.rows
            case Job() | SubJob():
                rows = argument.tasks.tolist() if hasattr(argument.tasks, "tolist") else list(argument.tasks.rows)
            case JobRows():
                rows = [int(argument.tables.jobs.tasks[job][0]) for job in argument.rows.tolist()]
            case EvictionContext():
                return self.by(argument.job)
            case _:
                return []
        pods = argument.tables.tasks.pods
        return [field_of(pods[row], self.field) == self.own for row in rows]


def answer(form: Form, asked: Asked, *args: Any) -> Any:
    """Return the neutral answer about pods with the value, and another one about all others."""
    name, by = form.point.name, [asked.by(arg) for arg in args]
    if name.endswith("_order") and form.point.switch in ("JobOrder", "TaskOrder", "SubJobOrder"):
        if len(args) == 2:
            return int(all(by[1])) - int(all(by[0]))
        keys = [float(not each) for each in by[0]]
        return np.array(keys) if form.takes[0].endswith("Rows") else keys[0]
    # Pods that are gone leave a job without any.
    single = next((each for each in by if each), [False])
    if name == "victim_tasks":
        return ~np.array(single)
    if all(single):
        return neutral(form, *args)
    rows = args[1] if len(args) > 1 else ()
    match name:
        case "allocatable":
            return (
                single.index(False)
                if form.takes[1] == "TaskRows" and not all(single)
                else neutral(form, *args)
                if all(single)
                else False
            )
        case "job_ready" | "sub_job_ready" | "job_starving" | "preemptive" | "simulate_allocatable":
            return False
        case "job_pipelined" | "sub_job_pipelined" | "job_enqueueable":
            return -1
        case "predicate" if form.takes[1] == "NodeRows":
            return FilterResult.of(np.zeros(len(rows), dtype=bool), Unfit("first"))
        case "predicate" | "pre_predicate" | "simulate_add_task" | "simulate_remove_task" | "simulate_predicate":
            return Unfit("first")
        case "job_valid":
            return Invalid("First", "first")
        case "waits":
            return np.ones(len(rows), dtype=bool)
        case "preemptable" | "reclaimable" | "unified_evictable":
            return np.zeros(len(rows), dtype=bool)
        case "node_order" | "node_map" if form.takes[1] == "Node":
            return float(rows.row)
        case "node_order" | "batch_node_order":
            return rows.rows.astype(float)
        case "node_reduce":
            return rows.rows.astype(float)
        case "best_node":
            return int(rows.rows[-1])
        case "hyper_node_order":
            return np.asarray(rows, dtype=float)
        case "hyper_node_gradient_for_job" | "hyper_node_gradient_for_sub_job":
            return []
        case "on_allocate":
            return Refusal("first")
        case "bind_context":
            return {"first": 1}
    raise AssertionError(f"{name}: write here what changes a decision")


def decided(ran: Ran) -> Any:
    """Return all that a cycle decides."""
    assert not ran.outcome.faults
    admitted = [entry.subject for entry in ran.outcome.entries if entry.finding == Admitted()]
    return ran.decisions, dict(ran.pipelined), ran.outcome.gates, admitted


class Case(NamedTuple):
    """A cluster, and what is decided there without the hook (of jobs that ask for the same)."""

    asked: Asked
    state: Store
    plain: Any


@cache
def case(world: str, field: str, swapped: bool, apart: bool) -> Case:
    found, second = objects(world, field, swapped=swapped, apart=apart)
    state = cluster(list(found))
    plain = None if apart else decided(run(state, WORLDS[world].conf("gang").replace("{name: gang}, ", "", 1)))
    return Case(Asked(field, field_of(second, field)), state, plain)


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(form, id=form.name)
        for form in FORMS
        if SINGLE & set(form.takes) and form.point.name not in DECIDES_NOTHING
    ],
)
def test_two_jobs_are_decided_by_their_own_field(form: Form) -> None:
    now: list[Asked] = []
    policies = [
        policy(
            WORLDS[form.world].conf("odd"),
            plugins=[plugin_at(form, lambda *args: answer(form, now[0], *args), reads, opens=opens)],
        )
        for opens, reads, _ in VARIANTS
    ]
    different = 0
    for number, field in enumerate(FIELDS):
        # Each field once, in turn with the other ways to write the hook and the other order of the jobs.
        at = number % len(VARIANTS)
        other, found = (case(form.world, field, VARIANTS[at][2], apart) for apart in (True, False))
        now[:] = [other.asked]
        wanted = decided(run(other.state, policies[at], memo=Memo(keeps=False)))
        now[:], memo = [found.asked], Memo()
        for kept in (memo, memo):
            assert decided(run(found.state, policies[at], memo=kept)) == wanted, field
        different += wanted != found.plain
    assert different or form.point.name in _ORDERS_ONE, "the hook changes no decision"
