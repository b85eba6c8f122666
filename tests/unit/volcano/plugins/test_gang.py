"""gang: a job counts when its minimum, and those of its roles, are met."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.job_rows import JobRows
from pumice.columns.rows import Candidates
from pumice.columns.views import Job, Task
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.combine import Vote
from pumice.testing.build import cluster, node, pod, podgroup, pods, run, session

CONF = "tiers: [{plugins: [{name: gang, arguments: {ARGUMENT: FIRST}}]}]"


def opened(group: Any, *members: Any, first: bool = True, argument: str = "finishPartialGangs") -> Session:
    conf = CONF.replace("ARGUMENT", argument).replace("FIRST", str(first).lower())
    return session(cluster(node("n"), podgroup("other", 1), pods("other", 1), group, *members), conf)


def job_of(ssn: Session, name: str = "g") -> Job:
    return Job(ssn.tables, list(ssn.tables.jobs.uids).index(f"ns/{name}"))


def of_roles(text: str, **more: Any) -> list[Any]:
    """A pod for each letter, which is its role."""
    return [pod(f"g-{i}", "g", role=role, **more) for i, role in enumerate(text)]


@pytest.mark.parametrize(
    ("group", "members", "reason"),
    [
        pytest.param(podgroup("g", 2), pods("g", 2), None, id="as many as it needs"),
        pytest.param(podgroup("g", 3), pods("g", 2), "NotEnoughTasks", id="too few"),
        pytest.param(podgroup("g", 2), pods("g", 2, phase="Failed", on="n"), "NotEnoughTasks", id="failed ones"),
        pytest.param(podgroup("g", 2, roles={"a": 1, "b": 1}), of_roles("ab"), None, id="of each role"),
        pytest.param(podgroup("g", 2, roles={"a": 1, "b": 1}), of_roles("aa"), "NotEnoughPodsOfTask", id="not of each"),
    ],
)
def test_whether_the_pods_that_exist_are_enough(group: Any, members: list[Any], reason: str | None) -> None:
    ssn = opened(group, members)
    found = ssn.hooks.plugin("gang").job_valid(job_of(ssn))
    assert (found.reason if found is not None else None) == reason


@pytest.mark.parametrize(
    ("group", "members", "missing"),
    [
        pytest.param(podgroup("g", 3), pods("g", 1, on="n"), 2, id="its minimum"),
        pytest.param(podgroup("g", 1), pods("g", 2, on="n"), 0, id="nothing"),
        pytest.param(podgroup("g", 2, roles={"a": 1, "b": 1}), of_roles("aa", on="n"), 1, id="a role"),
        pytest.param(podgroup("g", 2, roles={"a": 1, "b": 1}), of_roles("ab", on="n"), 0, id="no role"),
    ],
)
def test_what_a_job_lacks(group: Any, members: list[Any], missing: int) -> None:
    ssn = opened(group, members)
    assert ssn.hooks.plugin("gang").job_ready(job_of(ssn)) == missing


def test_what_is_promised_makes_a_job_complete_later() -> None:
    ssn = opened(podgroup("g", 2), pods("g", 2))
    gang, job = ssn.hooks.plugin("gang"), job_of(ssn)
    assert (gang.job_pipelined(job), gang.job_starving(job)) == (Vote.REJECT, True)
    ssn.statement().pipeline(job.tasks.tolist(), [0, 0])
    assert (gang.job_pipelined(job), gang.job_starving(job)) == (Vote.PERMIT, False)


@pytest.mark.parametrize(
    ("argument", "first", "order"),
    [
        pytest.param("finishPartialGangs", True, ["half", "none", "whole"], id="partially bound gangs first"),
        pytest.param("finishPartialGangs", False, ["none", "half", "whole"], id="as Volcano has it"),
        pytest.param("halvesFirst", False, ["none", "half", "whole"], id="by the former name"),
    ],
)
def test_jobs_below_their_minimum_come_first(argument: str, first: bool, order: list[str]) -> None:
    groups = [podgroup("half", 2), podgroup("whole", 1)]
    members = [pod("half-0", "half", on="n"), pod("half-1", "half"), pod("whole-0", "whole", on="n")]
    ssn = opened(podgroup("none", 1), pods("none", 1), groups, members, first=first, argument=argument)
    names = ["none", "half", "whole"]
    rows = JobRows(ssn.tables, np.array([job_of(ssn, name).row for name in names]))
    by = ssn.hooks.plugin("gang").job_order(rows).argsort(kind="stable")
    assert [names[i] for i in by] == order


@pytest.mark.parametrize(("minimum", "spared"), [(1, 2), (2, 1), (3, 0), (4, 0)])
def test_a_gang_lets_go_what_it_can_spare(minimum: int, spared: int) -> None:
    ssn = opened(podgroup("g", minimum), pods("g", 3, on="n"))
    preemptor = Task(ssn.tables, int(job_of(ssn, "other").tasks[0]))
    found = ssn.hooks.plugin("gang").evictable(preemptor, Candidates(ssn.tables, np.array(job_of(ssn).tasks)))
    assert found.sum() == spared


def test_figures_say_how_many_each_job_lacks() -> None:
    ssn = opened(podgroup("g", 3), pods("g", 1, on="n"))
    figures, row = ssn.hooks.plugin("gang").figures(), job_of(ssn).row
    assert (figures["job.lacking"][row], bool(figures["job.ready"][row])) == (2, False)


def test_the_reason_of_each_equal_gang_names_its_own_pods() -> None:
    """They fail for the same reason and are tried together; the reason of one names no pod of another."""
    state = cluster(
        [node(f"n{i}", cpu=1) for i in range(8)],
        [podgroup(name, minimum, phase="Inqueue") for name, minimum in (("a", 2), ("b", 2), ("c", 3))],
        [pod(f"{name}-{i}", name, cpu=2) for name, size in (("a", 2), ("b", 2), ("c", 3)) for i in range(size)],
    )
    said = {update.job: update.status.conditions[0].message for update in run(state).outcome.groups}
    origin = "Origin reason is {}-0: 0/8 nodes are unavailable: 8 Insufficient cpu."
    assert said == {
        f"ns/{name}": f"{size}/{size} tasks in gang unschedulable: pod group is not ready, {size} Pending, "
        f"{size} minAvailable; Pending: {size} Unschedulable. {origin.format(name)}"
        for name, size in (("a", 2), ("b", 2), ("c", 3))
    }


BOTH = """
actions: "enqueue, allocate, backfill"
tiers: [{plugins: [{name: gang, arguments: {gatedCount: GATED}}, {name: predicates}]}]
"""


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize(
    "more", [pytest.param({}, id="by number"), pytest.param({"roles": {"a": 1, "b": 1}}, id="by role")]
)
def test_whether_a_gated_pod_that_asks_for_nothing_counts(gated: bool, more: dict[str, Any]) -> None:
    """It cannot be placed, so without it the other one waits."""
    group = podgroup("g", 2, phase="Inqueue", **more)
    objects = [group, pod("g-0", "g", role="a"), pod("g-1", "g", role="b", cpu=0, memory=0, gates=("mine",))]
    ran = run(cluster(node("n"), objects), BOTH.replace("GATED", str(gated).lower()))
    assert set(ran.binds) == ({"ns/g-0"} if gated else set())


@pytest.mark.parametrize("gated", [True, False])
def test_a_pod_that_asks_for_nothing_and_has_no_gate_counts_always(gated: bool) -> None:
    objects = [podgroup("g", 2, phase="Inqueue"), pod("g-0", "g"), pod("g-1", "g", cpu=0, memory=0)]
    ran = run(cluster(node("n"), objects), BOTH.replace("GATED", str(gated).lower()))
    assert set(ran.binds) == {"ns/g-0", "ns/g-1"}


def test_of_two_pods_that_ask_for_nothing_only_the_gated_one_is_left_out() -> None:
    group = podgroup("g", 3, phase="Inqueue", roles={"a": 1, "b": 1, "c": 1})
    others = [pod("g-1", "g", role="b", cpu=0, memory=0), pod("g-2", "g", role="c", cpu=0, memory=0, gates=("mine",))]
    ran = run(cluster(node("n"), [group, pod("g-0", "g", role="a"), *others]), BOTH.replace("GATED", "false"))
    assert not ran.binds
