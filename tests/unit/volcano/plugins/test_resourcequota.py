"""resourcequota: which jobs a namespace's quotas admit, and the reasons of the others."""

from __future__ import annotations

import pytest

from pumice.columns.views import Job
from pumice.model.blockers import RESOURCE_QUOTA, QueueLimit, ResourceLimit
from pumice.model.queue import ResourceQuota
from pumice.model.resources import Resource
from pumice.testing.build import cluster, node, podgroup, pods, quota, resource, session
from pumice.volcano.points import job_enqueued, job_rejected
from pumice.volcano.status.rejections import text_of

CONF = "actions: enqueue\ntiers: [{plugins: [{name: resourcequota}]}]"


def refused(*quotas: ResourceQuota, wants: Resource | None, jobs: int = 1) -> list[str | QueueLimit | None]:
    """Of equal jobs one after the other, why each is not admitted."""
    groups = [podgroup(f"g{i}", min_resources=wants, creation=float(i)) for i in range(jobs)]
    ssn = session(cluster(node("n"), groups, list(quotas)), CONF)
    found: list[str | QueueLimit | None] = []
    for row in ssn.live_jobs.tolist():
        found.append(ssn.ask(job_rejected, Job(ssn.tables, row)))
        if found[-1] is None:
            ssn.ask(job_enqueued, Job(ssn.tables, row))
    return found


@pytest.mark.parametrize(
    ("limits", "wants", "fits"),
    [
        pytest.param([], resource(99), True, id="no quota"),
        pytest.param([quota("q", resource(4))], None, True, id="a job that asks for nothing"),
        pytest.param([quota("q", resource(4), resource(2))], resource(2), True, id="just enough"),
        pytest.param([quota("q", resource(4), resource(3))], resource(2), False, id="too much"),
        pytest.param([quota("q", resource(4), resource(9))], resource(0, "1Gi"), True, id="what it does not ask for"),
        pytest.param([quota("q", resource(4))], resource(1, "99Gi"), True, id="what the quota does not limit"),
        pytest.param([quota("a", resource(9)), quota("b", resource(1))], resource(2), False, id="every quota"),
        pytest.param([quota("q", resource(1), namespace="elsewhere")], resource(2), True, id="another namespace's"),
        pytest.param(
            [ResourceQuota("ns", "q", resource(), resource(), ("example.com/x",))],
            resource(**{"example.com/x": 1}),
            False,
            id="nothing of what no node has",
        ),
    ],
)
def test_who_is_admitted(limits: list[ResourceQuota], wants: Resource | None, fits: bool) -> None:
    (found,) = refused(*limits, wants=wants)
    assert (found is None) is fits


def test_what_was_admitted_counts_for_the_next() -> None:
    found = refused(quota("q", resource(5, "8Gi"), resource(1)), wants=resource(2), jobs=3)
    assert found[:2] == [None, None]
    limit = found[2]
    assert isinstance(limit, QueueLimit) and (limit.queue, limit.kind) == ("ns/q", RESOURCE_QUOTA)
    assert [each.resource for each in limit.resources if each.excess] == ["cpu"]
    assert limit.resources[0] == ResourceLimit("cpu", 5000.0, 1000.0, 4000.0, 2000.0)
    assert text_of(limit) == (
        "resource quota insufficient, requested: cpu 2, memory 0, used: cpu 1, memory 0, limited: cpu 5, memory 8Gi"
    )


@pytest.mark.parametrize(("arguments", "admitted"), [("", False), (", arguments: {ownCountedOnce: true}", True)])
def test_pods_of_the_group_that_the_quota_counts_are_asked_for_once(arguments: str, admitted: bool) -> None:
    """volcano#4220: the group's two pods exist, the quota counts them, and nothing else is there."""
    conf = f"actions: enqueue\ntiers: [{{plugins: [{{name: resourcequota{arguments}}}]}}]"
    group = podgroup("g", 2, min_resources=resource(2))
    ssn = session(cluster(node("n"), group, pods("g", 2), quota("q", resource(2), resource(2))), conf)
    rejection = ssn.ask(job_rejected, Job(ssn.tables, int(ssn.live_jobs[0])))
    assert (rejection is None) == admitted


def test_only_pods_that_exist_are_taken_off_what_a_group_asks_for() -> None:
    conf = "actions: enqueue\ntiers: [{plugins: [{name: resourcequota, arguments: {ownCountedOnce: true}}]}]"
    group = podgroup("g", 2, min_resources=resource(2))
    for limit, admitted in ((3, False), (4, True)):
        ssn = session(cluster(node("n"), group, pods("g", 1), quota("q", resource(limit), resource(3))), conf)
        assert (ssn.ask(job_rejected, Job(ssn.tables, int(ssn.live_jobs[0]))) is None) == admitted
