"""What plugins hand on to their own work before binding: it rides along with the decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pumice.columns.views import Node, Task
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.framework.plugin.plugin import plugin
from pumice.testing.build import cluster, node, podgroup, pods, run

Context = Mapping[str, object] | None


def place(task: Task, node: Node) -> Context:
    return {"place": f"{task.pod.name} {task.status.label} {node.name}"}


def volumes(task: Task, node: Node) -> Context:
    return {"volumes": ("a", "b"), "place": "taken"} if task.pod.name == "g-0" else None


def nothing(task: Task, node: Node) -> Context:
    return {}


def telling(says: Callable[[Task, Node], Context]) -> Any:
    """A plugin with the name of the function, which says what the function does."""

    @plugin(says.__name__)
    @points.bind_context
    def hook(ssn: Session, task: Task, node: Node) -> Context:
        return says(task, node)

    return hook


@pytest.mark.parametrize(
    ("tiers", "first", "second"),
    [
        pytest.param([], {}, {}, id="nobody"),
        pytest.param([[nothing]], {}, {}, id="nothing"),
        pytest.param([[place]], {"place": "g-0 Allocated n0"}, {"place": "g-1 Allocated n1"}, id="task and node"),
        pytest.param([[volumes]], {"volumes": ("a", "b"), "place": "taken"}, {}, id="for some tasks only"),
        pytest.param(
            [[nothing, volumes], [place]],
            {"volumes": ("a", "b"), "place": "taken"},
            {"place": "g-1 Allocated n1"},
            id="the first to name a key",
        ),
        pytest.param(
            [[place, volumes]],
            {"place": "g-0 Allocated n0", "volumes": ("a", "b")},
            {"place": "g-1 Allocated n1"},
            id="also within a tier",
        ),
    ],
)
def test_bind_context(tiers: list[list[Any]], first: Context, second: Context) -> None:
    """Of pods g-0 and g-1, each filling a node."""
    state = cluster(node("n0", cpu=1), node("n1", cpu=1), podgroup("g", 2, phase="Inqueue"), pods("g", 2))
    listed = [", ".join(f"{{name: {f.__name__}}}" for f in tier) for tier in tiers]
    conf = "tiers:\n" + "".join(f"- plugins: [{each}]\n" for each in listed)
    ran = run(state, conf, actions="allocate", plugins=[telling(f) for tier in tiers for f in tier])
    assert ran.binds == {"ns/g-0": "n0", "ns/g-1": "n1"}
    assert [decision.context for decision in ran.decisions] == [first, second]
