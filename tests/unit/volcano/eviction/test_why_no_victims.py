"""What is said where nobody can be evicted for a task."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.model.events import Object
from pumice.runtime.why import why_jobs_wait
from pumice.testing.build import cluster, node, pod, podgroup, run
from tests.unit.volcano.evicting import LEVELS, PREEMPT, gang


def test_why_says_who_might_go_and_what_each_plugin_keeps() -> None:
    state = cluster(LEVELS, node("n", 2), gang("low", 2, 2, on="n"), gang("g", 1, 1, creation=1.0))
    why = why_jobs_wait(run(state, PREEMPT).outcome)["ns/g"]
    assert why.text.endswith(
        "cannot preempt: 0 of 2 running pods of queue default on 1 nodes may go for it; priority spares 2 of no lower"
        " priority; gang spares 2 that their gangs need for their minimum"
    )


@pytest.mark.parametrize(
    ("nodes", "objects", "more", "why"),
    [
        pytest.param(
            [node("n", 1)],
            gang("low", 1, on="n"),
            {"node_selector": (("zone", "x"),)},
            "filters leave none of 1 nodes to it, whoever may go",
            id="filters",
        ),
        pytest.param(
            [node("n", 1), node("m", 1)],
            [podgroup("low", 0), pod("low-0", "low", on="n", annotations={"volcano.sh/preemptable": "false"})],
            {"cpu": 2},
            "no running pod of queue default on 2 nodes might go for it",
            id="nobody is there",
        ),
        pytest.param(
            [node("n", 1)],
            gang("low", 1, on="n"),
            {"cpu": 2},
            "1 of 1 running pods of queue default on 1 nodes may go for it; on no node is that room enough",
            id="not room enough",
        ),
    ],
)
def test_why_nobody_goes(nodes: list[Object], objects: list[Object], more: dict[str, Any], why: str) -> None:
    ran = run(cluster(LEVELS, nodes, objects, gang("high", 1, 1, level="high", **more)), PREEMPT)
    (entry,) = [each for each in ran.outcome.entries if each.what == "cannot preempt"]
    assert entry.detail == why
