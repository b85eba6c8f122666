"""Jobs as columns: which belong to a session, which hold resources, and which are equal."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.columns.jobs import INQUEUE_PHASE, PENDING_PHASE, PHASES, RUNNING_PHASE
from pumice.columns.tables import Tables
from pumice.model.status import PodGroupPhase
from pumice.model.workloads.podgroup import NetworkTopology, SubGroupPolicy
from pumice.testing.build import cluster, pod, podgroup, pods, resource


def keys(tables: Tables, rows: Any) -> set[str]:
    return {tables.jobs.uids[row] for row in rows.tolist()}


def test_phases_have_a_code_each() -> None:
    assert list(PodGroupPhase) == PHASES
    names = [PHASES[code].value for code in (PENDING_PHASE, INQUEUE_PHASE, RUNNING_PHASE)]
    assert names == ["Pending", "Inqueue", "Running"]


def test_which_jobs_belong_to_a_session() -> None:
    tables = cluster(podgroup("a"), podgroup("b", queue="gone"), pod("p", "without-group")).snapshot().tables
    assert keys(tables, tables.jobs.alive.nonzero()[0]) == {"ns/a", "ns/b", "ns/without-group"}
    assert keys(tables, tables.jobs.live) == {"ns/a"}


def test_no_row_no_job() -> None:
    tables = cluster().snapshot().tables
    assert tables.jobs.live.tolist() == []


# -- which jobs are equal


def gang(name: str, minimum: int = 2, *, roles: Any = None, group: Any = None, **same: Any) -> list[Any]:
    return [podgroup(name, minimum, roles=roles, **(group or {})), *pods(name, 2, **same)]


@pytest.mark.parametrize(
    ("other", "equal"),
    [
        pytest.param(gang("b"), True, id="equal"),
        pytest.param(
            gang("b", group={"creation": 9.0, "queue": "other", "priority_class": "x"}), True, id="age, queue"
        ),
        pytest.param(gang("b", labels={"app": "x"}), True, id="labels: who looks at them looks at the single task"),
        pytest.param(gang("b", group={"min_resources": resource(1)}), True, id="what is promised at admission"),
        pytest.param(gang("b", cpu=2), False, id="requests"),
        pytest.param(gang("b", 1), False, id="minimum"),
        pytest.param(gang("b", role="ps"), False, id="roles"),
        pytest.param(gang("b", roles={"ps": 1}), False, id="minima of roles"),
        pytest.param(gang("b", roles={"ps": 0}), True, id="a minimum of none is none"),
        pytest.param(gang("b", annotations={"volcano.sh/task-priority": "7"}), False, id="priority of tasks"),
        pytest.param(gang("b", gates=("example.com/wait",)), False, id="gates"),
        pytest.param([podgroup("b", 2), *pods("b", 3)], False, id="one more task"),
        pytest.param([podgroup("b", 2), pod("b-0", "b", 2), pod("b-1", "b", 1)], False, id="one that asks for more"),
    ],
)
def test_jobs_of_one_signature_are_equal(other: list[Any], equal: bool) -> None:
    tables = cluster(gang("a"), other).snapshot().tables
    mine, theirs = tables.jobs.signature[:2].tolist()
    assert mine >= 0 and theirs >= 0
    assert (mine == theirs) is equal


@pytest.mark.parametrize(
    "group",
    [
        pytest.param(podgroup("g", 2, topology=NetworkTopology("hard", 1)), id="a topology"),
        pytest.param(podgroup("g", 2, soft=True), id="a soft one too"),
        pytest.param(podgroup("g", 2, sub_groups=[SubGroupPolicy("part")]), id="sub-groups"),
    ],
)
def test_jobs_with_a_topology_are_like_no_other(group: Any) -> None:
    assert cluster(group, pods("g", 2)).snapshot().tables.jobs.signature[0] == -1


def test_a_job_without_tasks_is_like_no_other() -> None:
    assert cluster(podgroup("g")).snapshot().tables.jobs.signature[0] == -1


@pytest.mark.parametrize(
    ("asks", "same"),
    [
        pytest.param((resource(1), resource(1)), True, id="equal"),
        pytest.param((resource(1), resource(2)), False, id="another amount"),
        pytest.param((resource(1), resource(1, gpu=1)), False, id="another resource"),
    ],
)
def test_jobs_that_ask_for_as_much_at_admission(asks: tuple[Any, Any], same: bool) -> None:
    groups = [podgroup(name, min_resources=ask) for name, ask in zip("ab", asks, strict=True)]
    jobs = cluster(*groups).snapshot().tables.jobs
    assert (jobs.ask[0] == jobs.ask[1]) == same
    assert jobs.has_min[:2].all()


def test_a_job_that_asks_for_nothing_at_admission() -> None:
    jobs = cluster(podgroup("a")).snapshot().tables.jobs
    assert (jobs.ask[0], jobs.has_min[0]) == (-1, False)
