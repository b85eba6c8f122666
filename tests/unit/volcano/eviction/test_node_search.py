"""The steps that the search for victims takes of an action's budget."""

from __future__ import annotations

from pumice.columns.views import Task
from pumice.framework.cycle.budget import Budget
from pumice.testing.build import cluster, node, pod, podgroup, session
from pumice.volcano.eviction.node_search import CLASS_STEPS, JOB_STEPS, begin_search, least_steps


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
