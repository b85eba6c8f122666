"""The store: what it makes of events, one by one and many at once. (At random: tests/properties/test_store.py.)"""

from __future__ import annotations

import pytest

from pumice.columns.tables import Tables
from pumice.model.decisions import Writes
from pumice.model.devices.claims import ResourceClaim, ResourceClaimTemplate
from pumice.model.disruption import PodDisruptionBudget
from pumice.model.events import Gone, PodsGone, PodsSeen, Seen
from pumice.model.pod import Pod
from pumice.model.status import TaskStatus
from pumice.model.usage import NodeUsage
from pumice.testing.build import budget, cluster, node, pod, podgroup
from pumice.testing.devices import claim, claim_template
from tests.properties.named import disagreements, named


def state_of(tables: Tables, name: str) -> tuple[str, str, str]:
    """Status, node and nominated node of a pod."""
    tasks, names = tables.tasks, tables.nodes.facts.names
    row = next(row for row in tasks.alive.nonzero()[0].tolist() if tasks.pods[row].name == name)
    where = [names[at] if at >= 0 else "" for at in (tasks.node[row], tasks.nominated[row])]
    return TaskStatus(int(tasks.status[row])).label, where[0], where[1]


@pytest.mark.parametrize("count", [1, 2], ids=["alone", "with its equal"])
@pytest.mark.parametrize(
    ("same", "state"),
    [
        pytest.param({}, ("Pending", "", ""), id="waits"),
        pytest.param({"on": "n1"}, ("Running", "n1", ""), id="runs"),
        pytest.param({"on": "n1", "phase": "Pending"}, ("Bound", "n1", ""), id="is bound"),
        pytest.param({"on": "n1", "phase": "Succeeded"}, ("Succeeded", "", ""), id="has ended, and left its node"),
        pytest.param({"on": "n1", "deletion": 1.0}, ("Releasing", "n1", ""), id="leaves"),
        pytest.param({"on": "gone"}, ("Running", "", ""), id="runs where nobody knows"),
        pytest.param({"nominated_node": "n1"}, ("Pending", "", "n1"), id="waits for a node"),
        pytest.param({"nominated_node": "gone"}, ("Pending", "", ""), id="waits for a node that is not there"),
    ],
)
@pytest.mark.parametrize("first", ["nodes first", "pods first"])
def test_a_pod_that_comes_is_in_the_state_it_says(
    same: dict[str, str], state: tuple[str, str, str], count: int, first: str
) -> None:
    machines, members = [node("n0"), node("n1")], [pod(f"p{i}", "g", **same) for i in range(count)]
    together = [machines, members] if first == "nodes first" else [members, machines]
    tables = cluster(podgroup("g"), *together).snapshot().tables
    assert [state_of(tables, f"p{i}") for i in range(count)] == [state] * count


def test_events_of_several_pods_together_are_applied_one_by_one() -> None:
    """Those of other schedulers count once they are on a node, and as long as they are known."""
    one, many = (cluster(podgroup("g"), node("n1"), pod("p0", "g")) for _ in range(2))
    came = [
        pod("p0", "g", on="n1"),
        pod("p1", "g"),
        pod("o0", scheduler_name="other"),
        pod("o1", on="n1", scheduler_name="other"),
    ]
    for pods, gone in (
        (came, ["p1", "nobody"]),
        ([pod("o1", scheduler_name="other"), pod("p1", "g")], ["o1", "p1", "p0"]),
    ):
        keys = tuple(pod(name).key for name in gone)
        one.apply_all([*map(Seen, pods), *(Gone(Pod, key) for key in keys)])
        many.apply_all([PodsSeen({each.key: each for each in pods}), PodsGone(keys)])
        assert disagreements(named(many), named(one)) == []
        assert many.snapshot().tables.tasks.alive.sum() == one.snapshot().tables.tasks.alive.sum()


# -- budgets, claims and notes


def test_budgets_come_change_and_go() -> None:
    store = cluster(budget("b", {"app": "web"}, 1), budget("a", {"app": "web"}, 2))
    before = store.snapshot().tables.budgets
    assert [(each.name, each.allowed) for each in before.objs] == [("a", 2), ("b", 1)]
    store.apply(Seen(budget("b", {"app": "web"}, 1)))
    assert store.snapshot().tables.budgets is before, "the same again changes nothing"
    store.apply(Seen(budget("b", {"app": "web"}, 0)))
    store.apply(Gone(PodDisruptionBudget, "ns/a"))
    assert [(each.name, each.allowed) for each in store.snapshot().tables.budgets.objs] == [("b", 0)]


def test_a_template_and_a_claim_of_one_name_are_two() -> None:
    store = cluster(claim("x", gpu=1), claim_template("x", gpu=1))
    assert [each.key for each in store.snapshot().tables.claims.objs] == ["ns/template/x", "ns/x"]
    store.apply(Gone(ResourceClaimTemplate, "ns/x"))
    assert [each.key for each in store.snapshot().tables.claims.objs] == ["ns/x"]
    store.apply(Gone(ResourceClaim, "ns/x"))
    assert len(store.snapshot().tables.claims.objs) == 0


def test_what_plugins_noted_is_in_every_snapshot_from_then_on() -> None:
    store = cluster(node("n"))
    before = store.snapshot()
    store.remember(Writes(notes={"a.x": 1.0, "b.y": 2.0}))
    store.remember(Writes(notes={"a.x": 3.0}))
    assert (before.notes, store.snapshot().notes) == ({}, {"a.x": 3.0, "b.y": 2.0})


def test_what_nodes_really_use_comes_changes_and_goes() -> None:
    store = cluster(NodeUsage("b", 90.0, 5.0, 7.0), NodeUsage("a", 10.0, 20.0, 7.0))
    before = store.snapshot().tables.usages
    assert before.objs == [NodeUsage("a", 10.0, 20.0, 7.0), NodeUsage("b", 90.0, 5.0, 7.0)]
    store.apply(Seen(NodeUsage("b", 90.0, 5.0, 7.0)))
    assert store.snapshot().tables.usages is before, "the same again changes nothing"
    store.apply(Gone(NodeUsage, "b"))
    assert [each.name for each in store.snapshot().tables.usages.objs] == ["a"]
