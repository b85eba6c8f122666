"""predicates, what looks at other pods: host ports, inter-pod affinity, topology spread."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from pumice.model.pod import HostPort, LabelSelector, Pod, PodAffinityTerm, Requirement, TopologySpreadConstraint
from tests.unit.volcano import reference
from tests.unit.volcano.cluster import HOST, ZONE, Cluster, node, pod
from tests.unit.volcano.worlds import World, worlds

TAKEN = "node(s) didn't have free ports for the requested pod ports"
AFFINITY = "node(s) didn't match pod affinity rules"
ANTI = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
SKEWED = "node(s) didn't match pod topology spread constraints"
NO_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"

NODES = [node("x1", labels={ZONE: "x"}), node("x2", labels={ZONE: "x"}), node("y1", labels={ZONE: "y"}), node("bare")]


def app(name: str) -> LabelSelector:
    return LabelSelector((Requirement("app", "In", (name,)),))


def near(name: str, key: str = ZONE, **more: object) -> PodAffinityTerm:
    return PodAffinityTerm(key, app(name), **{"namespaces": ("ns",), **more})  # type: ignore[arg-type]


def keep(skew: int, key: str = ZONE, **more: object) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(skew, key, "DoNotSchedule", **{"selector": app("web"), **more})  # type: ignore[arg-type]


def web(name: str, on: str = "", **more: object) -> Pod:
    return pod(name, on, labels={"app": "web"}, **more)


def reasons(pods: list[Pod], pending: Pod, **arguments: bool) -> dict[str, str]:
    """One reason a node."""
    found = Cluster(NODES, [*pods, pending], "predicates", **arguments).reasons(pending.name)
    assert all(len(why) == 1 for why in found.values())
    return {name: why[0] for name, why in found.items()}


@pytest.mark.parametrize(
    ("held", "wanted", "clashes"),
    [
        pytest.param(HostPort(80), HostPort(80), True, id="same port"),
        pytest.param(HostPort(80), HostPort(81), False, id="another port"),
        pytest.param(HostPort(80), HostPort(80, "UDP"), False, id="another protocol"),
        pytest.param(HostPort(80, ip="10.0.0.1"), HostPort(80), True, id="every address wanted"),
        pytest.param(HostPort(80), HostPort(80, ip="10.0.0.1"), True, id="every address held"),
        pytest.param(HostPort(80, ip="10.0.0.1"), HostPort(80, ip="10.0.0.2"), False, id="another address"),
        pytest.param(HostPort(80, ip="10.0.0.1"), HostPort(80, ip="10.0.0.1"), True, id="same address"),
    ],
)
def test_ports(held: HostPort, wanted: HostPort, clashes: bool) -> None:
    found = reasons([pod("a", "x1", host_ports=(held,))], pod("p", host_ports=(wanted,)))
    assert found == ({"x1": TAKEN} if clashes else {})


@pytest.mark.parametrize(
    ("there", "pending", "expected"),
    [
        pytest.param(
            [],
            pod("p", pod_required=(near("web"),)),
            dict.fromkeys(("x1", "x2", "y1", "bare"), AFFINITY),
            id="nobody to be near",
        ),
        pytest.param(
            [web("a", "x1")],
            pod("p", pod_required=(near("web"),)),
            {"y1": AFFINITY, "bare": AFFINITY},
            id="near one in the zone",
        ),
        pytest.param(
            [],
            web("p", pod_required=(near("web"),)),
            {"bare": AFFINITY},
            id="the first of its kind: anywhere with a zone",
        ),
        pytest.param(
            [web("a", "bare")],
            web("p", pod_required=(near("web"),)),
            {"bare": AFFINITY},
            id="one of its kind, but in no zone",
        ),
        pytest.param(
            [web("a", "y1")],
            web("p", pod_required=(near("web"),)),
            {"x1": AFFINITY, "x2": AFFINITY, "bare": AFFINITY},
            id="not the first",
        ),
        pytest.param(
            [web("a", "x1", ns="other")],
            pod("p", pod_required=(near("web"),)),
            dict.fromkeys(("x1", "x2", "y1", "bare"), AFFINITY),
            id="a namespace that is not meant",
        ),
        pytest.param(
            [web("a", "x1", ns="other")],
            pod("p", pod_required=(near("web", namespaces=(), namespace_selector=LabelSelector()),)),
            {"y1": AFFINITY, "bare": AFFINITY},
            id="every namespace",
        ),
        pytest.param(
            [web("a", "x1"), pod("b", "y1", labels={"app": "db"})],
            pod("p", pod_required=(near("web"), near("db"))),
            dict.fromkeys(("x1", "x2", "y1", "bare"), AFFINITY),
            id="one pod must match all terms",
        ),
        pytest.param(
            [web("a", "x1")], pod("p", anti_required=(near("web"),)), {"x1": ANTI, "x2": ANTI}, id="apart by zone"
        ),
        pytest.param([web("a", "x1")], pod("p", anti_required=(near("web", HOST),)), {"x1": ANTI}, id="apart by host"),
        pytest.param([web("a", "bare")], pod("p", anti_required=(near("web"),)), {}, id="apart: no zone is no domain"),
        pytest.param(
            [pod("a", "x1", anti_required=(near("web"),))],
            web("p"),
            {"x1": EXISTING, "x2": EXISTING},
            id="the other wants to be apart",
        ),
        pytest.param([pod("a", "x1", anti_required=(near("db"),))], web("p"), {}, id="the other means somebody else"),
        pytest.param([pod("a", anti_required=(near("web"),))], web("p"), {}, id="the other is nowhere yet"),
        pytest.param(
            [web("a", "x1", anti_required=(near("web", HOST),))],
            web("p", anti_required=(near("web", HOST),)),
            {"x1": ANTI},
            id="own rule is said first",
        ),
        pytest.param(
            [web("a", "x1")],
            pod("p", anti_required=(PodAffinityTerm(ZONE, None, ("ns",)),)),
            {},
            id="no selector means nobody",
        ),
    ],
)
def test_inter_pod(there: list[Pod], pending: Pod, expected: dict[str, str]) -> None:
    assert reasons(there, pending) == expected


@pytest.mark.parametrize(
    ("there", "constraint", "expected"),
    [
        pytest.param([], keep(1), {"bare": NO_LABEL}, id="empty"),
        pytest.param(["x1"], keep(1), {"x1": SKEWED, "x2": SKEWED, "bare": NO_LABEL}, id="one ahead"),
        pytest.param(["x1"], keep(2), {"bare": NO_LABEL}, id="one ahead is allowed"),
        pytest.param(["x1", "y1"], keep(1), {"bare": NO_LABEL}, id="level"),
        pytest.param(["bare"], keep(1), {"bare": NO_LABEL}, id="who is in no zone does not count"),
        pytest.param(
            ["x1", "y1"],
            keep(1, min_domains=3),
            {"x1": SKEWED, "x2": SKEWED, "y1": SKEWED, "bare": NO_LABEL},
            id="too few domains: least is 0",
        ),
        pytest.param(["x1", "x2", "y1"], keep(1, HOST), {"x1": SKEWED, "x2": SKEWED, "y1": SKEWED}, id="by host"),
        pytest.param(
            ["x1"], keep(1, selector=LabelSelector()), {"bare": NO_LABEL}, id="an empty selector counts nobody"
        ),
        pytest.param(["x1"], keep(1, selector=None), {"bare": NO_LABEL}, id="no selector counts nobody"),
    ],
)
def test_spread(there: list[str], constraint: TopologySpreadConstraint, expected: dict[str, str]) -> None:
    pods = [web(f"w{i}", on) for i, on in enumerate(there)]
    assert reasons(pods, web("p", spread=(constraint,))) == expected


def test_spread_may_honour_the_node_selector() -> None:
    there = [web("a", "x1"), web("b", "x2")]
    picky = {"spread": (keep(2, HOST),), "node_selector": ((ZONE, "x"),)}
    elsewhere = "node(s) didn't match Pod's node affinity/selector"
    assert reasons(there, web("p", **picky)) == {"y1": elsewhere, "bare": elsewhere}
    ignoring = {**picky, "spread": (keep(1, HOST, node_affinity_policy="Ignore"),)}
    found = Cluster(NODES, [*there, web("p", **ignoring)], "predicates").reasons("p")
    assert found["x1"] == [SKEWED], "the empty nodes outside count too"


def test_those_that_leave_do_not_count_in_a_spread() -> None:
    assert reasons([web("a", "x1", deletion=1.0)], web("p", spread=(keep(1),))) == {"bare": NO_LABEL}


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
    said = {p.name: pod_filters(cluster.task(p.name), cluster.rows()) is not None for p in pods}
    assert said == {"meant": True, "equal": True, "other": False, "apart": True}


def test_the_view_follows_placements_and_rollbacks() -> None:
    pods = [web(name, anti_required=(near("web", HOST),)) for name in "abp"]
    cluster = Cluster(NODES, pods, "predicates")
    before = cluster.tables.nodes.view.copy()
    stmt = cluster.ssn.statement()
    with stmt.trial():
        stmt.allocate([cluster.row_of["a"], cluster.row_of["b"]], [cluster.node_of["x1"], cluster.node_of["y1"]])
        assert cluster.reasons("p") == {"x1": [ANTI], "y1": [ANTI]}
        assert cluster.rows().view_pods.tolist() == [float(n in ("x1", "y1")) for n in cluster.names]
    assert cluster.reasons("p") == {}
    assert (cluster.tables.nodes.view == before).all()
    stmt.discard()


def test_a_victim_leaves_the_view_at_once() -> None:
    cluster = Cluster(NODES, [web("a", "x1"), web("p", anti_required=(near("web", HOST),))], "predicates")
    stmt = cluster.ssn.statement()
    stmt.evict([cluster.row_of["a"]], "make room")
    assert cluster.reasons("p") == {}
    assert not cluster.tables.nodes.view.any()
    stmt.discard()
    assert cluster.reasons("p") == {"x1": [ANTI]}


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
