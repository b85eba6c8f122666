"""KAI: a tenant's storm of gangs that fit nowhere takes its own steps only, so that it delays no other tenant's gang by
more than one cycle. ``STEPS`` are so few that the storm is cut in each cycle."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from pumice.framework.cycle.outcome import Outcome
from pumice.model.blockers import SearchCut
from pumice.model.decisions import Bind, Decision, Evict
from pumice.model.events import Object
from pumice.model.pod import Pod
from pumice.model.workloads.podgroup import PodGroup
from pumice.state.store import Store
from tests.unit.kai.cluster import Ran, cycle, job, node, policy, queue, store

NODES, STEPS = 6, 200
#: No node has it, which sums cannot tell.
NOWHERE = {"node_selector": (("rack", "nowhere"),)}


def of_namespace(namespace: str, objects: list[Object]) -> list[Object]:
    """The same objects in another namespace."""
    return [replace(each, namespace=namespace) if isinstance(each, Pod | PodGroup) else each for each in objects]


def world(dice: Random, action: str, *, storm: int) -> Store:
    """A cluster that pods of queue ``old`` or ``q0`` fill, a storm, and a gang of another tenant that comes last."""
    runs = "q0" if action == "preempt" else "old"
    made: list[Object] = []
    for i in range(NODES * 2):
        made += job(f"old{i:02d}", runs, [f"n{i // 2}"], gpus=4, priority=10)
    for i in range(storm):
        # Of unlike priority, so that none is refuted with another; only the second pod fits nowhere.
        *group, second = job(f"s{i:02d}", "q0", ["", ""], priority=50 + dice.randrange(40), age=100.0 - i)
        assert isinstance(second, Pod)
        made += of_namespace("storm", [*group, replace(second, spec=replace(second.spec, **NOWHERE))])
    made += of_namespace("other", job("fits", "q0", ["", ""], gpus=2, priority=50))
    queues = [queue("old", 0), queue("q0", 8 * NODES)]
    return store(*(node(f"n{i}") for i in range(NODES)), *queues, *made)


def is_served(decisions: list[Decision], outcome: Outcome) -> bool:
    bound = {each.pod for each in decisions if isinstance(each, Bind)}
    return {"other/fits-0", "other/fits-1"} <= bound | outcome.pipelined.keys()


def cut(ran: Ran) -> set[str]:
    return {each.subject for each in ran.outcome.entries if isinstance(each.finding, SearchCut)}


@pytest.mark.parametrize("action", ["reclaim", "preempt"])
@pytest.mark.parametrize("seed", range(3))
def test_a_storm_delays_a_gang_of_another_tenant_by_one_cycle_at_most(action: str, seed: int) -> None:
    settings: dict[str, Any] = {action: {"maxSearchSteps": STEPS}}
    few = policy([action], **settings)
    alone = cycle(world(Random(seed), action, storm=0), few)
    assert is_served(alone.decisions, alone.outcome), "without the storm it is served at once"
    assert any(isinstance(each, Evict) for each in alone.decisions)
    found, cycles = world(Random(seed), action, storm=24), list[Ran]()
    for _ in range(2):
        cycles.append(cycle(found, few))
        found.remember(cycles[-1].outcome.writes)
    assert any(is_served(each.decisions, each.outcome) for each in cycles)
    assert cut(cycles[0]), "the case is to be cut"
