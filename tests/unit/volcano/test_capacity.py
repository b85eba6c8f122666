"""capacity: what it refuses and why, how it counts along the tree, and devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.rows import TaskRows
from pumice.columns.views import Job, Queue, Task
from pumice.framework.combine import Vote
from pumice.framework.session import Session
from pumice.framework.verdict import Unfit
from pumice.model.claims import ResourceClaim, ResourceClaimTemplate
from pumice.model.pod import Pod
from pumice.model.resources import Resource
from pumice.testing.build import cluster, node, pod, podgroup, pods, queue, resource, run, session
from pumice.testing.check import check_plugin
from pumice.volcano.device_quota import PREFIX

FLAT = "actions: 'enqueue, allocate'\ntiers: [{plugins: [{name: capacity}]}]"
TREE = "actions: 'enqueue, allocate'\ntiers: [{plugins: [{name: capacity, enableHierarchy: true}]}]"


def opened(conf: str, *objects: Any) -> Session:
    return session(cluster(node("n", 16), *objects), conf)


def queue_of(ssn: Session, name: str) -> Queue:
    return Queue(ssn.tables, ssn.tables.queues.row_of[name])


def waiting(ssn: Session) -> TaskRows:
    tasks = ssn.tables.tasks
    rows = [row for row, each in enumerate(tasks.pods) if each is not None and not each.node_name]
    return TaskRows(ssn.tables, np.array(rows, dtype=np.int64))


@pytest.mark.parametrize(
    ("queues", "in_queue", "problem"),
    [
        pytest.param([queue("a")], "a", 'there is no queue "root"', id="no root"),
        pytest.param(
            [queue("root"), queue("a", parent="gone")],
            "a",
            'parent "gone" of queue "a" is not there',
            id="a parent that is not there",
        ),
        pytest.param(
            [queue("root"), queue("a"), queue("b", parent="a")],
            "a",
            'queue "a" of job ns/g has queues below it',
            id="a job in a queue with children",
        ),
        pytest.param([queue("root"), queue("a"), queue("b", parent="a")], "b", "", id="a tree"),
    ],
)
def test_without_a_tree_nothing_is_admitted_placed_or_taken(queues: list[Any], in_queue: str, problem: str) -> None:
    group = podgroup("g", 1, in_queue, min_resources=resource(1), phase="Inqueue")
    ssn = opened(TREE, queues, group, pods("g", 1))
    capacity, of = ssn.hooks.plugin("capacity"), queue_of(ssn, in_queue)
    assert capacity.problem == problem
    tasks = waiting(ssn)
    admits, places = capacity.job_enqueueable(of, resource_vector(ssn, 1)), capacity.allocatable(of, tasks)
    if problem:
        assert (admits, places, capacity.preemptive(of, tasks)) == (Vote.REJECT, Unfit(problem), False)
        told = [(entry.what, entry.detail) for entry in ssn.story.entries]
        assert ("no hierarchy", problem) in told
    else:
        assert (admits, places) == (Vote.PERMIT, 1)


def resource_vector(ssn: Session, cpu: float) -> Any:
    return ssn.tables.axis.vector(resource(cpu))


def test_a_task_counts_in_its_queue_and_in_all_above_it_and_comes_off_again() -> None:
    queues = [queue("root"), queue("a", deserved=resource(4)), queue("b", parent="a", deserved=resource(2))]
    ssn = opened(TREE, queues, podgroup("g", 1, "b", phase="Inqueue"), pods("g", 2))
    capacity, before = ssn.hooks.plugin("capacity"), ssn.world.digest()
    with ssn.statement() as stmt:
        assert stmt.allocate(waiting(ssn).rows.tolist(), [0, 0]) is None
        held = {name: capacity.allocated.array[queue_of(ssn, name).row, 0] for name in ("root", "a", "b")}
        shares = {name: capacity.share.array[queue_of(ssn, name).row] for name in ("a", "b")}
        stmt.discard()
    assert held == {"root": 2000, "a": 2000, "b": 2000}
    assert shares == {"a": 0.5, "b": 1.0}
    assert ssn.world.digest() == before


@pytest.mark.parametrize(
    ("level", "may"), [pytest.param(0, False, id="for itself"), pytest.param(1, True, id="for its parent")]
)
def test_who_may_reclaim_for_an_ancestor(level: int, may: bool) -> None:
    queues = [queue("root"), queue("a", deserved=resource(4)), queue("b", parent="a")]
    conf = TREE.replace("enableHierarchy: true", f"enableHierarchy: true, arguments: {{ancestorReclaimLevel: {level}}}")
    ssn = opened(conf, queues, podgroup("g", 1, "b", phase="Inqueue"), pods("g", 1))
    assert ssn.hooks.plugin("capacity").preemptive(queue_of(ssn, "b"), waiting(ssn)) is may


def test_a_limit_that_is_reached_stops_an_admission_and_names_the_dimension() -> None:
    queues = [queue("root"), queue("a", capability=resource(3)), queue("b", parent="a")]
    ssn = opened(TREE, queues, podgroup("g", 1, "b", min_resources=resource(4)))
    answer = ssn.hooks.plugin("capacity").job_enqueueable(queue_of(ssn, "b"), resource_vector(ssn, 4))
    assert answer == "queue resource quota insufficient: insufficient cpu"


# -- devices


def limited(count: int) -> Resource:
    return Resource(scalars={f"{PREFIX}gpu.com": count * 1000.0})


def claiming(name: str, *claims: str, **more: Any) -> Pod:
    return pod(name, name, resource_claims=claims, **more)


def claims(**counts: int) -> list[ResourceClaim]:
    return [ResourceClaim("ns", name, (("gpu.com", count),)) for name, count in counts.items()]


@pytest.mark.parametrize(
    ("limit", "bound"),
    [
        pytest.param(2, {"ns/a", "ns/b"}, id="a claim that two pods name counts once"),
        pytest.param(3, {"ns/a", "ns/b", "ns/c"}, id="one more"),
        pytest.param(1, {"ns/c"}, id="not even that"),
    ],
)
def test_devices_are_counted_by_claim(limit: int, bound: set[str]) -> None:
    each = [claiming("a", "shared"), claiming("b", "shared"), claiming("c", "own")]
    groups = [podgroup(name, 1, "q", phase="Inqueue", creation=float(i)) for i, name in enumerate("abc")]
    store = cluster(node("n"), queue("q", capability=limited(limit)), groups, each, claims(shared=2, own=1))
    assert set(run(store, FLAT).binds) == bound


def test_each_pod_has_a_claim_of_its_own_from_a_template() -> None:
    template = ResourceClaimTemplate("ns", "t", (("gpu.com", 1),))
    each = [claiming(name, "template/t") for name in "abc"]
    groups = [podgroup(name, 1, "q", phase="Inqueue") for name in "abc"]
    store = cluster(node("n"), queue("q", capability=limited(2)), groups, each, template)
    assert len(run(store, FLAT).binds) == 2


def test_a_queue_above_limits_devices_too() -> None:
    queues = [queue("root"), queue("a", capability=limited(1)), queue("b", parent="a"), queue("c", parent="a")]
    groups = [podgroup("x", 1, "b", phase="Inqueue"), podgroup("y", 1, "c", phase="Inqueue")]
    each = [claiming("x", "one"), claiming("y", "two")]
    assert len(run(cluster(node("n"), queues, groups, each, claims(one=1, two=1)), TREE).binds) == 1


def test_a_job_that_needs_too_many_devices_is_not_admitted() -> None:
    group = podgroup("x", 1, "q", min_resources=resource(1))
    ssn = opened(FLAT, queue("q", capability=limited(1)), group, claiming("x", "many"), claims(many=2))
    capacity, job = ssn.hooks.plugin("capacity"), Task(ssn.tables, int(waiting(ssn).rows[0])).job
    assert isinstance(job, Job)
    answer = capacity.job_enqueueable_with_devices(job)
    assert answer == "queue resource quota insufficient: insufficient dra-resource-exceeded"


def test_devices_come_off_again() -> None:
    each = [claiming("a", "shared"), claiming("b", "shared")]
    groups = [podgroup(name, 1, "q", phase="Inqueue") for name in "ab"]
    ssn = opened(FLAT, queue("q", capability=limited(4)), groups, each, claims(shared=2))
    devices, before = ssn.hooks.plugin("capacity").devices, ssn.world.digest()
    rows = waiting(ssn).rows.tolist()
    of = queue_of(ssn, "q").row
    counted = []
    for sign, row in ((1.0, rows[0]), (1.0, rows[1]), (-1.0, rows[0]), (-1.0, rows[1])):
        devices.move([row], of, sign)
        counted.append(devices.claimed.array[of, 0])
    assert counted == [2, 2, 2, 0]
    assert ssn.world.digest() == before


@pytest.mark.parametrize("hierarchy", [False, True])
def test_it_keeps_the_contract_of_plugins(hierarchy: bool) -> None:
    check_plugin("capacity", switches={"enableHierarchy": hierarchy}, seeds=range(8))
