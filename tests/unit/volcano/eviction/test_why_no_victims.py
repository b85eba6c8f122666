"""What is said where nobody can be evicted for a task."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.model.blockers import Blocker, CannotEvict, OutOfReach, Protected, TooSmall
from pumice.model.events import Object
from pumice.runtime.why import why_jobs_wait
from pumice.testing.build import cluster, node, pod, podgroup, run
from tests.unit.volcano.evicting import LEVELS, PREEMPT, gang


def test_why_says_who_might_go_and_what_each_plugin_keeps() -> None:
    state = cluster(LEVELS, node("n", 2), gang("low", 2, 2, on="n"), gang("g", 1, 1, creation=1.0))
    why = why_jobs_wait(run(state, PREEMPT).outcome)["ns/g"]
    assert why.text.endswith(
        "cannot preempt: none of the 2 running pods of queue default on 1 node can be evicted; priority protects 2 of"
        " the same or a higher priority; gang protects 2 that their gangs need for their minimum"
    )


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
