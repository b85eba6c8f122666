"""Equal pods of a gang travel together: one event, one call of each hook; and nothing comes in another order for it."""

from __future__ import annotations

import pytest

from pumice.model.decisions import Bind, Refusal
from pumice.model.workloads.podgroup import PodGroup
from pumice.sim.cluster import SimCluster
from pumice.sim.equal_pods import EqualPods, in_parts
from pumice.sim.measures.node_usage import counted
from pumice.sim.workloads.spans import DURATION_ANNOTATION
from pumice.sim.workloads.work import LooseGang, SimJob, SimTask
from tests.unit.sim.kit import SPECS, job, node, pod, world


def binds(cluster: SimCluster, to: str) -> list[Bind]:
    return [Bind(key, each.uid, to, each.group_key) for key, each in cluster.pods.items()]


def sizes(parts: list[EqualPods]) -> list[int]:
    return [len(part) for part in parts]


def test_pods_of_another_spec_state_or_job_travel_apart() -> None:
    pods = [
        pod("a"),
        pod("b"),
        pod("c", cpu=2),
        pod("d", cpu=2, phase="Running"),
        pod("D", cpu=2, phase="Running", node_name="n0"),
        pod("e", cpu=2, phase="Running", annotations={"scheduling.k8s.io/group-name": "g"}),
        pod("f", annotations={DURATION_ANNOTATION: "1s"}),
        pod("g", annotations={DURATION_ANNOTATION: "1s"}),
    ]
    assert [list(part) for part in in_parts({each.name: each for each in pods})] == [
        ["a", "b"],
        ["c"],
        ["d"],
        ["D"],
        ["e"],
        ["f"],
        ["g"],
    ]


def test_a_gang_is_bound_started_and_cleared_together() -> None:
    cluster, controller = world(node("n0"))
    controller.submit(job("j", 3, seconds=9))
    cluster.engine.advance(0)
    bound: list[EqualPods] = []
    left: list[EqualPods] = []
    cluster.hooks.bound.append(bound.append)
    cluster.hooks.left.append(left.append)
    events = cluster.engine.events_run

    assert cluster.submit(binds(cluster, "n0")) == {}
    cluster.engine.advance(0)

    assert controller.live["ns/j"].whole
    assert cluster.engine.events_run - events == 2  # the last pod starts alone: with it, the gang runs
    cluster.engine.advance(9)
    assert (sizes(bound), sizes(left), cluster.pods) == ([3], [3], {})


@pytest.mark.parametrize(("minimum", "started"), [(1, [1]), (3, [2, 1]), (5, [4, 1])])
def test_pods_that_start_after_a_job_that_takes_no_time_do_not_start(minimum: int, started: list[int]) -> None:
    cluster, controller = world(node("n0", cpu=8))
    controller.submit(job("j", 5, seconds=0, minimum=minimum))
    cluster.engine.advance(0)
    parts: list[EqualPods] = []
    cluster.hooks.started.append(parts.append)

    cluster.submit(binds(cluster, "n0"))
    cluster.engine.advance(0)

    assert (sizes(parts), controller.ended_count) == (started, 1)


def test_the_rest_of_a_gang_starts_before_what_was_bound_later() -> None:
    cluster, controller = world(node("n0", cpu=8))
    for name in "ab":
        controller.submit(job(name, 3, minimum=1))
    cluster.engine.advance(0)
    order: list[str] = []
    cluster.hooks.started.append(order.extend)

    cluster.submit(binds(cluster, "n0"))
    cluster.engine.advance(0)

    assert order == [f"ns/{name}-worker-{i}" for name in "ab" for i in range(3)]


def test_one_refused_decision_costs_the_others_nothing() -> None:
    cluster, controller = world(node("n0"))
    controller.submit(job("j", 3))
    cluster.engine.advance(0)
    first, second, third = binds(cluster, "n0")

    refusals = cluster.submit([first, second._replace(node="n9"), third, first])

    assert refusals == {1: Refusal("node n9 does not exist"), 3: Refusal("pod ns/j-worker-0 is already on node n0")}
    assert [each.node_name for each in cluster.pods.values()] == ["n0", "", "n0"]
    assert (cluster.binds_done, cluster.refusals) == (2, 2)


def test_pods_that_come_on_nodes_start_in_the_order_of_the_log() -> None:
    """With the second the gang is whole: its event comes between the first two and the third."""
    marks = {"scheduling.k8s.io/group-name": "g"}
    placed = [pod(name, node_name="n0", phase="Running", annotations=marks) for name in "abc"]
    cluster, controller = world(node("n0"))
    reports: list[str] = []
    controller.hooks.started.append(lambda run: reports.append(run.key))
    cluster.hooks.started.append(reports.extend)
    controller.submit(LooseGang(PodGroup("ns", "g", "g", min_member=2), (pod("w", annotations=marks), *placed)))
    cluster.engine.advance(0)
    assert reports == ["ns/a", "ns/g", "ns/b", "ns/c"]
    assert cluster.pods_on == {"n0": {"ns/a": None, "ns/b": None, "ns/c": None}}


def test_the_outline_of_a_job_is_that_of_its_pods() -> None:
    spec = SPECS[1]
    tasks = (SimTask("a", 2, spec), SimTask("b", 3, SPECS[2]), SimTask("c", 0, SPECS[4]), SimTask("d", 4, spec))
    work = SimJob("ns", "j", "default", tasks, 9, 60.0)
    group, pods = work.expand(7.0)
    outlined, specs = work.outline(7.0)
    assert (outlined, counted(specs)) == (group, counted((each.spec, 1) for each in pods))
    assert counted(work.outline(7.0)[1]) == ((spec, 6), (SPECS[2], 3))
