"""Hints whatever the cluster: one short line each, and words as people use them. (What they say: tests/cases/hints.)"""

from __future__ import annotations

from random import Random

import pytest

from pumice.model.queue import PriorityClass
from pumice.reasons.hints import LENGTH_MAX, hints, shortened
from pumice.reasons.words import amount, joined, meant, names
from pumice.runtime.one_cycle import schedule_once
from pumice.runtime.policy.conf import policy_of
from pumice.testing.build import node, pod, podgroup, policy, queue
from pumice.testing.clusters import small_cluster
from pumice.volcano.table import volcano_registry
from tests.simulation.scenes import POLICIES

PREEMPT = """
actions: "allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}]
"""


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_any_cluster_has_short_lines(name: str) -> None:
    said = 0
    for seed in range(12):
        objects = small_cluster(Random(seed))
        answer = schedule_once(objects, policy_of(POLICIES[name], volcano_registry()), 1_000.0)
        short = hints(answer.nearest)
        for key, hint in answer.hints.items():
            assert hint and hint.isprintable()
            assert short.get(key, "").rstrip("…") == hint[: len(short.get(key, "").rstrip("…"))]
            assert len(short.get(key, "")) <= LENGTH_MAX
            said += 1
    assert said, "some of them wait"


def test_a_job_that_got_all_has_none() -> None:
    answer = schedule_once([node("n"), queue(), podgroup("g", 1), pod("g-0", "g", cpu=1)], policy(), 1_000.0)
    assert answer.binds and answer.hints == {}


def test_equal_jobs_have_one_hint() -> None:
    groups = [podgroup(f"g{i}", 1) for i in range(3)]
    pods = [pod(f"g{i}-0", f"g{i}", cpu=99) for i in range(3)]
    answer = schedule_once([node("n", cpu=4), queue(), *groups, *pods], policy(), 1_000.0)
    assert set(answer.hints.values()) == {"asks for 99 cores a pod; the largest node has 4"}
    assert len(answer.hints) == 3


def test_a_gang_is_not_given_the_promise_of_another() -> None:
    """Four equal gangs fail in allocate; preempt evicts for two of them, and the other two find no victim."""
    classes = [PriorityClass("high", 1000), PriorityClass("low", 1)]
    nodes = [node(f"n{i}", cpu=2) for i in range(3)]
    old = [podgroup("old", 1, phase="Running", priority_class="low")]
    running = [pod(f"old-{i}", "old", cpu=2, priority=1, on=f"n{i}") for i in range(3)]
    groups = [podgroup(f"g{i}", 1, phase="Inqueue", priority_class="high") for i in range(4)]
    pods = [pod(f"g{i}-0", f"g{i}", cpu=2, priority=1000) for i in range(4)]
    answer = schedule_once([*nodes, queue(), *classes, *old, *running, *groups, *pods], policy(PREEMPT), 1_000.0)
    reserved = {pod.rpartition("-")[0] for pod in answer.pipelined}
    assert len(reserved) == 2 and len(answer.hints) == 4
    assert {key for key, hint in answer.hints.items() if "old" in hint} == reserved


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("cpu", 1000.0, "1 core"),
        ("cpu", 1500.0, "1.5 cores"),
        ("memory", float(16 << 30), "16 GiB"),
        ("nvidia.com/gpu", 8000.0, "8 GPUs"),
        ("example.com/rdma-port", 2000.0, "2 rdma-ports"),
    ],
)
def test_amounts_are_as_people_count(name: str, value: float, text: str) -> None:
    assert amount(name, value) == text


def test_lists_of_names_end() -> None:
    assert joined(["a", "b", "c"]) == "a, b and c"
    assert names([f"n{i}" for i in range(20)], 2) == "n0, n1 and 18 more"
    assert shortened("x" * 500).endswith("…") and len(shortened("x" * 500)) == LENGTH_MAX


def test_a_name_that_was_meant_is_there() -> None:
    assert meant("taem", ["team", "prod"]) == "team"
    assert meant("gpu_type", ["zone", "gpu-type"]) == "gpu-type"
    assert meant("x", ["team", "prod"]) is None
