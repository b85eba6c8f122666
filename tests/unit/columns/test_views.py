"""Handles: what each can be asked about its row, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.counting import HELD, READY
from pumice.columns.job_rows import JobRows
from pumice.columns.jobs import INQUEUE_PHASE
from pumice.columns.tables import Tables
from pumice.columns.views import Job, Node, Queue, SubJob, Task, TaskClass
from pumice.model.status import PodGroupPhase, TaskStatus
from pumice.model.workloads.podgroup import SubGroupPolicy
from pumice.testing.build import cluster, node, pod, podgroup, pods, queue, spec

GI = 2.0**30


def tables() -> Tables:
    """Gang g of a worker that runs on n1, a ps and a worker that wait, and one that asks for nothing."""
    members = [
        pod("g-w-0", "g", 2, on="n1", role="worker", priority=9),
        pod("g-p-0", "g", 1, role="ps", annotations={"volcano.sh/preemptable": "false"}),
        pod("g-w-1", "g", 2, role="worker"),
        pod("g-n-0", "g", 0, 0, role="ps"),
    ]
    group = podgroup("g", 3, "q", roles={"worker": 2, "ps": 1}, creation=5.0, phase="Inqueue")
    return (
        cluster(node("n0"), node("n1", labels={"disk": "ssd"}), queue("q", state="Closed"), group, members)
        .snapshot()
        .tables
    )


def task(found: Tables, name: str) -> Task:
    return Task(found, [p.name if p else "" for p in found.tasks.pods].index(name))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        pytest.param(
            "g-w-0",
            {"status": TaskStatus.RUNNING, "role": "worker", "priority": 9},
            id="one that runs",
        ),
        pytest.param(
            "g-p-0",
            {"status": TaskStatus.PENDING, "preemptable": False, "best_effort": False},
            id="one that waits",
        ),
        pytest.param("g-w-1", {"preemptable": True, "job_hypernode": -1, "key": "ns/g-w-1"}, id="its equal"),
        pytest.param("g-n-0", {"best_effort": True}, id="one that asks for nothing"),
    ],
)
def test_a_task(name: str, says: dict[str, Any]) -> None:
    handle = task(tables(), name)
    assert {word: getattr(handle, word) for word in says} == says
    assert handle.pod.name == name
    assert (handle.job.key, handle.sub_job.uid) == ("ns/g", "ns/g")


def test_a_class() -> None:
    found = tables()
    mine = task(found, "g-w-1")
    other = task(found, "g-p-0")
    assert isinstance(mine.cls, TaskClass)
    assert mine.cls != other.cls
    assert mine.cls.spec == spec(2)
    assert mine.cls.req.tolist() == mine.req.tolist() == [2000, GI, 1]
    assert mine.cls.nonzero.tolist() == [2000, GI]


def test_a_job() -> None:
    found = tables()
    job = Job(found, 0)
    assert (job.key, job.group.name, job.size, job.creation, job.priority) == ("ns/g", "g", 4, 5.0, 0)
    assert (job.phase, job.min_available, job.queue.name) == (PodGroupPhase.INQUEUE, 3, "q")
    assert [found.tasks.pods[row].name for row in job.tasks] == ["g-n-0", "g-p-0", "g-w-0", "g-w-1"]
    assert (job.ready_count, job.held_count, job.valid_count, job.scheduled_count) == (1, 1, 4, 1)
    assert (job.best_effort_count, job.waiting_count, job.missing_count) == (1, 0, 1)


@pytest.mark.parametrize(
    ("minimum", "roles", "matter"),
    [
        pytest.param(3, {"worker": 2, "ps": 1}, True, id="as many as the minimum"),
        pytest.param(4, {"worker": 2}, True, id="fewer"),
        pytest.param(2, {"worker": 2, "ps": 1}, False, id="more than the minimum: not looked at"),
        pytest.param(2, {}, False, id="none"),
        pytest.param(2, {"worker": 0}, False, id="a minimum of none is none"),
    ],
)
def test_whether_roles_matter(minimum: int, roles: dict[str, int], matter: bool) -> None:
    state = cluster(podgroup("g", minimum, roles=roles), pod("p", "g", role="worker"))
    assert Job(state.snapshot().tables, 0).roles_matter is matter


@pytest.mark.parametrize(
    ("statuses", "with_best_effort", "counts"),
    [
        pytest.param(READY, False, {"worker": 1, "ps": 0}, id="ready"),
        pytest.param(READY, True, {"worker": 1, "ps": 1}, id="ready, those that ask for nothing too"),
        pytest.param(HELD, False, {"worker": 1, "ps": 0}, id="held"),
        pytest.param(np.ones_like(READY), False, {"worker": 2, "ps": 2}, id="all"),
    ],
)
def test_how_many_of_each_role(statuses: Any, with_best_effort: bool, counts: dict[str, int]) -> None:
    found = tables()
    number = {p.role: int(found.tasks.role[row]) for row, p in enumerate(found.tasks.pods) if p is not None}
    counted = Job(found, 0).role_counts(statuses, with_best_effort=with_best_effort)
    assert counted == {number[role]: count for role, count in counts.items()}


def test_a_sub_job() -> None:
    policy = SubGroupPolicy("part", sub_group_size=1, match_label_keys=("part",))
    members = [pod(f"p{i}", "g", labels={"part": str(i)}) for i in (1, 0)]
    found = cluster(podgroup("g", 2, sub_groups=[policy]), members).snapshot().tables
    subs = [SubJob(found, row) for row in Job(found, 0).sub_jobs]
    assert [sub.uid for sub in subs] == ["ns/g/part-0", "ns/g/part-1"]
    assert {sub.gid for sub in subs} == {"ns/g/part"}
    assert [sub.match_index for sub in subs] == [0, 1]
    assert [[found.tasks.pods[row].name for row in sub.tasks] for sub in subs] == [["p0"], ["p1"]]
    assert [(sub.job.key, sub.hypernode, sub.min_available) for sub in subs] == [("ns/g", -1, 1)] * 2


@pytest.mark.parametrize(("state", "is_open"), [("Open", True), ("Closed", False)])
def test_a_queue(state: str, is_open: bool) -> None:
    found = cluster(queue("q", 3, state=state)).snapshot().tables
    handle = Queue(found, 0)
    assert (handle.name, handle.open, handle.obj.weight, repr(handle)) == ("q", is_open, 3, "Queue('q')")


def test_a_node() -> None:
    found = cluster(node("n0"), node("n1", labels={"disk": "ssd"}), pod("p", on="n1", cpu=3)).snapshot().tables
    handle = Node(found, 1)
    assert (handle.name, handle.obj.name, handle.labels["disk"]) == ("n1", "n1", "ssd")
    assert (handle.allocatable[0], handle.idle[0], handle.used[0], handle.future[0]) == (8000, 5000, 3000, 5000)


def test_a_node_as_it_would_be() -> None:
    found = cluster(node("n0"), pod("p", cpu=2)).snapshot().tables
    now, ahead = Node(found, 0), Node(found, 0, after=2.0, cls=int(found.tasks.cls[0]))
    assert [(each.idle[0], each.used[0], each.future[0]) for each in (now, ahead)] == [
        (8000, 0, 8000),
        (4000, 4000, 4000),
    ]
    assert now == ahead, "one row, whatever one asks of it"


def test_no_handle_keeps_what_it_read() -> None:
    """It is a way to read, so it says what is there now."""
    found = cluster(node("n0"), podgroup("g"), pod("p", "g")).snapshot().tables.fork()
    handle = Job(found, 0)
    assert handle.phase is PodGroupPhase.PENDING
    found.jobs["phase"].part()
    found.jobs["phase"].data[0] = INQUEUE_PHASE
    assert handle.phase is PodGroupPhase.INQUEUE


def test_a_task_says_who_it_is_and_where() -> None:
    found = tables()
    runs, waits = task(found, "g-w-0"), task(found, "g-w-1")
    assert (runs.name, runs.namespace, runs.key) == ("g-w-0", "ns", "ns/g-w-0")
    assert runs.annotations["volcano.sh/task-spec"] == "worker"
    assert (runs.job.name, runs.job.namespace, runs.queue.name) == ("g", "ns", "q")
    assert (runs.node.name, bool(runs.node)) == ("n1", True)
    assert (waits.node.name, bool(waits.node)) == ("", False), "it is on no node"


def test_a_pod_of_no_job_is_in_no_queue() -> None:
    lonely = task(cluster(pod("p")).snapshot().tables, "p")
    assert not lonely.job
    assert not lonely.queue
    assert lonely.queue.name == ""


def test_a_handle_is_the_index_of_what_there_is_for_its_row() -> None:
    found = tables()
    assert np.array([7, 8])[task(found, "g-w-0").node] == 8
    assert ["seven"][Queue(found, 0)] == "seven"


@pytest.mark.parametrize(
    ("of_group", "of_pod", "labels"),
    [
        pytest.param({"user": "ann"}, {"user": "bob"}, {"user": "ann"}, id="the pod group's before the pod's"),
        pytest.param({}, {"user": "bob"}, {"user": "bob"}, id="the first pod's where the group has none"),
        pytest.param({"user": "ann"}, {"team": "t"}, {"user": "ann", "team": "t"}, id="both"),
        pytest.param({}, {}, {}, id="none"),
    ],
)
def test_labels_of_a_job(of_group: dict[str, str], of_pod: dict[str, str], labels: dict[str, str]) -> None:
    found = cluster(podgroup("g", labels=of_group), pods("g", 2, labels=of_pod)).snapshot().tables
    assert Job(found, 0).labels == labels
    values, codes = JobRows(found, np.array([0])).label("user")
    assert values[codes[0]] == labels.get("user", "")


def test_a_job_without_pods_has_the_labels_of_its_group() -> None:
    found = cluster(podgroup("g", labels={"user": "ann"})).snapshot().tables
    assert Job(found, 0).labels == {"user": "ann"}
    assert JobRows(found, np.array([0])).label("team").values == [""]
