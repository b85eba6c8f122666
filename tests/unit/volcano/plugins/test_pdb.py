"""pdb: what budgets let go, node by node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.rows import Candidates, TaskRows
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.model.disruption import PodDisruptionBudget
from pumice.model.pod import LabelSelector
from pumice.model.queue import PriorityClass
from pumice.testing.build import budget, cluster, node, pod, podgroup, run, session
from pumice.testing.check import check_plugin

CONF = "actions: allocate\ntiers: [{plugins: [{name: pdb}]}]"
WEB = {"app": "web"}


def opened(*objects: Any) -> Session:
    """Two nodes with two pods each, and one that waits."""
    members = [pod(f"p{i}", "g", on="xxyy"[i], labels=WEB, creation=float(i)) for i in range(4)]
    nodes = [node("x"), node("y", creation=1.0)]
    return session(cluster(nodes, podgroup("g"), members, pod("w", "g"), *objects), CONF)


def rows_of(ssn: Session, *names: str) -> list[int]:
    row = {each.name: row for row, each in enumerate(ssn.tables.tasks.pods) if each is not None}
    return [row[name] for name in names]


def victims(ssn: Session) -> list[str]:
    rows = rows_of(ssn, "p0", "p1", "p2", "p3")
    candidates = Candidates(ssn.tables, np.array(rows), np.array([0, 2, 4]))
    found = ssn.hooks.plugin("pdb").evictable(Task(ssn.tables, rows_of(ssn, "w")[0]), candidates)
    return [f"p{i}" for i in np.flatnonzero(found).tolist()]


@pytest.mark.parametrize(
    ("budgets", "found"),
    [
        pytest.param([], "p0 p1 p2 p3", id="none"),
        pytest.param([budget("b", WEB, 1)], "p0 p2", id="each node is looked at as if there were no other"),
        pytest.param([budget("b", WEB, 0)], "", id="one that allows nothing"),
        pytest.param([budget("b", WEB, 2), budget("c", WEB, 1)], "p0 p2", id="all of them must allow it"),
        pytest.param([budget("b", {"app": "other"}, 0)], "p0 p1 p2 p3", id="one of others"),
        pytest.param([budget("b", WEB, 0, namespace="elsewhere")], "p0 p1 p2 p3", id="one of another namespace"),
        pytest.param([budget("b", {}, 0)], "p0 p1 p2 p3", id="one of everything covers nobody, as in Volcano"),
        pytest.param(
            [PodDisruptionBudget("ns", "b", None, 0)], "p0 p1 p2 p3", id="one without a selector covers nobody"
        ),
        pytest.param([budget("b", WEB, 0, disrupted=("p1",))], "p1", id="a pod on its way out is counted already"),
    ],
)
def test_who_may_go(budgets: list[PodDisruptionBudget], found: str) -> None:
    assert victims(opened(budgets)) == found.split()


def test_of_all_tasks_together_a_budget_counts_once() -> None:
    ssn = opened(budget("b", WEB, 1))
    rows = TaskRows(ssn.tables, np.array(rows_of(ssn, "p0", "p1", "p2", "p3")))
    assert ssn.hooks.plugin("pdb").victim_tasks(rows).mask.tolist() == [True, False, False, False]


def test_a_pod_without_labels_is_nobodys_victim() -> None:
    ssn = opened(pod("plain", "g", on="x"))
    found = ssn.hooks.plugin("pdb").victim_tasks(TaskRows(ssn.tables, np.array(rows_of(ssn, "plain", "p0"))))
    assert found.mask.tolist() == [False, True]


def test_an_empty_selector_is_not_none() -> None:
    assert budget("b", {}).selector == LabelSelector()


def test_it_keeps_the_contract_of_plugins() -> None:
    check_plugin("pdb", seeds=range(8))


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_of_equal_jobs_the_last_by_uid_loses_the_pod_that_a_budget_allows(names: tuple[str, str]) -> None:
    running = [
        each
        for name in names
        for each in (podgroup(name, 0, phase="Running"), pod(name, name, 2, on="n", labels=WEB, priority=1))
    ]
    waits = [podgroup("high", 1, phase="Inqueue", priority_class="high"), pod("high", "high", 2, priority=9)]
    state = cluster(PriorityClass("high", 9), node("n", 4), running, waits, budget("b", WEB, 1))
    ran = run(state, "tiers: [{plugins: [{name: priority}, {name: gang}, {name: pdb}]}]", actions="allocate, preempt")
    assert ran.evicted == ["ns/b"]
