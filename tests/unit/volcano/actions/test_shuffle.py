"""shuffle: running tasks that plugins name are evicted, each for itself."""

from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import Bool
from pumice.columns.rows import TaskRows
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.plugin import plugin
from pumice.testing.build import cluster, node, pod, podgroup, run
from pumice.volcano import points

STATE = cluster(
    node("n"),
    podgroup("g", phase="Running"),
    pod("old", "g", on="n", creation=1.0),
    pod("new", "g", on="n", creation=2.0),
    pod("bound", "g", on="n", creation=1.0, phase="Pending"),
    pod("loose", on="n", creation=1.0),
).snapshot()


@plugin("old-ones")
@points.victim_tasks
def old_ones(ssn: Session, tasks: TaskRows) -> Bool:
    return np.array([each.creation < 2.0 for each in tasks.pods])


def evicted(*plugins: str) -> list[str]:
    conf = f"tiers: [{{plugins: {[{'name': name} for name in plugins]}}}]"
    return run(STATE, conf, actions="shuffle", plugins=[old_ones]).evicted


def test_who_is_named_goes_if_it_runs_and_is_of_a_job() -> None:
    assert evicted("gang", "old-ones") == ["ns/old"]


def test_nobody_goes_whom_no_plugin_names() -> None:
    assert evicted("gang") == []


@plugin("first-of-two")
@points.victim_tasks
def first_of_two(ssn: Session, tasks: TaskRows) -> Bool:
    """A budget of one."""
    return np.arange(len(tasks)) < 1


def test_of_equal_tasks_those_go_that_come_first_by_name_in_whatever_rows_they_are() -> None:
    pods = [pod(name, "g", on="n") for name in ("a", "b")]
    for given in (pods, pods[::-1]):
        state = cluster(node("n"), podgroup("g", phase="Running"), *given).snapshot()
        found = run(state, "tiers: [{plugins: [{name: first-of-two}]}]", actions="shuffle", plugins=[first_of_two])
        assert found.evicted == ["ns/a"]
