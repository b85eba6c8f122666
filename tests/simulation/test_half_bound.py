"""A gang of which a part was bound when its scheduler crashed: it becomes whole, or goes whole, and stays no half."""

from __future__ import annotations

import pytest

from pumice.model.decisions import Evict
from pumice.model.node import Node
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.loop import Loop
from pumice.runtime.policy.conf import policy_of
from pumice.sim.cluster import SimCluster
from pumice.sim.engine import Engine
from pumice.sim.laws.partially_bound import CYCLES_MAX
from pumice.sim.laws.safety import LawBroken, Laws
from pumice.state.store import Store
from pumice.testing import build
from pumice.volcano.table import DEFAULT_CONF, volcano_registry

NOW = 1_000.0


CONF = DEFAULT_CONF.replace("name: gang", "name: gang\n    arguments: {finishPartialGangs: FIRST}")
#: Without plugins that may keep a job waiting for what its queue holds.
BARE = "actions: enqueue, allocate\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n"


def crashed(cpu: int, *, later: bool = True) -> SimCluster:
    """A scheduler died after two binds of four. A gang of equal priority came later."""
    cluster = SimCluster(Engine(NOW))
    groups = [podgroup_of("early", 60), podgroup_of("later", 30)][: 1 + later]
    half = [build.pod(f"early-{i}", "early", cpu=1, on="n" if i < 2 else "") for i in range(4)]
    other = [build.pod(f"later-{i}", "later", cpu=1) for i in range(4 if later else 0)]
    for obj in (build.node("n", cpu=cpu), build.queue(), *groups, *half, *other):
        cluster.put(obj)
    return cluster


def podgroup_of(name: str, age: float) -> PodGroup:
    return build.podgroup(name, minimum=4, creation=NOW - age, phase="Inqueue")


def three_cycles(cluster: SimCluster, conf: str) -> set[str]:
    """Cycles that are watched by the laws. Returns the pods that have a node."""
    laws = Laws(cluster, partial_gangs_first=True, queue_limits="proportion" in conf)
    loop = Loop(Store(), policy_of(conf, volcano_registry()), cluster)
    for cycle in range(CYCLES_MAX + 1):
        loop.step(NOW + cycle)
        laws.after_cycle(loop.decisions)
    return {pod.key for pod in cluster.pods.values() if pod.node_name}


def test_a_half_bound_gang_goes_before_equals() -> None:
    """The later one would take what room is left: then one holds two nodes for nothing, for ever, and the other
    runs."""
    assert {f"ns/early-{i}" for i in range(4)} <= three_cycles(crashed(6), CONF.replace("FIRST", "true"))


def test_in_the_order_of_volcano_it_does_not_and_the_law_says_so() -> None:
    with pytest.raises(LawBroken, match=r"S11: gang ns/later got room before ns/early, which holds nodes and lacks 2"):
        three_cycles(crashed(6), CONF.replace("FIRST", "false"))


def test_a_half_that_stays_one_although_there_is_room_breaks_the_law() -> None:
    """Unchanged, since the policy does not allocate."""
    with pytest.raises(LawBroken, match=r"S12: gang ns/early holds nodes and is not whole after 4 cycles"):
        three_cycles(crashed(4, later=False), BARE.replace("enqueue, allocate", "enqueue"))
    assert len(three_cycles(crashed(4, later=False), BARE)) == 4


def test_a_half_for_which_there_is_no_room_breaks_no_law() -> None:
    assert len(three_cycles(crashed(3, later=False), BARE)) == 2


# -- two halves that hold what each other lacks

GOES = """actions: enqueue, allocate, shuffle
tiers:
- plugins:
  - name: gang
    arguments: {evictPartialGangsAfter: 10m}
  - name: predicates
"""


