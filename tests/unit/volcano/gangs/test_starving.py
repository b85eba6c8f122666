"""Jobs that may have others evicted: admitted, valid, with a task to place, and starving."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.testing.build import cluster, node, podgroup, pods, queue, session
from pumice.volcano.gangs.starving import starving_jobs

CONF = "tiers: [{plugins: [{name: priority}, {name: gang}]}]"


def starving(*objects: Any, with_topology: bool = True) -> dict[str, list[str]]:
    """Queue -> jobs."""
    ssn = session(cluster(node("n"), *objects), CONF)
    found = starving_jobs(ssn, with_topology=with_topology)
    names, uids = ssn.tables.queues.names, ssn.tables.jobs.uids
    return {names[of]: [uids[row].removeprefix("ns/") for row in rows] for of, rows in found.items()}


@pytest.mark.parametrize(
    ("group", "members", "starves"),
    [
        pytest.param({"phase": "Inqueue"}, pods("g", 2), True, id="one that waits"),
        pytest.param({"phase": "Pending"}, pods("g", 2), False, id="none that is not admitted"),
        pytest.param({"phase": "Inqueue", "minimum": 3}, pods("g", 2), False, id="none with too few pods"),
        pytest.param({"phase": "Running"}, pods("g", 2, on="n"), False, id="none that has all it wants"),
        pytest.param({"phase": "Inqueue", "queue": "gone"}, pods("g", 2), False, id="none without a queue"),
    ],
)
def test_who_starves(group: dict[str, Any], members: list[Any], starves: bool) -> None:
    assert starving(podgroup("g", **group), members) == ({"default": ["g"]} if starves else {})


def test_by_queue_and_those_with_a_topology_only_where_they_are_wanted() -> None:
    groups = [podgroup("a", queue="q", phase="Inqueue"), podgroup("b", queue="r", phase="Inqueue", tier=1)]
    objects = queue("q"), queue("r"), groups, pods("a", 1), pods("b", 1)
    assert starving(*objects) == {"q": ["a"], "r": ["b"]}
    assert starving(*objects, with_topology=False) == {"q": ["a"]}
