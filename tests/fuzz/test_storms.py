"""A tenant's storm of gangs that fit nowhere: it takes its own steps only, and all of it is tried in the end.

``steps`` are so few that the storm is cut in each cycle.
"""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest

from pumice.cycle import run_cycle
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.memo import Memo
from pumice.framework.plugin.policy_file import Policy
from pumice.model.blockers import SearchCut
from pumice.model.decisions import Bind, Decision, Evict
from pumice.model.events import Gone, Object
from pumice.model.pod import HostPort, Pod
from pumice.runtime.loop import ListPlanner
from pumice.state.store import Store
from pumice.testing.build import cluster, hypernode, node, pod, podgroup, policy, queue
from tests.unit.volcano.evicting import LEVELS

ACTIONS = ("allocate", "preempt", "reclaim", "gangpreempt", "gangreclaim")
NODES = 12
STEPS = 300
#: No node has it, which sums cannot tell.
NOWHERE = {"node_selector": (("rack", "nowhere"),)}
#: Pods of no group hold it on each node. The actions that evict whole gangs count nodes that a selector leaves, and
#: cannot tell that no eviction frees a port.
TAKEN = {"host_ports": (HostPort(80),)}
CONF = """\
actions: "ACTION"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: proportion}, {name: network-topology-aware}]
configurations:
- name: ACTION
  arguments: {maxSearchSteps: STEPS}
"""


def waiting(
    name: str,
    namespace: str,
    cores: list[float],
    of: str,
    at: float,
    tier: int | None,
    never: dict[str, Any] | None = None,
) -> list[Object]:
    group = podgroup(
        name, len(cores), of, namespace=namespace, priority_class="high", phase="Inqueue", creation=at, tier=tier
    )
    members = [
        pod(f"{name}-{i}", name, cpu, namespace=namespace, priority=2, creation=at, **((cpu > 3 and never) or {}))
        for i, cpu in enumerate(cores)
    ]
    return [group, *members]


def world(dice: Random, action: str, *, storm: int) -> Store:
    """A cluster that pods of queue ``old`` or ``q0`` fill (for ``allocate``: half of it), the storm, and a gang of
    another tenant that comes after all of it."""
    tier = 1 if action == "allocate" else None
    racks = [hypernode(f"r{i}", 1, [f"n{k}" for k in range(3 * i, 3 * i + 3)]) for i in range(NODES // 3)]
    runs = "q0" if "preempt" in action else "old"
    full: list[Object] = []
    for i in range(NODES // 2 if action == "allocate" else NODES):
        full += [podgroup(f"old{i}", 0, runs, priority_class="low", phase="Running")]
        full += [pod(f"old{i}-{k}", f"old{i}", 1, on=f"n{i}", phase="Running", priority=1) for k in range(4)]
    made: list[Object] = [pod(f"port{i}", "", 0, on=f"n{i}", **TAKEN) for i in range(NODES) if "gang" in action]
    for i in range(storm):
        cores = [1 + 0.01 * dice.randrange(100) for _ in range(2)] + [3.5]
        of = "q0" if "preempt" in action or dice.random() < 0.5 else "q1"
        made += waiting(f"s{i:02d}", "storm", cores, of, 1.0 + i, tier, TAKEN if "gang" in action else NOWHERE)
    queues = [queue(name, 4 if name != "old" else 1) for name in ("old", "q0", "q1")]
    nodes = [node(f"n{i}", 4) for i in range(NODES)]
    return cluster(LEVELS, queues, nodes, racks, full, made, waiting("fits", "other", [1, 1], "q0", 99.0, tier))


def under(action: str, steps: int) -> Policy:
    return policy(CONF.replace("ACTION", action).replace("STEPS", str(steps)))


def cycle(store: Store, under: Policy, now: float, memo: Memo | None = None) -> tuple[list[Decision], Outcome]:
    planner = ListPlanner()
    outcome = run_cycle(store.snapshot(), under, now, planner, memo=memo)
    store.remember(outcome.writes)
    return planner.taken, outcome


def is_served(decisions: list[Decision], outcome: Outcome) -> bool:
    bound = {each.pod for each in decisions if isinstance(each, Bind)}
    return {"other/fits-0", "other/fits-1"} <= bound | outcome.pipelined.keys()


def cut(outcome: Outcome) -> set[str]:
    return {each.subject for each in outcome.entries if isinstance(each.finding, SearchCut)}


CASES = [pytest.param(*each, id="-".join(map(str, each))) for each in product(ACTIONS, range(2))]


@pytest.mark.parametrize(("action", "seed"), CASES)
def test_a_storm_delays_a_gang_of_another_tenant_by_one_cycle_at_most(action: str, seed: int) -> None:
    few = under(action, STEPS)
    alone = cycle(world(Random(seed), action, storm=0), few, 100.0)
    assert is_served(*alone), "without the storm it is served at once"
    store = world(Random(seed), action, storm=24)
    cycles = [cycle(store, few, 100.0 + k) for k in range(2)]
    assert any(is_served(*each) for each in cycles)
    if not is_served(*cycles[0]):
        assert cut(cycles[0][1])


@pytest.mark.parametrize(("action", "seed"), CASES)
def test_a_cycle_without_a_memory_is_cut_at_the_same_step(action: str, seed: int) -> None:
    few = under(action, STEPS)
    found: list[Any] = []
    for memos in ([memo := Memo(), memo, memo], [Memo(keeps=False) for _ in range(3)]):
        store, seen = world(Random(seed), action, storm=24), []
        for k, each in enumerate(memos):
            decisions, outcome = cycle(store, few, 100.0 + k, each)
            seen.append((decisions, sorted(cut(outcome)), dict(outcome.writes.notes)))
        found.append(seen)
    assert found[0] == found[1]


@pytest.mark.parametrize("action", ACTIONS)
def test_all_jobs_of_a_storm_are_tried(action: str) -> None:
    few, store, tried = under(action, STEPS), world(Random(7), action, storm=24), set[str]()
    cuts = 0
    for k in range(60):
        decisions, outcome = cycle(store, few, 100.0 + k)
        for each in decisions:
            if isinstance(each, Evict):
                store.apply(Gone(Pod, each.pod))
        not_tried = cut(outcome)
        cuts += bool(not_tried)
        tried |= {f"storm/s{i:02d}" for i in range(24)} - not_tried
        if len(tried) == 24:
            break
    assert cuts, "the case is to be cut"
    assert len(tried) == 24
