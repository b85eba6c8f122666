"""gangpreempt and gangreclaim: what their arguments mean, which tasks they ask about, and which word users see.

The search that they share: ``eviction/gangs/test_search``; both over whole clusters: ``eviction/gangs/test_evict``.
"""

from __future__ import annotations

from typing import Any

import pytest

from pumice.model.decisions import Evict
from pumice.model.events import Object
from pumice.testing.build import Ran, cluster, node, queue, run
from pumice.volcano.eviction.gangs.evict import DOMAINS_DEFAULT, limits_of
from tests.unit.volcano.evicting import LEVELS, gang

TIERS = "tiers:\n- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: proportion}]\n"


def conf(action: str, **arguments: Any) -> str:
    return f"actions: {action}\n{TIERS}configurations: [{{name: {action}, arguments: {arguments}}}]\n"


def reasons(found: Ran) -> dict[str, str]:
    """Pods that were evicted -> why."""
    return {each.pod.removeprefix("ns/"): each.reason for each in found.decisions if isinstance(each, Evict)}


def world(of: str, level: str, *more: Object) -> list[Object]:
    """A full node; ``old`` needs all it has; ``new`` waits in queue ``mine`` with priority."""
    old = gang("old", 2, 2, of=of, level=level, on="n")
    return [*LEVELS, queue("mine"), queue("theirs"), node("n", 2), *old, *gang("new", 1, 1, "mine", "high"), *more]


@pytest.mark.parametrize(
    ("action", "of", "level", "evicts"),
    [
        pytest.param("gangpreempt", "mine", "low", True, id="preempts within its queue"),
        pytest.param("gangpreempt", "mine", "high", False, id="preempts none of its own rank"),
        pytest.param("gangpreempt", "theirs", "low", False, id="preempts in no other queue"),
        pytest.param("gangreclaim", "theirs", "high", True, id="reclaims from others of any rank"),
        pytest.param("gangreclaim", "mine", "low", False, id="reclaims nothing in its own queue"),
    ],
)
def test_from_whom_room_is_taken(action: str, of: str, level: str, evicts: bool) -> None:
    found = run(cluster(world(of, level)), conf(action))
    assert reasons(found) == ({"old-0": action, "old-1": action} if evicts else {})
    assert found.pipelined == ({"ns/new-0": "n"} if evicts else {})


@pytest.mark.parametrize(("action", "of"), [("gangpreempt", "mine"), ("gangreclaim", "theirs")])
@pytest.mark.parametrize(
    ("arguments", "room", "evicts"),
    [
        pytest.param({}, 2, True, id="as by default"),
        pytest.param({"allowWholeBundle": False}, 2, False, id="jobs are not broken"),
        pytest.param({"maxDomains": 0}, 2, True, id="no domain counts as eight"),
        pytest.param({}, 3, True, id="somebody goes though there is room"),
        pytest.param({"onlyInNeed": True}, 3, False, id="unless only need counts"),
        pytest.param({"onlyInNeed": True}, 2, True, id="need"),
    ],
)
def test_arguments_mean_the_same_to_both(action: str, of: str, arguments: Any, room: int, evicts: bool) -> None:
    objects = [node("n", room) if each == node("n", 2) else each for each in world(of, "low")]
    assert bool(reasons(run(cluster(objects), conf(action, **arguments)))) is evicts


@pytest.mark.parametrize(("given", "domains"), [(1, 1), (9, 9), (0, DOMAINS_DEFAULT), (-1, DOMAINS_DEFAULT)])
def test_how_many_domains_are_tried(given: int, domains: int) -> None:
    found = limits_of(given, whole=False, only_in_need=True)
    assert (found.domains, found.whole, found.only_in_need) == (domains, False, True)
