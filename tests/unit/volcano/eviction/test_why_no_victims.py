"""What is reported if no task can be evicted for a task."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.framework.cycle.outcome import Outcome
from pumice.kube.scheduler.cycle_log import log_cycle
from pumice.kube.scheduler.logs import V4
from pumice.model.blockers import Blocker, CannotEvict, OutOfReach, Protected, TooSmall
from pumice.model.disruption import PodDisruptionBudget
from pumice.model.events import Object
from pumice.model.pod import LabelSelector, Requirement
from pumice.reasons.blockers import blockers_of
from pumice.reasons.sentences import sentence
from pumice.testing.build import cluster, node, pod, podgroup, run
from tests.unit.volcano.evicting import LEVELS, PREEMPT, gang


def why_waits(outcome: Outcome) -> list[str]:
    """Return all that blocks gang g, the nearest first."""
    return [sentence(each) for each in blockers_of(outcome)["ns/g"]]


def test_why_says_who_might_go_and_what_each_plugin_keeps() -> None:
    state = cluster(LEVELS, node("n", 2), gang("low", 2, 2, on="n"), gang("g", 1, 1, creation=1.0))
    assert why_waits(run(state, PREEMPT).outcome)[-1] == (
        "cannot preempt: none of the 2 running pods of queue default on 1 node can be evicted; priority protects 2 of"
        " the same or a higher priority; gang protects 2 that their gangs need for their minimum (ns/low: 2, minimum 2)"
    )


def test_the_gang_that_spares_is_named_in_the_log_and_to_those_who_ask(caplog: pytest.LogCaptureFixture) -> None:
    gangs = gang("web", 2, 2, on="n"), gang("elastic", 2, 1, on="n")
    state = cluster(LEVELS, node("n", 4), *gangs, gang("g", 1, 1, level="high", creation=1.0, cpu=2))
    outcome = run(state, PREEMPT).outcome
    named = "gang protects 3 that their gangs need for their minimum (ns/web: 2, minimum 2, ns/elastic: 1, minimum 1)"
    assert named in why_waits(outcome)[-1]
    with caplog.at_level(V4, "pumice.cycle"):
        log_cycle(outcome, [])
    (line,) = (each for each in caplog.messages if each.startswith("<ns/g> cannot preempt: "))
    assert named in line


def test_budgets_that_protect_pods_are_named_with_counts() -> None:
    selector = LabelSelector((Requirement("app", "In", ("web",)),))
    budget = PodDisruptionBudget("ns", "web", selector, allowed=0)
    low = gang("low", 2, on="n", labels={"app": "web"})
    conf = PREEMPT.replace("{name: gang}", "{name: gang}, {name: pdb}")
    assert conf != PREEMPT
    state = cluster(LEVELS, node("n", 2), budget, low, gang("g", 1, 1, level="high", creation=1.0))
    why = why_waits(run(state, conf).outcome)[-1]
    assert "pdb protects 2 that budgets cover (PodDisruptionBudget ns/web: 2, 0 may be evicted)" in why


@pytest.mark.parametrize(
    ("nodes", "objects", "more", "why"),
    [
        pytest.param(
            [node("n", 1)],
            gang("low", 1, on="n"),
            {"node_selector": (("zone", "x"),)},
            OutOfReach(1),
            id="filters",
        ),
        pytest.param(
            [node("n", 1), node("m", 1)],
            [podgroup("low", 0), pod("low-0", "low", on="n", annotations={"volcano.sh/preemptable": "false"})],
            {"cpu": 2},
            Protected("default", nodes=2, victims=0),
            id="nobody is there",
        ),
        pytest.param(
            [node("n", 1)],
            gang("low", 1, on="n"),
            {"cpu": 2},
            TooSmall(),
            id="the node is too small",
        ),
    ],
)
def test_why_nobody_goes(nodes: list[Object], objects: list[Object], more: dict[str, Any], why: Blocker) -> None:
    ran = run(cluster(LEVELS, nodes, objects, gang("high", 1, 1, level="high", **more)), PREEMPT)
    found = [entry.finding for entry in ran.outcome.entries if isinstance(entry.finding, CannotEvict)]
    assert found == [CannotEvict("preempt", 0, 1, why)]