def deadlocked(cpu: int = 6) -> SimCluster:
    """Both need four cores, and each holds three of six."""
    cluster = SimCluster(Engine(NOW))
    for obj in (build.node("n", cpu=cpu), build.queue(), podgroup_of("early", 60), podgroup_of("later", 30)):
        cluster.put(obj)
    for name in ("early", "later"):
        for i in range(4):
            pod = build.pod(f"{name}-{i}", name, cpu=1, on="n" if i < 3 else "", creation=NOW - 20)
            cluster.put(pod)
    return cluster


def after(cluster: SimCluster, seconds: float, conf: str = GOES) -> tuple[set[str], float | None]:
    """Who is evicted so long after the pods were made, and when the cycle would look again."""
    loop = Loop(Store(), policy_of(conf, volcano_registry()), cluster)
    outcome = loop.step(NOW - 20 + seconds)
    return {each.pod.removeprefix("ns/") for each in loop.decisions if isinstance(each, Evict)}, outcome.wakes_at


def test_the_later_of_two_halves_goes_whole_when_its_time_is_over() -> None:
    assert after(deadlocked(), 599) == (set(), NOW - 20 + 600)
    assert after(deadlocked(), 600)[0] == {"later-0", "later-1", "later-2"}


def test_nobody_goes_for_nothing() -> None:
    """Where there is no other half, or both become whole."""
    alone = deadlocked()
    for i in range(4):
        alone.remove_pod(f"ns/early-{i}")
    assert after(alone, 9_999)[0] == set()
    assert after(deadlocked(cpu=8), 9_999)[0] == set()


def test_without_the_argument_nobody_goes() -> None:
    assert after(deadlocked(), 9_999, GOES.replace("    arguments: {evictPartialGangsAfter: 10m}\n", ""))[0] == set()


# -- a half that is never whole

GIVES_BACK = GOES.replace("evictPartialGangsAfter", "evictBelowMinimumAfter")


def alone(missing: int = 0) -> SimCluster:
    """Three of four are bound, and the fourth has no room; or does not exist, if ``missing``."""
    cluster = deadlocked(cpu=3)
    for name in [f"later-{i}" for i in range(4)] + ["early-3"][:missing]:
        cluster.remove_pod(f"ns/{name}")
    return cluster


@pytest.mark.parametrize("missing", [0, 1], ids=["no room", "member refused by admission"])
def test_a_gang_gives_back_what_it_holds_after_a_grace(missing: int) -> None:
    cluster = alone(missing)
    loop = Loop(Store(), policy_of(GIVES_BACK, volcano_registry()), cluster)
    first = loop.step(NOW)
    assert (loop.decisions, first.wakes_at) == ([], NOW + 600)
    loop.step(NOW + 599)
    assert loop.decisions == []
    loop.step(NOW + 600)
    assert {each.pod for each in loop.decisions if isinstance(each, Evict)} == {f"ns/early-{i}" for i in range(3)}


def test_a_gang_that_was_whole_in_between_begins_anew() -> None:
    cluster = alone(1)
    loop = Loop(Store(), policy_of(GIVES_BACK, volcano_registry()), cluster)
    loop.step(NOW)
    cluster.put(build.node("m", cpu=1))
    cluster.put(build.pod("early-3", "early", cpu=1, on="m", creation=NOW))
    loop.step(NOW + 300)
    cluster.remove_pod("ns/early-3")
    assert loop.step(NOW + 700).wakes_at == NOW + 700 + 600
    assert loop.decisions == []


def test_a_gang_that_is_no_longer_ready_has_one_condition() -> None:
    cluster = alone()
    loop = Loop(Store(), policy_of(DEFAULT_CONF, volcano_registry()), cluster)
    cluster.put(build.node("m", cpu=1))
    loop.step(NOW)
    cluster.delete(Node, "m")
    cluster.put(build.pod("early-3", "early", cpu=1, creation=NOW))
    loop.step(NOW + 1)
    said = {each.type: each.status for each in cluster.groups["ns/early"].status.conditions}
    assert said == {"Scheduled": "False", "Unschedulable": "True"}
