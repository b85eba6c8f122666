"""usage: its scores against the slow and plain way, task by task; what is fresh; what arguments may be."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from pumice.columns.rows import NodeRows
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.errors import PolicyError
from pumice.framework.plugin.points import class_scores
from pumice.model.pod import Pod
from pumice.model.usage import NodeUsage
from pumice.testing.build import cluster, node, pod, podgroup, policy, run, session

NOW = 1000.0


def conf(metrics: str = "", **arguments: Any) -> str:
    return f"actions: allocate\ntiers: [{{plugins: [{{name: usage, arguments: {arguments}}}]}}]\n{metrics}"


def scores(ssn: Session, name: str = "w") -> list[float]:
    row = next(row for row, each in enumerate(ssn.tables.tasks.pods) if each is not None and each.name == name)
    nodes = NodeRows(ssn.tables, np.arange(len(ssn.tables.nodes.facts)))
    return [float(each) for each in ssn.ask(class_scores, Task(ssn.tables, row).cls, nodes)]


def plainly(measured: tuple[float, float], capacity: tuple[float, float], starting: list[Pod]) -> float:
    """One node: what comes is counted pod by pod, each with what came before it."""
    coming = [0.0, 0.0]
    for each in starting:
        shares = [min(1.0, (p * c / 100 + s) / c) for p, c, s in zip(measured, capacity, coming, strict=True)]
        factor = 1.2 if sum(shares) / 2 >= 0.6 else 1.0
        for i, asked in enumerate((each.spec.request.milli_cpu, each.spec.request.memory)):
            coming[i] += round(min(asked, 0.7 * asked * factor))
    shares = [min(1.0, (p * c / 100 + s) / c) for p, c, s in zip(measured, capacity, coming, strict=True)]
    return (2.0 - sum(shares)) / 2 * 100 * 5


def test_it_scores_as_the_specification_says() -> None:
    dice = Random(3)
    for _ in range(10):
        sizes = [(dice.choice((4, 8, 16)), dice.choice((8, 32))) for _ in range(3)]
        busy = [(dice.uniform(0, 100), dice.uniform(0, 100)) for _ in sizes]
        there = [
            pod(
                f"p{n}-{i}",
                "g",
                dice.randint(0, 2),
                f"{dice.randint(0, 3)}Gi",
                on=f"n{n}",
                start_time=NOW - 5,
                creation=i,
            )
            for n in range(3)
            for i in range(dice.randint(0, 4))
        ]
        objects = [node(f"n{i}", cpu, f"{gib}Gi", creation=float(i)) for i, (cpu, gib) in enumerate(sizes)]
        usages = [NodeUsage(f"n{i}", *each, NOW) for i, each in enumerate(busy)]
        ssn = session(cluster(objects, usages, podgroup("g"), there, pod("w", "g")), conf(), now=NOW)
        wanted = [
            plainly(busy[n], (1000.0 * cpu, gib * 2.0**30), [each for each in there if each.node_name == f"n{n}"])
            for n, (cpu, gib) in enumerate(sizes)
        ]
        assert scores(ssn) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("metrics", "since", "counts"),
    [
        ("", 29.0, True),
        ("", 31.0, False),
        ("metrics: {interval: 2m}", 31.0, True),
        ("metrics: {interval: x}", 31.0, False),
    ],
)
def test_a_pod_counts_until_it_is_measured(metrics: str, since: float, counts: bool) -> None:
    young = pod("y", "g", 4, on="a", start_time=NOW - since)
    objects = (node("a"), NodeUsage("a", 10, 10, NOW), podgroup("g"), young, pod("w", "g"))
    (found,) = scores(session(cluster(*objects), conf(metrics), now=NOW))
    assert (found < 450.0) is counts


def test_it_wakes_when_a_measurement_is_too_old() -> None:
    objects = (node("a"), NodeUsage("a", 95, 10, NOW - 100), podgroup("g", phase="Inqueue"), pod("w", "g"))
    assert run(cluster(*objects), conf(), now=NOW).binds == {}
    wakes = session(cluster(*objects), conf(), now=NOW).hooks.plugin("usage").wakes_at()
    assert NOW + 200 < wakes < NOW + 200.001
    assert run(cluster(*objects), conf(), now=wakes).binds == {"ns/w": "a"}


@pytest.mark.parametrize("at", [float("nan"), float("inf"), -1.0, 0.0])
def test_a_time_that_cannot_be_says_nothing(at: float) -> None:
    objects = (node("a"), NodeUsage("a", float("nan"), 99, at), podgroup("g", phase="Inqueue"), pod("w", "g"))
    assert run(cluster(*objects), conf(), now=NOW).binds == {"ns/w": "a"}


def test_usage_of_nodes_that_are_not_there_is_nobodys() -> None:
    objects = (node("a"), NodeUsage("gone", 99, 99, NOW), podgroup("g"), pod("w", "g"))
    assert scores(session(cluster(*objects), conf(), now=NOW)) == [0.0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"thresholds": {"cpu": 101}}, "wanted a whole number from 0 to 100"),
        ({"thresholds": {"gpu": 10}}, "wanted cpu or mem"),
        ({"thresholds": 80}, "wanted a mapping"),
        ({"estimator": {"risk_factor": 0.5}}, "wanted a number from 1"),
        ({"estimator": {"be_cpu": "much"}}, "wanted an amount"),
        ({"estimator": {"ratio": 1}}, "wanted one of request_ratio"),
        ({"estimator": [1]}, "wanted a mapping"),
    ],
)
def test_what_a_policy_gets_wrong_is_said(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        policy(conf(**arguments))
