"""shortest: by estimate, oldest first after a wait; the order changes at a known moment."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.framework.plugin.errors import PolicyError
from pumice.framework.plugin.policy_file import Policy, read_policy
from pumice.model.events import Seen
from pumice.model.workloads.estimate import ESTIMATE_ANNOTATION
from pumice.runtime.policy.languages import builtin_registry
from pumice.state.store import Store
from pumice.testing.build import cluster, node, podgroup, pods, run

HOUR = 3600.0
JOBS = (("old", 0.0, "9h"), ("long", HOUR, "25h"), ("unknown", HOUR, ""))


def policy(**arguments: str) -> Policy:
    plugins = [{"name": "ours/shortest", "arguments": arguments}, {"name": "gang"}, {"name": "predicates"}]
    return read_policy({"actions": "allocate", "tiers": [{"plugins": plugins}]}, builtin_registry())


def jobs() -> Store:
    found: list[Any] = [node("n", cpu=3)]
    for name, created, estimate in JOBS:
        notes = {ESTIMATE_ANNOTATION: estimate} if estimate else {}
        found.append(podgroup(name, phase="Inqueue", creation=created, annotations=notes))
        found += pods(name, 1, creation=created)
    return cluster(*found)


def order(now: float, **arguments: str) -> list[str]:
    """The order in which the jobs are placed, by the first letters of their names."""
    return [each.removeprefix("ns/")[0] for each in run(jobs(), policy(**arguments), now=now).binds]


@pytest.mark.parametrize(
    ("now", "arguments", "wanted"),
    [
        (2 * HOUR, {}, "oul"),
        (2 * HOUR, {"withoutEstimate": "2h"}, "uol"),
        (2 * HOUR, {"withoutEstimate": "2d"}, "olu"),
        (97 * HOUR, {}, "olu"),
        (97 * HOUR, {"oldestAfter": ""}, "oul"),
        (2 * HOUR, {"oldestAfter": "1h30m", "withoutEstimate": "2h"}, "oul"),
        (2 * HOUR, {"withoutEstimate": "7h"}, "uol"),
        (2 * HOUR, {"withoutEstimate": "7h", "aging": "1h"}, "oul"),
        (2 * HOUR, {"withoutEstimate": "7h", "aging": "9h"}, "uol"),
        (97 * HOUR, {"withoutEstimate": "7h", "aging": "9h"}, "olu"),
    ],
)
def test_jobs_are_placed_in_order(now: float, arguments: dict[str, str], wanted: str) -> None:
    assert "".join(order(now, **arguments)) == wanted


def test_the_order_changes_when_the_next_waiting_job_is_old() -> None:
    for now, wakes in ((0.0, 10 * HOUR), (10 * HOUR, 11 * HOUR), (11 * HOUR, None)):
        found = jobs()
        found.apply(Seen(node("n", cpu=0)))
        assert run(found, policy(oldestAfter="10h"), now=now).outcome.wakes_at == wakes


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"oldestAfter": "soon"}, "argument oldestAfter: 'soon' is not a duration"),
        ({"withoutEstimate": "0s"}, "1s to"),
        ({"aging": "-1h"}, "argument aging: found '-1h', wanted 1s"),
    ],
)
def test_a_wrong_duration_is_named(arguments: dict[str, str], problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        policy(**arguments)
