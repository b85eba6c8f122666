"""Steps of searches for victims: trials on nodes in vain count, and so do those of a job within itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pumice.cycle import run_cycle
from pumice.framework.cycle.outcome import Outcome
from pumice.model.blockers import SearchCut
from pumice.model.decisions import Decision, Evict
from pumice.model.events import Object
from pumice.model.pod import HostPort
from pumice.runtime.loop import ListPlanner
from pumice.state.store import Store
from pumice.testing.build import cluster, node, pod, podgroup, policy, queue
from tests.unit.volcano.evicting import LEVELS, gang

NODES = 40
#: Enough for the searches of two jobs that evict nothing on so many nodes, and not for as many trials of one in vain.
STEPS = 300
CONF = """
actions: ACTION
tiers:
- plugins: [{name: priority}, {name: gang, enableJobStarving: false}, {name: predicates}]
configurations: [{name: ACTION, arguments: {maxSearchSteps: STEPS}}]
"""
TAKEN = {"host_ports": (HostPort(80),)}
NAMES = [f"n{i:02d}" for i in range(NODES)]


def cycles(store: Store, action: str, steps: int = STEPS) -> Iterator[tuple[list[Decision], Outcome]]:
    """Yield the decisions and the outcome of one cycle after the other. Nothing is carried out."""
    found = policy(CONF.replace("ACTION", action).replace("STEPS", str(steps)))
    while True:
        planner = ListPlanner()
        outcome = run_cycle(store.snapshot(), found, 100.0, planner)
        store.remember(outcome.writes)
        yield planner.taken, outcome


def cut(outcome: Outcome) -> list[str]:
    return sorted(each.subject for each in outcome.entries if isinstance(each.finding, SearchCut))


def nodes() -> list[Object]:
    """Nodes of one core, on each of which a pod of no group holds the port."""
    holders = [pod(f"holder{name}", "", 0, on=name, **TAKEN) for name in NAMES]
    return [*(node(name, 1) for name in NAMES), *holders, queue("q0"), queue("q1"), *LEVELS]


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
def test_trials_in_vain_take_steps(action: str) -> None:
    running = [each for i, name in enumerate(NAMES) for each in gang(f"old{i}", 1, of="q0", on=name)]
    of = "q0" if action == "preempt" else "q1"
    # Enough would leave each node, and its port stays taken.
    new = gang("new", 1, 1, of=of, level="high", creation=9.0, **TAKEN)
    assert cut(next(cycles(cluster(*nodes(), *running, *new), action))[1]) == ["ns/new"]
    assert cut(next(cycles(cluster(*nodes(), *running, *new), action, 10 * STEPS))[1]) == []


def within(name: str, on: list[str], **waits: object) -> list[Object]:
    """A job that runs on some nodes, of which a pod of higher priority waits."""
    running = [pod(f"{name}-{i}", name, 1, on=each, priority=1) for i, each in enumerate(on)]
    return [podgroup(name, 1, "q0", phase="Running"), *running, pod(f"{name}-new", name, 1, priority=9, **waits)]


def test_trials_of_a_job_within_itself_take_steps_of_their_own() -> None:
    store = cluster(*nodes(), *within("one", NAMES, **TAKEN))
    assert cut(next(cycles(store, "preempt"))[1]) == ["ns/one"]
    assert cut(next(cycles(store, "preempt", 10 * STEPS))[1]) == []


def test_a_job_whose_search_within_itself_was_cut_goes_first_in_the_next_cycle() -> None:
    store = cluster(*nodes(), *within("one", NAMES[:38], **TAKEN), *within("two", NAMES[38:]))
    played = cycles(store, "preempt")
    evicted = [[each.pod for each in next(played)[0] if isinstance(each, Evict)] for _ in range(2)]
    assert evicted == [[], ["ns/two-0"]]
