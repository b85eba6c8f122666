"""predicates, what looks at other pods: its filters together. Each by itself: ``placing/filters``."""

from __future__ import annotations

from hypothesis import given, settings

from pumice.model.pod import HostPort
from tests.unit.volcano import reference
from tests.unit.volcano.cluster import HOST, Cluster, pod
from tests.unit.volcano.pods import NODES, keep, near, reasons, web
from tests.unit.volcano.worlds import World, worlds

TAKEN = "node(s) didn't have free ports for the requested pod ports"
AFFINITY = "node(s) didn't match pod affinity rules"
ANTI = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
SKEWED = "node(s) didn't match pod topology spread constraints"
NO_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"


def test_reasons_are_gathered_until_one_that_no_eviction_mends() -> None:
    there = [web("a", "x1", host_ports=(HostPort(80),))]
    pending = web("p", host_ports=(HostPort(80),), anti_required=(near("web"),), spread=(keep(1),))
    found = Cluster(NODES, [*there, pending], "predicates").reasons("p")
    assert found == {"x1": [TAKEN, ANTI, SKEWED], "x2": [ANTI, SKEWED], "bare": [NO_LABEL]}
    alone = web("p", host_ports=(HostPort(80),), pod_required=(near("db"),), spread=(keep(1),))
    assert Cluster(NODES, [*there, alone], "predicates").reasons("p")["x1"] == [TAKEN, AFFINITY]


def test_filters_can_be_turned_off() -> None:
    there = [web("a", "x1", host_ports=(HostPort(80),), anti_required=(near("web"),))]
    pending = web("p", host_ports=(HostPort(80),), anti_required=(near("web"),), spread=(keep(1),))
    names = ("NodePorts", "PodAffinity", "PodTopologySpread")
    assert reasons(there, pending, **{f"predicate.{name}Enable": False for name in names}) == {}


def test_most_classes_have_nothing_to_say() -> None:
    """None: a gang of them may be placed in one go. One class has another wanting to be apart from one of its pods."""
    pods = [web("meant"), pod("equal"), pod("other", cpu=1.0), pod("apart", anti_required=(near("web"),))]
    cluster = Cluster(NODES, pods, "predicates")
    pod_filters = cluster.plugin("predicates").pod_filters
    said = {p.name: pod_filters(cluster.task(p.name).cls) is not None for p in pods}
    assert said == {"meant": True, "equal": True, "other": False, "apart": True}


def test_simulation_looks_at_inter_pod_terms_only() -> None:
    a = web("a", "x1", host_ports=(HostPort(80),))
    cluster = Cluster(
        NODES, [a, web("p", anti_required=(near("web", HOST),), host_ports=(HostPort(80),))], "predicates"
    )
    plugin = cluster.plugin("predicates")
    task, victim, (on,) = cluster.task("p"), cluster.task("a"), list(cluster.rows("x1"))
    stmt = cluster.ssn.statement()
    with stmt.trial():
        assert plugin.simulate_predicate(task, on).reason == ANTI
        assert plugin.simulate_remove(task, victim, on) is None
        assert plugin.simulate_predicate(task, on) is None
        assert plugin.simulate_add(task, victim, on) is None
        assert plugin.simulate_predicate(task, on).reason == ANTI
        plugin.simulate_remove(task, victim, on)
    assert plugin.simulate_predicate(task, on).reason == ANTI
    stmt.discard()


@settings(max_examples=200, deadline=None)
@given(worlds())
def test_as_kube_scheduler_one_node_at_a_time(world: World) -> None:
    cluster = Cluster(
        world.nodes,
        world.pods,
        "predicates",
        **{"predicate.NodeAffinityEnable": False, "predicate.TaintTolerationEnable": False},
    )
    name = world.pending.name
    expected = {n.name: reference.pod_reasons(world.pending, n, world.nodes, world.placed) for n in world.nodes}
    assert cluster.reasons(name) == {n: why for n, why in expected.items() if why}
    assert cluster.reasons(name) == {n: w for each in cluster.names for n, w in cluster.reasons(name, each).items()}
