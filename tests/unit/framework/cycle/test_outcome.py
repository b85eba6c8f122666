"""The outcome of a cycle can be read when the session is gone, and does not change."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.columns.views import Job
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.framework.plugin.plugin import plugin
from pumice.testing.build import cluster, node, pod, podgroup, pods, queue, resource, run

CONF = "tiers: [{plugins: [{name: gang}, {name: PLUGIN}, {name: predicates}]}]"


@plugin("stumbling")
@points.job_ready
def stumbling(ssn: Session, job: Job) -> int:
    """Fails when it is asked about one job."""
    return 1 // (job.group.name != "bad")


def outcome(*more: Any, plugin: str = "priority") -> Outcome:
    """Of a cycle on one node of four cores, on which two are free and two are being given back."""
    leaving = pods("old", 2, on="n", deletion=1.0)
    objects = node("n", cpu=4), queue(), podgroup("old", phase="Running"), leaving, *more
    conf = CONF.replace("PLUGIN", plugin)
    return run(cluster(*objects), conf, actions="allocate", plugins=[stumbling], now=7.0).outcome


def gang(name: str, count: int, **more: Any) -> list[Any]:
    return [podgroup(name, count, phase="Inqueue", **more), *pods(name, count, cpu=2)]


def test_who_is_promised_a_node_that_others_are_leaving() -> None:
    found = outcome(gang("waits", 2))
    assert found.pipelined == {"ns/waits-1": "n"}, "the first one is bound"


def test_jobs_that_belonged_to_the_session() -> None:
    found = outcome(gang("fine", 1), gang("lost", 1, queue="gone"), pod("loose"))
    assert {found.tables.jobs.uids[row] for row in found.live_jobs.tolist()} == {"ns/old", "ns/fine"}


def test_what_nodes_have_together() -> None:
    found = outcome(node("m", cpu=3, gpu=2))
    assert found.tables.axis.vector(resource(7, "64Gi", 2, pods=220)).tolist() == found.total.tolist()


def test_what_was_tried_and_who_failed() -> None:
    found = outcome(gang("bad", 1), gang("good", 1), plugin="stumbling")
    (fault,) = found.faults
    assert (fault.subject, fault.plugin, fault.point) == ("ns/bad", "stumbling", "job_ready")
    assert [(entry.action, entry.subject, entry.finding) for entry in found.entries] == [
        ("allocate", "ns/bad", fault.blocker)
    ]


def test_what_should_be_written() -> None:
    found = outcome(gang("hopeless", 5))
    (update,) = (each for each in found.groups if each.job == "ns/hopeless")
    assert (update.status.phase, [c.type for c in update.status.conditions]) == ("Inqueue", ["Unschedulable"])
    assert found.queues["default"].milli_cpu == 0, "those that leave do not count"
    assert {notice.pod for notice in found.notices()} == {f"ns/hopeless-{i}" for i in range(5)}


def test_it_is_a_value() -> None:
    found = outcome()
    assert found.now == 7.0
    assert not any(isinstance(getattr(found, name), Session) for name in found.__struct_fields__)
    with pytest.raises(AttributeError, match="immutable"):
        found.now = 8.0  # type: ignore[misc]
