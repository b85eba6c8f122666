"""Differences of statuses: what is written, what is not, and what users see."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.kube.writers.pod_status import difference
from pumice.kube.writers.statuses import group_difference, group_event, queue_difference, times_difference
from pumice.model.decisions import PodGroupUpdate, PodNotice
from pumice.model.pod import PodCondition
from pumice.model.queue import Queue, QueueSharing, QueueUsage
from pumice.model.workloads.gang import Gang, GangTimes, SchedulingCondition
from pumice.model.workloads.podgroup import PodGroup, PodGroupCondition, PodGroupStatus
from pumice.testing.build import pod, resource

_WAITS = PodGroupCondition("Unschedulable", "True", "NotEnoughResources", "2/3", "s1", 60.0)
_IS = PodGroupStatus("Pending", (_WAITS,), running=2, failed=1)
_SAID = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources"}


@pytest.mark.parametrize(
    ("wanted", "change"),
    [
        pytest.param(_IS, {}, id="the same"),
        pytest.param(
            replace(_IS, conditions=(replace(_WAITS, transition_id="s2", last_transition=99.0),)), {}, id="only later"
        ),
        pytest.param(replace(_IS, phase="Inqueue"), {"phase": "Inqueue"}, id="phase"),
        pytest.param(replace(_IS, running=0, failed=3), {"running": None, "failed": 3}, id="counts"),
        pytest.param(
            replace(_IS, conditions=(replace(_WAITS, message="1/3", transition_id="s2", last_transition=61.0),)),
            {
                "conditions": [
                    {
                        **_SAID,
                        "message": "1/3",
                        "transitionID": "s2",
                        "lastTransitionTime": "1970-01-01T00:01:01Z",
                    }
                ]
            },
            id="conditions as a whole",
        ),
    ],
)
def test_what_is_merged_into_a_podgroup(wanted: PodGroupStatus, change: dict[str, Any]) -> None:
    assert group_difference(PodGroup("ns", "g", "u", status=_IS), PodGroupUpdate("ns/g", wanted)) == change


@pytest.mark.parametrize(
    ("status", "event"),
    [
        pytest.param(PodGroupStatus("Running", (_WAITS,)), ("Normal", "Scheduled", "pod group is ready"), id="running"),
        pytest.param(PodGroupStatus("Inqueue", (_WAITS,)), ("Warning", "Unschedulable", "2/3"), id="waits"),
        pytest.param(PodGroupStatus("Unknown", (_WAITS,)), ("Warning", "Unschedulable", "2/3"), id="lost pods"),
        pytest.param(PodGroupStatus("Inqueue"), None, id="only admitted"),
    ],
)
def test_the_event_for_users_of_a_podgroup(status: PodGroupStatus, event: tuple[str, str, str] | None) -> None:
    assert group_event(status) == event


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        pytest.param(None, resource(1), {"cpu": "1", "memory": "0"}, id="first"),
        pytest.param(resource(1), resource(1), {}, id="the same"),
        pytest.param(resource(1, gpu=2), resource(1), {"nvidia.com/gpu": None}, id="no longer"),
    ],
)
def test_what_is_merged_into_a_queue(before: Any, after: Any, change: dict[str, Any]) -> None:
    assert queue_difference(Queue("q", allocated=before), after) == ({"allocated": change} if change else {})


def test_of_a_queue_of_kais_what_it_and_those_below_have_and_ask_for() -> None:
    usage = QueueUsage(resource(1), resource(3), ("below",))
    before = Queue("q", sharing=QueueSharing())
    wanted = {
        "allocated": {"cpu": "2", "memory": "0"},
        "allocatedNonPreemptible": {"cpu": "1", "memory": "0"},
        "requested": {"cpu": "3", "memory": "0"},
        "childQueues": ["below"],
    }
    assert queue_difference(before, resource(2), usage) == wanted
    assert queue_difference(replace(before, allocated=resource(2), usage=usage), resource(2), usage) == {}


def test_of_a_gang_of_kais_why_it_waits_and_when_it_started() -> None:
    condition = SchedulingCondition("default", "no room", (("OverLimit", "no room"),), "1", 1e9)
    group = PodGroup("ns", "g", "u", gang=Gang(stale_since=5.0))
    found = group_difference(group, PodGroupUpdate(group.key, PodGroupStatus(running=1, scheduling=(condition,))))
    assert found["running"] == 1 and "phase" not in found
    assert found["schedulingConditions"] == [
        {
            "type": "UnschedulableOnNodePool",
            "status": "True",
            "nodePool": "default",
            "reason": "Unschedulable",
            "message": "no room",
            "reasons": [{"reason": "OverLimit", "message": "no room"}],
            "transitionID": "1",
            "lastTransitionTime": "2001-09-09T01:46:40Z",
        }
    ]
    annotations = times_difference(group, GangTimes(1e9, None))
    assert annotations == {
        "kai.scheduler/last-start-timestamp": "2001-09-09T01:46:40Z",
        "kai.scheduler/stale-podgroup-timestamp": None,
    }
    assert times_difference(group, GangTimes(None, 5.0)) == {}


_SCHEDULED = PodCondition("PodScheduled", "True")
_REFUSED = PodCondition("PodScheduled", "False", "Unschedulable", "no room")
_NEW = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}


@pytest.mark.parametrize(
    ("conditions", "nominated", "wanted", "change"),
    [
        pytest.param((), "", "", {"conditions": [{**_NEW, "lastTransitionTime": None}]}, id="first"),
        pytest.param((_SCHEDULED,), "", "", {"conditions": [{**_NEW, "lastTransitionTime": None}]}, id="turned"),
        pytest.param(
            (replace(_REFUSED, message="else"),), "", "", {"conditions": [_NEW]}, id="other words, same status"
        ),
        pytest.param((_REFUSED,), "", "", {}, id="the same"),
        pytest.param((_REFUSED,), "", "n1", {"nominatedNodeName": "n1"}, id="nominated"),
        pytest.param((_REFUSED,), "n1", "n1", {}, id="nominated already"),
        pytest.param((_REFUSED,), "n1", "", {}, id="a nomination is not taken back"),
    ],
)
def test_what_is_merged_into_a_pod(
    conditions: tuple[PodCondition, ...], nominated: str, wanted: str, change: dict[str, Any]
) -> None:
    waiting = pod("p", conditions=conditions, nominated_node=nominated)
    assert difference(waiting, PodNotice(waiting.key, waiting.uid, "Unschedulable", "no room", wanted)) == change
