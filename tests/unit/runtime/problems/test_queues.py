"""What is said of queues and budgets that cannot mean what they say."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.model.devices.shared_devices import VGPU_CORES, VGPU_MEMORY, VGPU_NUMBER
from pumice.model.resources import Resource
from pumice.runtime.problems.queues import budget_problems, queue_problems
from pumice.testing.build import budget, queue, resource

TOTAL = resource(10, "10Gi", gpu=4, pods=100)


@pytest.mark.parametrize(
    ("queues", "used", "reports"),
    [
        pytest.param([queue("a", deserved=resource(2), capability=resource(4))], "", [], id="as it should be"),
        pytest.param(
            [queue("a", deserved=resource(4), capability=resource(2))],
            "",
            ["Queue a: deserved is above its capability in cpu: the capability applies"],
            id="deserved above capability",
        ),
        pytest.param(
            [queue("a", guarantee=resource(gpu=2), capability=Resource(scalars={"nvidia.com/gpu": 0.0}))],
            "",
            ["Queue a: guarantee is above its capability in nvidia.com/gpu: the capability applies"],
            id="a capability of none is one",
        ),
        pytest.param(
            [
                queue("top", capability=resource(2)),
                queue("mid", parent="top"),
                queue("low", parent="mid", capability=resource(3)),
            ],
            "",
            ["Queue low: capability is above that of top in cpu: the smaller one applies"],
            id="a child above its nearest ancestor that says something",
        ),
        pytest.param(
            [
                queue("p", deserved=resource(2)),
                queue("c", parent="p", deserved=resource(1)),
                queue("d", parent="p", deserved=resource(2)),
            ],
            "",
            ["Queue p: deserved of the queues below it together is above its own in cpu"],
            id="children above their parent",
        ),
        pytest.param(
            [queue("a", guarantee=resource(6)), queue("b", guarantee=resource(6))],
            "",
            ["Queue a, b: the guarantees together exceed the cpu of the nodes: nothing is left for other queues"],
            id="guarantees that exceed the cluster",
        ),
        pytest.param(
            [queue("p"), queue("c", parent="p")],
            "p",
            ["Queue p: has child queues and jobs of its own: with hierarchical queues (capacity) no job is placed"],
            id="jobs in a queue that is a parent",
        ),
        pytest.param(
            [queue("a", capability=Resource(scalars={VGPU_MEMORY: 4e6, VGPU_NUMBER: 4e3, VGPU_CORES: 0.0}))],
            "",
            [
                f"Queue a: capability in {name} has no effect: it is counted by card, and queues have no quota in it"
                " yet"
                for name in (VGPU_CORES, VGPU_MEMORY)
            ],
            id="what is counted card by card",
        ),
        pytest.param(
            [queue("root", capability=resource(gpu=4))],
            "",
            [
                f"Queue root: capability does not include {name}: with hierarchical queues (capacity) no queue"
                " can have any"
                for name in ("cpu", "memory")
            ],
            id="a root for gpus alone",
        ),
    ],
)
def test_what_is_said_of_queues(queues: list[Any], used: str, reports: list[str]) -> None:
    found = list(queue_problems(queues, TOTAL, used.split()))
    assert [f"{problem.where}: {problem.what}" for problem in found] == reports


def test_a_chain_that_is_too_deep() -> None:
    chain = [queue(f"q{i}", parent=f"q{i - 1}" if i else "") for i in range(66)]
    found = [problem.where for problem in queue_problems(chain, TOTAL, ())]
    assert found == ["Queue q65"]


def test_a_budget_that_selects_everything() -> None:
    (found,) = budget_problems([budget("all", {}), budget("some", {"app": "web"})])
    assert str(found) == (
        "warning: PodDisruptionBudget ns/all: selects every pod of its namespace for evictions through the API;"
        " Volcano's plugin pdb ignores it"
    )
