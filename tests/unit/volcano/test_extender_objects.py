"""What an extender receives of tasks, nodes, jobs and queues: names and units of Volcano's own structures."""

from __future__ import annotations

from pumice.framework.cycle.session import Session
from pumice.testing.build import GPU, cluster, node, pod, podgroup, queue, session
from pumice.volcano import extender_objects

GI = 2.0**30


def opened() -> tuple[Session, dict[str, int]]:
    """A job with one pod on a node, one that waits, and a pod without a job."""
    members = pod("w", "g", "500m", "1Gi", 2, role="worker", priority=5), pod("r", "g", 1, "2Gi", on="n")
    group = podgroup("g", 2, "team", phase="Inqueue", annotations={"why": "so"})
    store = cluster(node("n", 4, "8Gi", 4), queue("team", 3), group, members, pod("alone", "", 0, 0))
    ssn = session(store)
    return ssn, {each.name: row for row, each in enumerate(ssn.tables.tasks.pods) if each is not None}


def test_a_task_that_waits() -> None:
    ssn, row = opened()
    found = extender_objects.task(ssn.tables, row["w"])
    asked = {"MilliCPU": 500.0, "Memory": GI, "ScalarResources": {GPU: 2000.0}}
    assert (found["Resreq"], found["InitResreq"]) == (asked, asked), "devices by the thousandth; pods are not said"
    named = {"UID": "ns-w", "Job": "ns/g", "Name": "w", "Namespace": "ns", "TaskRole": "worker", "NodeName": ""}
    assert named.items() <= found.items()
    assert (found["Status"], found["Priority"], found["BestEffort"]) == (1, 5, False)


def test_a_task_on_a_node_and_one_of_nobody() -> None:
    ssn, row = opened()
    tables = ssn.tables
    runs, alone = (extender_objects.task(tables, row[name]) for name in ("r", "alone"))
    assert (runs["NodeName"], runs["Pod"]["spec"]["nodeName"], runs["Pod"]["status"]) == (
        "n",
        "n",
        {"phase": "Running"},
    )
    assert runs["Status"] == 1 << int(tables.tasks.status[row["r"]])
    assert (alone["Job"], alone["BestEffort"]) == ("", True)


def test_a_node_with_its_books() -> None:
    ssn, _ = opened()
    found = extender_objects.node(ssn.tables, 0)
    cpu = {name: found[name]["MilliCPU"] for name in ("Allocatable", "Idle", "Used", "Releasing", "FutureIdle")}
    assert cpu == {"Allocatable": 4000.0, "Idle": 3000.0, "Used": 1000.0, "Releasing": 0.0, "FutureIdle": 3000.0}
    assert (found["Name"], found["Node"]["metadata"]["labels"]) == ("n", {"kubernetes.io/hostname": "n"})


def test_a_job_with_its_tasks_and_its_queue() -> None:
    ssn, _ = opened()
    job = list(ssn.tables.jobs.uids).index("ns/g")
    found = extender_objects.job(ssn.tables, job)
    assert (found["UID"], found["Queue"], found["MinAvailable"]) == ("ns/g", "team", 2)
    assert found["Allocated"]["MilliCPU"] == 1000.0
    assert sorted(found["Tasks"]) == ["ns-r", "ns-w"]
    assert found["PodGroup"]["metadata"] == {"name": "g", "namespace": "ns", "annotations": {"why": "so"}}
    row = list(ssn.tables.queues.names).index("team")
    assert extender_objects.queue(ssn.tables, row) == {"UID": "team", "Name": "team", "Weight": 3}
