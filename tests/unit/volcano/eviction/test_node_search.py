"""The steps that the search for victims takes of an action's budget."""

from __future__ import annotations

import pytest

from pumice.columns.views import Task
from pumice.framework.cycle.budget import Budget
from pumice.model.pod import Affinity, LabelSelector, PodAffinityTerm
from pumice.testing.build import cluster, node, pod, podgroup, session
from pumice.volcano.eviction.node_search import (
    ALONE_STEPS,
    CLASS_STEPS,
    JOB_STEPS,
    NodeSearch,
    begin_search,
    least_steps,
)


def test_a_job_and_each_further_class_of_its_tasks_take_more_steps_than_an_equal_task() -> None:
    sizes = {"a": 1, "b": 1, "c": 2}
    ssn = session(cluster(node("n"), podgroup("g", 3, phase="Inqueue"), *(pod(p, "g", cpu=sizes[p]) for p in sizes)))
    budget, tasks = Budget(ssn, ssn.jobs.rows, 20_000), dict[str, Task]()
    for row in ssn.tables.jobs.tasks[0].tolist():
        tasks[ssn.tables.tasks.pods[row].name] = Task(ssn.tables, row)
    assert budget.begin(0)
    taken = []
    for name in "abc":
        before = budget.taken
        assert begin_search(budget, tasks[name])
        taken.append(budget.taken - before)
    assert taken == [1 + JOB_STEPS, 1, 1 + CLASS_STEPS]
    assert sum(taken) <= least_steps(ssn)(0)


def test_a_task_that_filters_look_at_alone_takes_more_steps_each_time() -> None:
    ssn = session(cluster(node("n"), podgroup("g", 2, phase="Inqueue"), *(pod(f"g-{i}", "g") for i in range(2))))
    budget, taken = Budget(ssn, ssn.jobs.rows, 20_000), []
    assert budget.begin(0)
    for row in ssn.tables.jobs.tasks[0].tolist():
        before = budget.taken
        assert begin_search(budget, Task(ssn.tables, row), alone=True)
        taken.append(budget.taken - before)
    assert taken == [1 + JOB_STEPS + ALONE_STEPS, 1 + ALONE_STEPS]


@pytest.mark.parametrize("terms", [(), (PodAffinityTerm("host", LabelSelector()),)])
def test_terms_about_other_pods_are_looked_at_for_each_task_alone(terms: tuple[PodAffinityTerm, ...]) -> None:
    waits = pod("g-0", "g", labels={"app": "x"}, affinity=Affinity(anti_required=terms))
    conf = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]"
    ssn = session(cluster(node("n", labels={"host": "n"}), podgroup("g", 1, phase="Inqueue"), waits), conf)
    search = NodeSearch(ssn, cached=False, by_score=False)
    search.reachable(Task(ssn.tables, int(ssn.tables.jobs.tasks[0][0])))
    assert search.is_alone == bool(terms)
