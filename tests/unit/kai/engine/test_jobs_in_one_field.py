"""KAI's language: of two jobs that differ in exactly one field, a hook that reads it is asked about both."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from msgspec.structs import replace

from pumice.api import Bool, Job, JobRows, Node, NodeRows, Session, Task, Unfit, plugin, points
from pumice.columns.dtypes import F64
from pumice.columns.tables import Tables
from pumice.cycle import run_cycle
from pumice.framework.memo import Memo
from pumice.framework.plugin.filter_result import FilterResult
from pumice.framework.plugin.point import NOW, PODS, ROWS
from pumice.framework.plugin.policy_file import Policy, read_policy
from pumice.kai import points as kai
from pumice.kai.engine.parts import Scenario
from pumice.model.decisions import Bind
from pumice.model.pod import Pod
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.loop import ListPlanner
from pumice.runtime.policy.languages import builtin_registry
from pumice.state.store import Store
from pumice.testing.fields import FIELDS, field_of
from tests.unit.kai.cluster import PLUGINS, job, node, queue, store

#: Tells the pod that a hook lets through.
Chooses = Callable[[Pod], bool]


def _pod(tables: Tables, job: int) -> Pod:
    return tables.tasks.pods[int(tables.jobs.tasks[job][0])]


def _before_nodes(marked: Any, chosen: Chooses) -> Any:
    def task(ssn: Session, task: Task) -> Unfit | None:
        return None if chosen(task.pod) else Unfit("first")

    return marked(task)


def _rows_of_nodes(marked: Any, chosen: Chooses) -> Any:
    def over_rows(ssn: Session, task: Task, nodes: NodeRows) -> FilterResult | None:
        return None if chosen(task.pod) else FilterResult(np.ones(len(nodes), np.int32), ((), (Unfit("first"),)))

    return marked(over_rows)


def _one_node(marked: Any, chosen: Chooses) -> Any:
    def one(ssn: Session, task: Task, node: Node) -> Unfit | None:
        return None if chosen(task.pod) else Unfit("first")

    return marked(one)


def _may_reclaim(marked: Any, chosen: Chooses) -> Any:
    def may(ssn: Session, job: Job, amount: F64) -> bool:
        return chosen(_pod(ssn.tables, job.row))

    return marked(may)


def _victims(marked: Any, chosen: Chooses) -> Any:
    def victims(ssn: Session, job: Job, jobs: JobRows) -> Bool:
        return np.full(len(jobs), chosen(_pod(ssn.tables, job.row)))

    return marked(victims)


def _valid(marked: Any, chosen: Chooses) -> Any:
    def valid(ssn: Session, scenario: Scenario) -> bool:
        return chosen(_pod(ssn.tables, scenario.part.job))

    return marked(valid)


#: By point: action, point, hook.
HOOKS: dict[str, tuple[str, Any, Callable[[Any, Chooses], Any]]] = {
    **{
        f"{name} in {action}": (action, point, write)
        for action in ("allocate", "reclaim", "preempt")
        for name, point, write in (
            ("pre_predicate", points.pre_predicate, _before_nodes),
            ("predicate over rows", points.predicate, _rows_of_nodes),
            ("predicate of a node", points.predicate, _one_node),
        )
    },
    "may_reclaim": ("reclaim", kai.may_reclaim, _may_reclaim),
    "reclaim_victims": ("reclaim", kai.reclaim_victims, _victims),
    "reclaim_valid": ("reclaim", kai.reclaim_valid, _valid),
    "preempt_victims": ("preempt", kai.preempt_victims, _victims),
    "preempt_valid": ("preempt", kai.preempt_valid, _valid),
}
#: Fields after whose change the pod no longer waits, or fits no node.
UNPLACEABLE = {
    *("deletion", "gates", "node_name", "phase", "scheduler_name", "spec.affinity", "spec.claim_names"),
    *("spec.missing_config_maps", "spec.node_selector", "spec.resource_claims"),
}
READS: dict[str, tuple[str, ...] | None] = {"by default": None, "rows": (ROWS,), "more": (ROWS, PODS, NOW)}


def under(action: str, *more: Any) -> Policy:
    named = [{"name": name} for name in (*(["mine"] if more else []), *PLUGINS)]
    conf = {"dialect": "kai", "actions": action, "tiers": [{"plugins": named}]}
    return read_policy(conf, builtin_registry().with_plugins("kai", list(more)))


def objects(action: str, field: str, *, swapped: bool) -> tuple[list[Any], Pod]:
    """Two jobs that wait, the second with another value of the field, and the pod of the second. For actions that evict
    the node is full. ``swapped``: the second is the older."""
    room = action == "allocate"
    found: list[Any] = [node("n1", 2), queue("mine", 2), queue("others", 0)]
    for name in () if room else ("old", "older"):
        found += job(name, "mine" if action == "preempt" else "others", ["n1"], priority=10)
    found += job("a", "mine", [""], age=1.0 + swapped)
    *rest, changed = job("b", "mine", [""], age=2.0 - swapped)
    assert isinstance(changed, Pod)
    second = FIELDS[field](changed)
    moved = (replace(each, namespace=second.namespace) if isinstance(each, PodGroup) else each for each in rest)
    return [*found, *moved, second], second


def placed(state: Any, policy: Policy, memo: Memo) -> set[str]:
    """Pods that are bound, or for which others leave."""
    planner = ListPlanner()
    outcome = run_cycle(state.snapshot(), policy, 1_000_000.0, planner, memo=memo)
    assert not outcome.faults
    return {each.pod for each in planner.taken if isinstance(each, Bind)} | set(outcome.pipelined)


class Case(NamedTuple):
    """``own``: the value of the field that the second pod has. ``expected``: what is placed if only it may be."""

    field: str
    state: Store
    own: object
    expected: set[str]


@cache
def cases(action: str, swapped: bool) -> list[Case]:
    """A case for each field. A pod that cannot be placed after the change is not expected with any hook."""
    found = []
    for field in FIELDS:
        each, second = objects(action, field, swapped=swapped)
        state = store(each)
        plain = placed(state, under(action), Memo(keeps=False))
        found.append(Case(field, state, field_of(second, field), {second.key} & plain))
    return found


@pytest.mark.parametrize("name", HOOKS)
def test_a_job_is_decided_by_its_own_field(name: str) -> None:
    """Each field once, with what the hook reads and the order of the jobs in turn."""
    action, point, write = HOOKS[name]
    now: list[Case] = []

    def chosen(pod: Pod) -> bool:
        return field_of(pod, now[0].field) == now[0].own

    policies = [
        under(action, plugin("mine")(write(point if reads is None else point(reads=reads), chosen)))
        for reads in READS.values()
    ]
    for number in range(len(FIELDS)):
        policy, case = policies[number % 3], cases(action, number % 2 == 1)[number]
        now[:], kept = [case], Memo()
        for memo in (Memo(keeps=False), kept, kept):
            assert placed(case.state, policy, memo) == case.expected, case.field


@pytest.mark.parametrize("action", ["allocate", "reclaim", "preempt"])
def test_most_pods_can_be_placed_after_the_change(action: str) -> None:
    assert {case.field for case in cases(action, False) if not case.expected} == UNPLACEABLE
