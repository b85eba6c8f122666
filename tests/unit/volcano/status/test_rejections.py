"""The texts of rejected jobs, for each kind of limit, and the events that carry them."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.model.blockers import (
    ADMISSION,
    CAPABILITY,
    DEVICES,
    OVERCOMMIT,
    RESOURCE_QUOTA,
    Blocker,
    QueueLimit,
    Refused,
    ResourceLimit,
)
from pumice.testing.build import cluster, node, podgroup, resource, run
from pumice.volcano.status.rejections import GroupEvent, events, text_of

CPU = ResourceLimit("cpu", 4000.0, 1000.0, 0.0, 5000.0)
MEMORY = ResourceLimit("memory", 2.0**33, 2.0**31, 0.0, 2.0**30)


@pytest.mark.parametrize(
    ("why", "text"),
    [
        (Refused(ADMISSION, "not on Sundays"), "not on Sundays"),
        (QueueLimit("q", CAPABILITY, (CPU,)), "queue resource quota insufficient: insufficient cpu"),
        (
            QueueLimit("q", CAPABILITY, (CPU, MEMORY)),
            "queue resource quota insufficient: insufficient cpu, insufficient memory",
        ),
        (QueueLimit("q", DEVICES, (CPU,)), "queue resource quota insufficient: insufficient dra-resource-exceeded"),
        (QueueLimit("", OVERCOMMIT, (CPU, MEMORY)), "resource in cluster is overused: overused cpu, overused memory"),
        (
            QueueLimit("ns/q", RESOURCE_QUOTA, (CPU, MEMORY)),
            "resource quota insufficient, requested: cpu 5, memory 1Gi, used: cpu 1, memory 2Gi,"
            " limited: cpu 4, memory 8Gi",
        ),
    ],
)
def test_the_text_of_a_rejection(why: Blocker, text: str) -> None:
    assert text_of(why) == text


def test_events_are_in_the_order_of_jobs() -> None:
    jobs: list[Any] = [podgroup(name, min_resources=resource(99)) for name in ("b", "a")]
    found = run(cluster(node("n"), jobs), "actions: enqueue\ntiers: [{plugins: [{name: overcommit}]}]")
    text = "resource in cluster is overused: overused cpu"
    assert events(found.outcome) == [
        GroupEvent("ns/a", "Normal", "Unschedulable", text),
        GroupEvent("ns/b", "Normal", "Unschedulable", text),
    ]
