"""nodegroup: which groups a queue may use, and what is said of those that it may not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.rows import NodeRows
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.points import task_filters
from pumice.model.manifest import Decoder
from pumice.model.queue import GroupLimits, NodeGroupAffinity, Queue
from pumice.testing.build import cluster, node, pod, podgroup, pods, queue, run, session
from pumice.volcano.plugins.nodegroup import GROUP_LABEL

INVALID = "node group resource limit annotation invalid"
NO_LABEL, UNSPECIFIED = "node group label not found", "node group affinity not specified"
UNSATISFIED = "node does not satisfy the node group affinity"


def opened(*queues: Queue, strict: bool = True, hierarchy: bool = False) -> Session:
    """Nodes of the groups a and b, one without; a pod of the last queue."""
    nodes = [node(name, labels={GROUP_LABEL: name} if name else {}) for name in ("a", "b")]
    plugin = {"name": "nodegroup", "enableHierarchy": hierarchy, "arguments": {"strict": strict}}
    text = f"actions: allocate\ntiers: [{{plugins: [{plugin}]}}]"
    waits = [podgroup("g", queue=queues[-1].name, phase="Inqueue"), pod("w", "g")]
    return session(cluster(nodes, node("none", creation=1.0), list(queues), waits), text)


def against(ssn: Session) -> list[str]:
    """Return why a, b and the node without a group are refused."""
    row = next(row for row, each in enumerate(ssn.tables.tasks.pods) if each is not None and each.name == "w")
    filter_results = ssn.ask(task_filters, Task(ssn.tables, row), NodeRows(ssn.tables, np.arange(3)))
    if not filter_results:
        return ["", "", ""]
    (filter_result,) = filter_results
    return [filter_result.why[code][0].reason if code else "" for code in filter_result.codes.tolist()]


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        pytest.param(NodeGroupAffinity(("a",)), ["", UNSATISFIED, NO_LABEL], id="must use a"),
        pytest.param(NodeGroupAffinity((), ("b",)), [UNSATISFIED, "", NO_LABEL], id="would rather use b, so may"),
        pytest.param(NodeGroupAffinity(("a", "b"), (), ("b",)), ["", UNSATISFIED, NO_LABEL], id="must not use b"),
        pytest.param(NodeGroupAffinity(("a",), (), ("b",), ("b",)), ["", "", NO_LABEL], id="only would avoid b"),
        pytest.param(NodeGroupAffinity(("c",)), [UNSATISFIED, UNSATISFIED, NO_LABEL], id="a group that no node is in"),
        pytest.param(NodeGroupAffinity(), [UNSPECIFIED, UNSPECIFIED, NO_LABEL], id="rules that say nothing"),
        pytest.param(None, [UNSPECIFIED, UNSPECIFIED, NO_LABEL], id="no rules"),
    ],
)
def test_objections_to_a_node(rules: NodeGroupAffinity | None, found: list[str]) -> None:
    assert against(opened(queue("q", affinity=rules))) == found


def test_a_queue_without_rules_may_use_nodes_without_a_group_where_not_strict() -> None:
    assert against(opened(queue("q"), strict=False)) == [UNSPECIFIED, UNSPECIFIED, ""]
    assert against(opened(queue("q", affinity=NodeGroupAffinity(("a",))), strict=False))[2] == NO_LABEL


def test_a_queue_without_rules_has_those_of_its_nearest_ancestor() -> None:
    root = queue("root", affinity=NodeGroupAffinity(("a",)))
    middle = queue("middle", parent="root", affinity=NodeGroupAffinity(("b",)))
    leaf = queue("leaf", parent="middle")
    assert against(opened(root, middle, leaf, hierarchy=True)) == [UNSATISFIED, "", NO_LABEL]
    assert against(opened(root, middle, leaf)) == [UNSPECIFIED, UNSPECIFIED, NO_LABEL]


def test_queues_that_are_each_others_parents_end() -> None:
    assert against(opened(queue("x", parent="y"), queue("y", parent="x"), hierarchy=True))[0] == UNSPECIFIED


@pytest.mark.parametrize(
    ("annotation", "limits"),
    [
        pytest.param(
            '{"a": {"cpu": "2", "memory": "1Gi"}}', (("a", (("cpu", 2e3), ("memory", 2.0**30))),), id="as meant"
        ),
        pytest.param("{}", (), id="none"),
        pytest.param('{"a": {"cpu":', None, id="no JSON"),
        pytest.param("[" * 100_000, None, id="brackets without end"),
        pytest.param('{"a": {"cpu": "-1"}}', None, id="below nothing"),
        pytest.param('{"a": 3}', None, id="no amounts"),
        pytest.param("[]", None, id="no mapping"),
    ],
)
def test_limits_are_read_or_nothing_is_taken(annotation: str, limits: GroupLimits | None) -> None:
    metadata: dict[str, Any] = {"name": "q", "annotations": {"volcano.sh/nodegroup-resource-limits": annotation}}
    raw = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": metadata}
    found = Decoder().decode(raw)
    assert isinstance(found, Queue)
    assert found.group_limits == limits
    if limits is None:
        assert against(opened(found)) == [INVALID] * 3


def test_equal_tasks_do_not_pass_the_limit_together() -> None:
    limited = queue("q", affinity=NodeGroupAffinity(("a",)), group_limits=(("a", (("cpu", 3000.0),)),))
    state = cluster(
        node("n", labels={GROUP_LABEL: "a"}), limited, podgroup("g", 1, "q", phase="Inqueue"), pods("g", 2, cpu=2)
    )
    ran = run(state, "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: nodegroup}]}]")
    assert ran.binds == {"ns/g-0": "n"}


def test_what_left_its_node_leaves_room_in_the_group() -> None:
    limited = queue("q", affinity=NodeGroupAffinity(("a",)), group_limits=(("a", (("cpu", 1000.0),)),))
    ssn = opened(limited)
    plugin = ssn.hooks.plugin("nodegroup")
    mark, before = ssn.journal.mark(), plugin.allocated.array.tolist()
    ssn.statement().allocate([next(r for r, p in enumerate(ssn.tables.tasks.pods) if p and p.name == "w")], [0])
    assert plugin.allocated.array[0, 0] == 1000.0
    ssn.journal.rollback(mark)
    assert plugin.allocated.array.tolist() == before
