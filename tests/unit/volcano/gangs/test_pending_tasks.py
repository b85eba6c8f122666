"""What is left to place of a job: which tasks, in which runs, and which sub-job comes first."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.framework.cycle.session import Session
from pumice.model.pod import LabelSelector, Requirement
from pumice.model.workloads.podgroup import SubGroupPolicy
from pumice.testing.build import cluster, node, pod, podgroup, session
from pumice.volcano.gangs.pending_tasks import PendingTasks, SubJobQueue

GANG = "tiers: [{plugins: [{name: gang}]}]"


def opened(*members: Any, **of_group: Any) -> Session:
    return session(cluster(node("n"), podgroup("g", 1, **of_group), list(members)), GANG)


def names(ssn: Session, rows: list[int]) -> str:
    return " ".join(ssn.tables.tasks.pods[row].name for row in rows)


def queue_of(ssn: Session) -> SubJobQueue:
    (sub_queue,) = PendingTasks(ssn, 0).sub_queues.values()
    return sub_queue


def member(name: str, **more: Any) -> Any:
    return pod(name, "g", **more)


@pytest.mark.parametrize(
    ("special", "listed"),
    [
        pytest.param({}, "a b", id="pending tasks"),
        pytest.param({"on": "n"}, "a", id="none that runs"),
        pytest.param({"cpu": 0, "memory": 0}, "a", id="none that asks for nothing"),
        pytest.param({"gates": ("mine",)}, "a", id="none that others hold"),
    ],
)
def test_which_tasks_are_left(special: dict[str, Any], listed: str) -> None:
    ssn = opened(member("a"), member("b", **special))
    assert names(ssn, queue_of(ssn).rows) == listed


def test_a_job_of_which_nothing_is_left() -> None:
    assert not PendingTasks(opened(member("a", on="n")), 0)


def test_equal_tasks_are_a_run() -> None:
    ssn = opened(member("a"), member("b"), member("c", cpu=2), member("d", cpu=2), member("e", cpu=2))
    sub_queue = queue_of(ssn)
    runs = []
    while sub_queue:
        runs.append(names(ssn, sub_queue.next(sub_queue.run_length())))
        sub_queue.position += sub_queue.run_length()
    assert runs == ["a b", "c d e"]
    assert not sub_queue.is_one_run
    assert queue_of(opened(member("a"), member("b"))).is_one_run


@pytest.mark.parametrize(
    ("second", "uniform"),
    [
        pytest.param({"role": "one"}, True, id="a role, a class"),
        pytest.param({"role": "two", "cpu": 2}, True, id="two roles with one each"),
        pytest.param({"role": "one", "cpu": 2}, False, id="a role with two"),
    ],
)
def test_whether_a_node_that_fails_one_of_a_role_fails_all(second: dict[str, Any], uniform: bool) -> None:
    assert queue_of(opened(member("a", role="one"), member("b", **second))).uniform_roles is uniform


def test_a_copy_has_a_position_of_its_own() -> None:
    sub_queue = queue_of(opened(member("a"), member("b")))
    twin = sub_queue.copy()
    twin.position = 1
    assert (sub_queue.position, twin.rows) == (0, sub_queue.rows)


def test_sub_jobs_that_must_be_ready_for_the_job_come_first() -> None:
    policies = [
        SubGroupPolicy(
            "a",
            selector=LabelSelector((Requirement("part", "In", ("a",)),)),
            match_label_keys=("part",),
            sub_group_size=1,
        ),
        SubGroupPolicy(
            "b", selector=LabelSelector((Requirement("part", "In", ("b",)),)), sub_group_size=1, min_sub_groups=1
        ),
    ]
    ssn = opened(member("a-0", labels={"part": "a"}), member("b-0", labels={"part": "b"}), sub_groups=policies)
    pending_tasks = PendingTasks(ssn, 0)
    order = []
    while pending_tasks:
        order.append(names(ssn, pending_tasks.sub_queues[pending_tasks.pop()].rows))
    assert order == ["b-0", "a-0"]
