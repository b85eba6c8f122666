"""What a session lists: nodes, queues, jobs and tasks."""

from __future__ import annotations

from pumice.testing.build import cluster, node, pod, podgroup, pods, queue, session


def test_what_runs_is_what_holds_a_place() -> None:
    there = [
        pod("runs", "g", on="n"),
        pod("waits", "g"),
        pod("ended", "g", on="n", phase="Succeeded"),
        pod("leaves", "g", on="n", deletion=1.0),
        pod("starts", on="n", phase="Pending"),
    ]
    ssn = session(cluster(node("n"), podgroup("g"), there), "tiers: []")
    assert sorted(ssn.running.names) == ["runs", "starts"]
    assert sorted(ssn.tasks.names) == ["ended", "leaves", "runs", "starts", "waits"]


def test_jobs_of_a_session_have_a_group_and_a_queue() -> None:
    ssn = session(cluster(podgroup("a"), podgroup("b", queue="nosuch"), pods("c", 1)), "tiers: []")
    assert ssn.jobs.names == ["a"]


def test_where_a_resource_stands() -> None:
    ssn = session(cluster(node("n", 4, gpu=2), queue("q")), "tiers: []")
    gpu = ssn.resource("nvidia.com/gpu")
    assert gpu is not None
    assert ssn.total[gpu] == 2000
    assert (ssn.resource("cpu"), ssn.resource("memory"), ssn.resource("example.com/fpga")) == (0, 1, None)
    assert [each.name for each in ssn.queues] == ["q"]
