"""backfill: pods that ask for nothing go wherever filters allow, and are bound once their job is ready."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.model.events import Object
from pumice.model.pod import HostPort
from pumice.model.queue import PriorityClass
from pumice.testing.build import cluster, node, pod, podgroup, pods, queue, run, session
from pumice.volcano.actions.backfill import tasks_in_order

CONF = "actions: backfill\ntiers: [{plugins: [{name: priority}, {name: gang}, {name: predicates}]}]"
NOTHING: dict[str, Any] = {"cpu": 0, "memory": 0}


def group(name: str, count: int = 1, minimum: int = 1, phase: str = "Inqueue", **more: Any) -> list[Object]:
    """A job of pods that ask for nothing."""
    about = {key: more.pop(key) for key in ("queue", "priority_class", "creation") if key in more}
    return [podgroup(name, minimum, phase=phase, **about), *pods(name, count, **(NOTHING | more))]


@pytest.mark.parametrize(
    ("job", "binds"),
    [
        pytest.param(group("g"), {"ns/g-0": "n"}, id="asks for nothing"),
        pytest.param(group("g", cpu="1m"), {}, id="asks for something"),
        pytest.param(group("g", phase="Pending"), {}, id="is not admitted"),
        pytest.param(group("g", gates=("wait",)), {}, id="is held by a gate"),
        pytest.param(group("g", queue="gone"), {}, id="has no queue"),
        pytest.param(group("g", minimum=2), {}, id="has too few pods"),
        pytest.param(group("g", node_selector=(("zone", "x"),)), {}, id="wants another node"),
    ],
)
def test_who_is_placed(job: list[Object], binds: dict[str, str]) -> None:
    """On a node that has nothing left but room for pods."""
    full = node("n", cpu=1), podgroup("old", phase="Running"), pod("old-0", "old", on="n")
    assert run(cluster(full, job), CONF).binds == binds


@pytest.mark.parametrize(("minimum", "binds"), [(1, {"ns/g-0": "n"}), (2, {})])
def test_they_are_bound_once_their_job_is_ready(minimum: int, binds: dict[str, str]) -> None:
    """A pod that asks for something waits beside it."""
    assert run(cluster(node("n"), group("g", minimum=minimum), pod("more", "g", 1)), CONF).binds == binds


def test_one_that_waits_counts_for_its_job_as_if_it_were_placed() -> None:
    """So a gang of such pods is not held together: as many are bound as find a place. Source: Volcano ReadyTaskNum."""
    assert len(run(cluster(node("n", pods=1), group("g", 2, 2)), CONF).binds) == 1


def test_pods_beyond_the_minimum_are_bound_one_by_one() -> None:
    assert len(run(cluster(node("n", pods=3), group("g", 5, 2)), CONF).binds) == 3


def test_objections_to_a_pod_are_recorded() -> None:
    selects = group("g", node_selector=(("zone", "x"),))
    found = run(cluster(node("n"), selects), CONF)
    assert "didn't match Pod's node affinity/selector" in str(list(found.outcome.notices()))


def test_the_best_queue_the_best_job_and_the_best_task_come_first() -> None:
    """Queues by name, jobs by priority, tasks by priority."""
    levels = PriorityClass("low", 1), PriorityClass("high", 9)
    jobs = [
        group("b-low", queue="b", priority_class="low"),
        group("a-low", queue="a", priority_class="low"),
        group("a-high", queue="a", priority_class="high", creation=9.0),
    ]
    more = pod("a-low-1", "a-low", **NOTHING, priority=5)
    ssn = session(cluster(levels, queue("a"), queue("b"), node("n"), *jobs, more), CONF)
    keys = [ssn.tables.tasks.pods[row].name for row in tasks_in_order(ssn)]
    assert keys == ["a-high-0", "a-low-1", "a-low-0", "b-low-0"]


def test_what_an_earlier_action_promised_is_taken_back_and_tried_again() -> None:
    ssn = session(cluster(node("n"), group("g")), CONF)
    (row,) = ssn.tables.tasks.alive.nonzero()[0].tolist()
    stmt = ssn.statement()
    assert stmt.pipeline([row], [0]) is None
    stmt.keep_uncommitted()
    assert ssn.tables.nodes.view[0].any()
    assert tasks_in_order(ssn) == [row]
    assert int(ssn.tables.tasks.node[row]) == -1
    assert not ssn.tables.nodes.view[0].any(), "plugins are told"


@pytest.mark.parametrize(
    ("actions", "promised_first", "on"),
    [
        pytest.param("backfill, allocate", "true", "b", id="held for whom it was freed"),
        pytest.param("backfill, allocate", "false", "a", id="whoever comes first, as in Volcano"),
        pytest.param("backfill", "true", "a", id="nothing will come of the promise"),
    ],
)
def test_ports_that_were_freed_for_a_gang_are_its_own(actions: str, promised_first: str, on: str) -> None:
    """One pod of it is nominated to node a, and waits for the rest; the other asks for nothing but the same port."""
    port = {"host_ports": (HostPort(80),)}
    state = cluster(
        node("a", cpu=1),
        node("b", cpu=1),
        [podgroup("gang", 1, phase="Inqueue", creation=1.0), pod("gang-0", "gang", nominated_node="a", **port)],
        group("other", **port),
    )
    arguments = f"\nconfigurations: [{{name: backfill, arguments: {{promisedFirst: {promised_first}}}}}]"
    found = run(state, CONF + arguments, actions=actions)
    assert found.binds["ns/other-0"] == on


def test_without_such_pods_nothing_is_looked_at() -> None:
    ssn = session(cluster(node("n"), podgroup("g", phase="Inqueue"), pods("g", 1)), CONF)
    assert tasks_in_order(ssn) == []
