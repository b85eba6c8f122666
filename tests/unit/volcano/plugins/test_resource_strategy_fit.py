"""resource-strategy-fit: its scores against the slow and plain way, and what a policy or a pod may get wrong."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from pumice.columns.rows import NodeRows
from pumice.columns.views import Task
from pumice.framework.plugin.errors import PolicyError
from pumice.framework.plugin.points import class_scores
from pumice.model.strategy import ResourceStrategy, resource_strategy
from pumice.testing.build import cluster, node, pod, podgroup, policy, session

RULES = {
    "cpu": {"type": "LeastAllocated", "weight": 1},
    "memory": {"type": "MostAllocated", "weight": 3},
    "nvidia.com/*": {"type": "MostAllocated", "weight": 2},
}


def conf(**arguments: Any) -> str:
    return f"actions: allocate\ntiers: [{{plugins: [{{name: resource-strategy-fit, arguments: {arguments}}}]}}]"


def scores(policy_text: str, *objects: Any) -> list[float]:
    """Of every node for the pod ``w``."""
    ssn = session(cluster(podgroup("g"), *objects), policy_text)
    row = next(row for row, each in enumerate(ssn.tables.tasks.pods) if each is not None and each.name == "w")
    nodes = NodeRows(ssn.tables, np.arange(len(ssn.tables.nodes.facts)))
    found = np.broadcast_to(ssn.ask(class_scores, Task(ssn.tables, row).cls, nodes), len(nodes))
    return [round(float(score), 9) for score in found]


def plainly(offered: tuple[int, ...], used: tuple[int, ...], asked: tuple[int, ...]) -> float:
    """One node, as the specification says it: cpu, memory, devices."""
    total = score = 0.0
    for have, held, wants, (most, weight) in zip(offered, used, asked, ((False, 1), (True, 3), (True, 2)), strict=True):
        if not wants:
            continue
        total += weight
        if have and held + wants > have:
            return 0.0
        if have:
            score += weight * ((held + wants) if most else (have - held - wants)) / have
    return round(100 * 10 * score / total, 9) if total else 0.0


def test_it_scores_as_the_specification_says() -> None:
    dice = Random(5)
    for _ in range(12):
        nodes = [(dice.randint(1, 9), dice.randint(1, 9), dice.choice((0, 4)) if i else 4) for i in range(4)]
        held = [tuple(dice.randint(0, have) for have in each) for each in nodes]
        asked = (dice.randint(0, 3), dice.randint(0, 3), dice.randint(0, 1))
        objects = [node(f"n{i}", each[0], f"{each[1]}Gi", each[2], creation=float(i)) for i, each in enumerate(nodes)]
        there = [pod(f"p{i}", "g", c, f"{m}Gi", d, on=f"n{i}") for i, (c, m, d) in enumerate(held)]
        found = scores(conf(resources=RULES), objects, there, pod("w", "g", asked[0], f"{asked[1]}Gi", asked[2]))
        assert found == [plainly(each, used, asked) for each, used in zip(nodes, held, strict=True)]


def test_a_pod_says_it_for_itself() -> None:
    nodes, there = [node("a", 4), node("b", 4, creation=1.0)], pod("p", "g", 2, on="b")
    own = resource_strategy(
        {
            "volcano.sh/resource-strategy-scoring-type": "MostAllocated",
            "volcano.sh/resource-strategy-weight": '{"cpu": 1}',
        }
    )
    assert scores(conf(), nodes, there, pod("w", "g", 1, 0, strategy=own)) == [250.0, 750.0]
    assert scores(conf(), nodes, there, pod("w", "g", 1, 0)) == [750.0, 250.0]


@pytest.mark.parametrize(
    "weights",
    ["", "cpu", "[1]", '{"cpu": 1.5}', '{"cpu": -1}', '{"cpu": true}', '{"cpu": 1e400}', "[" * 9000, "{" * 5000],
)
def test_weights_of_a_pod_that_cannot_be_read_score_no_node(weights: str) -> None:
    notes = {
        "volcano.sh/resource-strategy-scoring-type": "LeastAllocated",
        "volcano.sh/resource-strategy-weight": weights,
    }
    assert resource_strategy(notes) == ResourceStrategy()
    assert scores(conf(), node("a"), pod("w", "g", 1, strategy=ResourceStrategy())) == [0.0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"resources": {"*": {"type": "MostAllocated"}}}, "one * at its end"),
        ({"resources": {"a*b": {"type": "MostAllocated"}}}, "one * at its end"),
        ({"resources": {"cpu": 3}}, "found a number, wanted type and weight"),
        ({"resources": {"cpu": {"type": "Most"}}}, "wanted MostAllocated or LeastAllocated"),
        ({"resources": ["cpu"]}, "found a list, wanted a mapping"),
        ({"sra": "on"}, "argument sra: found a text, wanted a mapping"),
        ({"proportional": {"enable": "yes"}}, "wanted true or false"),
    ],
)
def test_what_a_policy_gets_wrong_is_said(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(PolicyError, match=said.replace("*", r"\*")):
        policy(conf(**arguments))
