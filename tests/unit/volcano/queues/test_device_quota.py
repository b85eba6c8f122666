"""How many devices of a class the pods of a queue may claim."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.rows import TaskRows
from pumice.columns.views import Job, Queue, Task
from pumice.framework.cycle.session import Session
from pumice.model.blockers import DEVICES
from pumice.model.devices.claims import ResourceClaim
from pumice.model.pod import Pod
from pumice.model.resources import Resource
from pumice.testing.build import cluster, node, pod, podgroup, queue, resource, run, session
from pumice.testing.devices import claim, claim_template
from pumice.volcano.queues.device_quota import PREFIX
from pumice.volcano.status.rejections import text_of

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


def limited(count: int) -> Resource:
    return Resource(scalars={f"{PREFIX}gpu.com": count * 1000.0})


def claiming(name: str, *claims: str, **more: Any) -> Pod:
    return pod(name, name, resource_claims=claims, **more)


def claims(**counts: int) -> list[ResourceClaim]:
    return [claim(name, gpu_com=count) for name, count in counts.items()]


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
    template = claim_template("t", gpu_com=1)
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
    (limit,) = answer.resources
    assert (answer.queue, answer.kind) == ("q", DEVICES)
    assert (limit.limit, limit.used, limit.promised, limit.asked) == (1.0, 0.0, 0.0, 2.0)
    assert text_of(answer) == "queue resource quota insufficient: insufficient dra-resource-exceeded"


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
