"""What cannot be meant, under the actions that evict: nothing is lost, no task leaves for it, and others go on.

The words for it are held by ``runtime/test_queue_problems``, ``test_queue_tree``, ``test_tdm`` and tests of manifests.
"""

from __future__ import annotations

from typing import Any

import pytest

from pumice.model.events import Object
from pumice.testing.build import budget, cluster, node, policy, queue, resource, run
from tests.unit.volcano.evicting import LEVELS, gang

CONF = """
actions: "enqueue, allocate, preempt, reclaim, gangpreempt, gangreclaim, shuffle"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}, {name: SHARES}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
FLAT = CONF.replace("{name: SHARES}", "{name: capacity}")
TREE = CONF.replace("{name: SHARES}", "{name: capacity, enableHierarchy: true}")


def full(of: str = "a") -> list[Object]:
    return [node("n", 4), *gang("low", 4, 1, of, on="n")]


def high(of: str) -> list[Object]:
    return gang("high", 2, 2, of, level="high", creation=9.0)


@pytest.mark.parametrize(
    ("conf", "objects", "evicted"),
    [
        pytest.param(
            FLAT,
            [
                queue("a", deserved=resource(9), capability=resource(2)),
                queue("b", deserved=resource(2)),
                full(),
                high("b"),
            ],
            2,
            id="deserved above capability: what is above is not deserved",
        ),
        pytest.param(
            TREE,
            [
                queue("root"),
                queue("p", deserved=resource(1), capability=resource(4)),
                queue("a", parent="p", deserved=resource(4)),
                queue("b", parent="p", deserved=resource(4)),
                full(),
                high("b"),
            ],
            0,
            id="children above their parent: the one that runs has no more than it says",
        ),
        pytest.param(
            TREE,
            [queue("root"), queue("a", parent="b"), queue("b", parent="a"), full(), high("b")],
            0,
            id="a parent that is its leaf's child: no tree, and nobody goes",
        ),
        pytest.param(
            FLAT,
            [queue("a", guarantee=resource(100)), queue("b", guarantee=resource(100)), full(), high("b")],
            0,
            id="guarantees that exceed the cluster: nobody has more than his",
        ),
        pytest.param(
            FLAT,
            [queue("a"), queue("b", deserved=resource(2)), full(), high("b"), budget("all")],
            3,
            id="a budget that selects everything: as in Volcano it selects nobody, and all that low can spare go",
        ),
    ],
)
def test_the_cluster_goes_on(conf: str, objects: list[Any], evicted: int) -> None:
    under = policy(conf)
    state = cluster(LEVELS, *objects)
    first = run(state, under)
    assert len(first.evicted) == evicted
    assert run(state, under).decisions == first.decisions
    assert sum(pod is not None for pod in state.snapshot().tables.tasks.pods) == 6
