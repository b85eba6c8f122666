"""Hooks that say of a class whether its single tasks matter, and give what is asked about each."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api import (
    F64,
    PODS,
    ROWS,
    FilterResult,
    NodeRows,
    PluginFault,
    Session,
    Task,
    TaskClass,
    TaskFilter,
    TaskScore,
    Unfit,
    plugin,
    points,
)
from pumice.framework.memo import Memo
from pumice.testing.build import cluster, node, podgroup, pods, policy, run

CONF = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: nodeorder}, {name: WHO}]}]"


class OffFirst(TaskFilter):
    """Keeps tasks off the first node. ``asked``: about which."""

    def __init__(self, asked: list[str]) -> None:
        self.asked = asked

    def filter_result(self, task: Task, nodes: NodeRows) -> FilterResult:
        self.asked.append(task.key)
        return FilterResult.of(nodes.rows > 0, Unfit("it is the first one"))


class ByNumber(TaskScore):
    """Prefers one node to the others by the number of the task."""

    def __init__(self, asked: list[str]) -> None:
        self.asked = asked

    def score(self, task: Task, nodes: NodeRows) -> F64:
        self.asked.append(task.key)
        return (nodes.rows == int(task.name[-1])).astype(float) * 1000.0


def filters_some(asked: list[str]) -> Any:
    @plugin("of-some")
    @points.predicate(reads=(ROWS, PODS))
    def of_some(ssn: Session, cls: TaskClass) -> TaskFilter | None:
        return OffFirst(asked) if cls.req[0] >= 2000.0 else None

    return of_some


def scores_some(asked: list[str]) -> Any:
    @plugin("of-some")
    @points.batch_node_order(reads=(ROWS, PODS))
    def of_some(ssn: Session, cls: TaskClass) -> TaskScore | float:
        return ByNumber(asked) if cls.req[0] >= 2000.0 else 7.0

    return of_some


def breaking(answer: Any) -> Any:
    @plugin("of-some")
    @points.predicate(reads=(ROWS,))
    def of_some(ssn: Session, cls: TaskClass) -> TaskFilter | None:
        return {}["disk"] if answer == "raises" else answer  # type: ignore[no-any-return]

    return of_some


def gangs() -> Any:
    """Four jobs of two, of which the last two ask for much; there is room for one such on the second node."""
    kinds = zip("abcd", (1, 1, 2, 2), strict=True)
    jobs = [(podgroup(name, 2, phase="Inqueue"), pods(name, 2, cpu=cpu)) for name, cpu in kinds]
    return cluster(node("n0", 4), node("n1", 9), *(each for job in jobs for each in job))


@pytest.mark.parametrize(
    ("some", "jobs", "nodes"),
    [
        pytest.param(filters_some, "cd", ["n1", "n1"], id="filter"),
        pytest.param(scores_some, "c", ["n0", "n1"], id="score, where there are two candidates"),
    ],
)
def test_tasks_are_asked_about_one_by_one_only_in_classes_in_which_they_matter(
    some: Any, jobs: str, nodes: list[str]
) -> None:
    asked: list[str] = []
    under = policy(CONF.replace("WHO", "of-some"), plugins=[some(asked)])
    ran = run(gangs(), under)
    assert {key.rstrip("01") for key in asked} == {f"ns/{job}-" for job in jobs}
    assert [where for key, where in ran.binds.items() if key.startswith("ns/c")] == nodes
    assert ran.binds == run(gangs(), under, memo=Memo(keeps=False)).binds


@pytest.mark.parametrize(
    ("answer", "problem"), [("raises", "KeyError: 'disk'"), (True, "wanted None or a TaskFilter"), (OffFirst, "wanted")]
)
def test_a_hook_that_fails_for_a_class_costs_the_jobs_with_tasks_of_it(answer: Any, problem: str) -> None:
    faults: list[PluginFault] = run(gangs(), CONF.replace("WHO", "of-some"), plugins=[breaking(answer)]).outcome.faults
    assert {(fault.plugin, fault.subject) for fault in faults} == {("of-some", f"ns/{job}") for job in "abcd"}
    assert all(problem in str(fault) for fault in faults)
