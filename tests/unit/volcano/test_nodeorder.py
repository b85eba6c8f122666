"""nodeorder: each score by itself as a table, then all of them against kube-scheduler's integer arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.columns.placement import Placement
from pumice.columns.rows import NodeRows
from pumice.columns.runs import TaskRun
from pumice.framework.filters.wishes import HARD_POD_AFFINITY_WEIGHT
from pumice.model.node import Node, NodeImage, Taint
from pumice.model.pod import (
    LabelSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinityTerm,
    PreferredNodeTerm,
    Requirement,
    Toleration,
    TopologySpreadConstraint,
)
from tests.unit.volcano import reference
from tests.unit.volcano.cluster import GIB, HOST, ZONE, Cluster, node, pod
from tests.unit.volcano.worlds import World, worlds

GPU = "nvidia.com/gpu"
MIB = 1024.0**2
WEIGHTS = (
    "leastrequested",
    "mostrequested",
    "balancedresource",
    "nodeaffinity",
    "podaffinity",
    "tainttoleration",
    "imagelocality",
    "podtopologyspread",
)


def only(**weights: int) -> dict[str, int]:
    """Arguments with all other scores off."""
    return {f"{name}.weight": weights.get(name, 0) for name in WEIGHTS}


def scores(nodes: list[Node], pods: list[Pod], *candidates: str, **weights: int) -> dict[str, float]:
    """Scores for the last pod."""
    return Cluster(nodes, pods, "nodeorder", **only(**weights)).scores(pods[-1].name, *candidates)


def app(name: str) -> LabelSelector:
    return LabelSelector((Requirement("app", "In", (name,)),))


# -- how full a node would be

SMALL, LARGE = node("small", 2000.0, 4 * GIB), node("large", 4000.0, 8 * GIB)


@pytest.mark.parametrize(
    ("weights", "asked", "expected"),
    [
        pytest.param(
            {"leastrequested": 1},
            {"cpu": 1000.0, "memory": GIB},
            {"small": 62.0, "large": 81.0},
            id="least: floors twice",
        ),
        pytest.param(
            {"leastrequested": 1},
            {"cpu": 3000.0, "memory": GIB},
            {"small": 37.0, "large": 56.0},
            id="least: too much is 0",
        ),
        pytest.param(
            {"leastrequested": 1}, {"cpu": 0.0, "memory": 0.0}, {"small": 95.0, "large": 97.0}, id="least: defaults"
        ),
        pytest.param({"mostrequested": 1}, {"cpu": 1000.0, "memory": GIB}, {"small": 37.0, "large": 18.0}, id="most"),
        pytest.param(
            {"mostrequested": 1}, {"cpu": 3000.0, "memory": GIB}, {"small": 62.0, "large": 43.0}, id="most: at most 100"
        ),
        pytest.param(
            {"balancedresource": 1}, {"cpu": 1000.0, "memory": GIB}, {"small": 68.0, "large": 71.0}, id="balanced"
        ),
        pytest.param(
            {"balancedresource": 1}, {"cpu": 1000.0, "memory": 2 * GIB}, {"small": 75.0, "large": 75.0}, id="level"
        ),
        pytest.param(
            {"balancedresource": 1},
            {"cpu": 0.0, "memory": 0.0},
            {"small": 0.0, "large": 0.0},
            id="best effort: no balance",
        ),
        pytest.param({"leastrequested": 2, "balancedresource": 10}, {}, {"small": 804.0, "large": 872.0}, id="weights"),
        pytest.param({}, {}, {"small": 0.0, "large": 0.0}, id="everything off"),
    ],
)
def test_allocation(weights: dict[str, int], asked: dict[str, float], expected: dict[str, float]) -> None:
    assert scores([SMALL, LARGE], [pod("p", **asked)], **weights) == expected


def test_gpus_count_in_the_balance_when_asked_for() -> None:
    nodes = [node("with", 8000.0, 8 * GIB, scalars={GPU: 8000.0}), node("without", 8000.0, 8 * GIB)]
    asked = {"cpu": 2000.0, "memory": 2 * GIB, "scalars": {GPU: 4000.0}}
    assert scores(nodes, [pod("p", **asked)], balancedresource=1) == {"with": 69.0, "without": 75.0}
    assert scores(nodes, [pod("p", cpu=2000.0, memory=2 * GIB)], balancedresource=1) == {"with": 75.0, "without": 75.0}


AMOUNTS = st.sampled_from([0, 1, 3, 100, 250, 333, 1000, 2000, 3999, 4000, 64000])
BYTES = st.sampled_from([0, 1, 10**9, 2**30, 2**31 - 1, 3 * 2**30 + 7, 2**36, 2**45 - 1])
GPUS = st.sampled_from([0, 0, 1000, 3000, 8000])
ASKED = st.tuples(AMOUNTS, BYTES, GPUS)


@given(
    st.lists(st.tuples(AMOUNTS, BYTES, GPUS), min_size=1, max_size=4),
    st.lists(st.tuples(ASKED, st.integers(0, 3)), max_size=4),
    ASKED,
    st.tuples(*[st.integers(0, 3)] * 3),
    st.integers(0, 3),
)
def test_allocation_is_exact(
    sizes: list[tuple[int, int, int]],
    there: list[tuple[tuple[int, int, int], int]],
    asked: tuple[int, int, int],
    weights: tuple[int, int, int],
    ahead: int,
) -> None:
    """Against integers; any rows together, one by one, and as they would be after more pods of the class."""
    nodes = [node(f"n{i}", float(c), float(m), scalars={GPU: float(g)}) for i, (c, m, g) in enumerate(sizes)]

    def one(name: str, want: tuple[int, int, int], on: str = "") -> Pod:
        return pod(name, on, cpu=float(want[0]), memory=float(want[1]), scalars={GPU: float(want[2])})

    placed = [one(f"t{k}", want, f"n{i % len(nodes)}") for k, (want, i) in enumerate(there)]
    arguments = only(leastrequested=weights[0], mostrequested=weights[1], balancedresource=weights[2])
    pending = [one(f"p{k}", asked) for k in range(ahead + 1)]
    cluster = Cluster(nodes, [*placed, *pending], "nodeorder", "predicates", **arguments)

    def nonzero(want: tuple[int, int, int]) -> list[int]:
        return [want[0] or 100, want[1] or 200 * 2**20]

    expected = []
    for i, room in enumerate(sizes):
        here = [want for want, k in there if k % len(nodes) == i] + [asked] * ahead
        filled = [sum(nonzero(w)[d] for w in here) for d in range(2)]
        held = [sum(w[d] for w in here) for d in range(3)]
        expected.append(
            weights[0] * reference.least_allocated(nonzero(asked), filled, list(room[:2]))
            + weights[1] * reference.most_allocated(nonzero(asked), filled, list(room[:2]))
            + weights[2] * reference.balanced(list(asked), held, list(room))
        )
    cls, rows = cluster.task("p0").cls, cluster.rows(*(f"n{i}" for i in range(len(nodes)))).rows
    room_of = cluster.plugin("nodeorder").room
    virtual = NodeRows(cluster.tables, rows, after=np.full(len(rows), float(ahead)), cls=cls.row)
    assert room_of(cls, virtual).tolist() == expected
    view = cluster.plugin("predicates")
    for k in range(1, ahead + 1):
        for i in range(len(nodes)):
            row = cluster.row_of[f"p{k}"]
            view.on_allocate(TaskRun(cluster.tables, Placement([row], [int(rows[i])])))
            # the same pod on every node, so that each has as many more
            cluster.ssn.journal.put(cluster.tables.tasks["view_node"], row, -1)
    assert room_of(cls, NodeRows(cluster.tables, rows)).tolist() == expected
    one_by_one = [room_of(cls, NodeRows(cluster.tables, rows[i : i + 1])).tolist() for i in range(len(rows))]
    assert one_by_one == [[e] for e in expected]


# -- what node objects say


def preferred(weight: int, *requirements: Requirement) -> PreferredNodeTerm:
    return PreferredNodeTerm(weight, NodeSelectorTerm(requirements))


IN_X, HAS_SSD = Requirement(ZONE, "In", ("x",)), Requirement("disk", "In", ("ssd",))
ZONED = [node("x", labels={ZONE: "x"}), node("xs", labels={ZONE: "x", "disk": "ssd"}), node("none")]


@pytest.mark.parametrize(
    ("wishes", "candidates", "expected"),
    [
        pytest.param((), (), {"x": 0.0, "xs": 0.0, "none": 0.0}, id="no wish"),
        pytest.param((preferred(7, IN_X),), (), {"x": 100.0, "xs": 100.0, "none": 0.0}, id="the best get 100"),
        pytest.param(
            (preferred(1, IN_X), preferred(2, HAS_SSD)), (), {"x": 33.0, "xs": 100.0, "none": 0.0}, id="weights add up"
        ),
        pytest.param(
            (preferred(1, IN_X), preferred(2, HAS_SSD)), ("x", "none"), {"x": 100.0, "none": 0.0}, id="among candidates"
        ),
        pytest.param((preferred(5),), (), {"x": 0.0, "xs": 0.0, "none": 0.0}, id="an empty term matches nothing"),
    ],
)
def test_node_affinity(
    wishes: tuple[PreferredNodeTerm, ...], candidates: tuple[str, ...], expected: dict[str, float]
) -> None:
    assert scores(ZONED, [pod("p", node_preferred=wishes)], *candidates, nodeaffinity=1) == expected


AVOID = [Taint("a", "1", "PreferNoSchedule"), Taint("b", "1", "PreferNoSchedule"), Taint("c", "1", "NoSchedule")]
TAINTED = [node("two", taints=AVOID), node("one", taints=AVOID[:1]), node("clean")]


@pytest.mark.parametrize(
    ("tolerations", "candidates", "expected"),
    [
        pytest.param((), (), {"two": 0.0, "one": 50.0, "clean": 100.0}, id="fewer are better"),
        pytest.param((), ("one", "clean"), {"one": 0.0, "clean": 100.0}, id="among candidates"),
        pytest.param((Toleration("a", "Exists"),), (), {"two": 0.0, "one": 100.0, "clean": 100.0}, id="tolerated"),
        pytest.param(
            (Toleration("a", "Exists", effect="NoSchedule"),),
            (),
            {"two": 0.0, "one": 50.0, "clean": 100.0},
            id="another effect",
        ),
        pytest.param(
            (Toleration(operator="Exists"),), (), {"two": 100.0, "one": 100.0, "clean": 100.0}, id="all of them"
        ),
    ],
)
def test_taints(tolerations: tuple[Toleration, ...], candidates: tuple[str, ...], expected: dict[str, float]) -> None:
    assert scores(TAINTED, [pod("p", tolerations=tolerations)], *candidates, tainttoleration=1) == expected


@pytest.mark.parametrize(
    ("images", "containers", "expected"),
    [
        pytest.param(("big",), 1, {"a": 48.0, "b": 48.0, "c": 0.0}, id="spread over two of three nodes"),
        pytest.param(("registry:5000/small",), 1, {"a": 0.0, "b": 0.0, "c": 0.0}, id="below 23 MiB"),
        pytest.param(("big", "big"), 2, {"a": 49.0, "b": 49.0, "c": 0.0}, id="two containers"),
        pytest.param(("huge:1",), 1, {"a": 0.0, "b": 0.0, "c": 100.0}, id="at most 100"),
        pytest.param(("huge",), 1, {"a": 0.0, "b": 0.0, "c": 0.0}, id="another tag"),
        pytest.param((), 1, {"a": 0.0, "b": 0.0, "c": 0.0}, id="none"),
    ],
)
def test_images(images: tuple[str, ...], containers: int, expected: dict[str, float]) -> None:
    big = NodeImage(("big:latest", "big@sha256:1"), int(750 * MIB))
    small = NodeImage(("registry:5000/small:latest",), int(20 * MIB))
    nodes = [
        node("a", images=[big]),
        node("b", images=[big, small]),
        node("c", images=[NodeImage(("huge:1",), int(9000 * MIB))]),
    ]
    assert scores(nodes, [pod("p", images=images, container_count=containers)], imagelocality=1) == expected


def test_without_wishes_the_answer_is_one_number() -> None:
    """So a gang may be placed in one go; None when there is nothing to score."""
    for arguments, expected in ((only(tainttoleration=3, podaffinity=2), 300.0), (only(leastrequested=1), None)):
        cluster = Cluster([node("n"), node("m")], [pod("p")], "nodeorder", **arguments)
        among_candidates = cluster.plugin("nodeorder").among_candidates
        assert among_candidates(cluster.task("p"), cluster.rows()) == expected


# -- what other pods say

PLACES = [node("x1", labels={ZONE: "x"}), node("x2", labels={ZONE: "x"}), node("y1", labels={ZONE: "y"}), node("bare")]


def near(name: str, weight: int, key: str = ZONE) -> PodAffinityTerm:
    return PodAffinityTerm(key, app(name), ("ns",), weight=weight)


def web(name: str, on: str = "", **more: Any) -> Pod:
    return pod(name, on, labels={"app": "web"}, **more)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([web("a", "x1"), pod("p")], (0, 0, 0, 0), id="no wish"),
        pytest.param([web("a", "x1"), pod("p", pod_preferred=(near("web", 5),))], (100, 100, 0, 0), id="near"),
        pytest.param([web("a", "x1"), pod("p", anti_preferred=(near("web", 5),))], (0, 0, 100, 100), id="apart"),
        pytest.param(
            [web("a", "x1"), pod("p", pod_preferred=(near("web", 9),), anti_preferred=(near("web", 3, HOST),))],
            (66, 100, 0, 0),
            id="both",
        ),
        pytest.param(
            [web("a", "x1"), web("b", "y1"), web("c", "y1"), pod("p", pod_preferred=(near("web", 5),))],
            (50, 50, 100, 0),
            id="more",
        ),
        pytest.param(
            [pod("a", "x1", pod_preferred=(near("web", 5),)), web("p")], (100, 100, 0, 0), id="wished by the other"
        ),
        pytest.param(
            [pod("a", "x1", anti_preferred=(near("web", 5),)), web("p")], (0, 0, 100, 100), id="unwished by the other"
        ),
        pytest.param(
            [pod("a", "x1", pod_required=(near("web", 0),)), web("p")],
            (100 * HARD_POD_AFFINITY_WEIGHT,) * 2 + (0, 0),
            id="needed by the other",
        ),
        pytest.param(
            [
                pod("a", "x1", pod_preferred=(near("web", 5),) * 2),
                pod("b", "y1", pod_preferred=(near("web", 5),)),
                web("p"),
            ],
            (100, 100, 50, 0),
            id="a wish said twice counts twice",
        ),
        pytest.param(
            [web("a", "bare"), pod("p", pod_preferred=(near("web", 5),))], (0, 0, 0, 0), id="nobody in a zone"
        ),
    ],
)
def test_inter_pod(pods: list[Pod], expected: tuple[int, ...]) -> None:
    assert tuple(scores(PLACES, pods, podaffinity=1)[n.name] for n in PLACES) == expected


def keep(skew: int, key: str = ZONE, **more: Any) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(skew, key, "ScheduleAnyway", **{"selector": app("web"), **more})


@pytest.mark.parametrize(
    ("there", "constraints", "expected"),
    [
        pytest.param([], (keep(1),), (100, 100, 100, 0), id="nobody there; no label is 0"),
        pytest.param(["x1"], (keep(1),), (0, 0, 100, 0), id="the emptier zone"),
        pytest.param(["x1", "x2", "y1"], (keep(1),), (33, 33, 100, 0), id="in proportion"),
        pytest.param(["x1"], (keep(1, HOST),), (0, 100, 100, 100), id="by host"),
        pytest.param(["x1"], (keep(1), keep(1, HOST)), (0, 66, 100, 0), id="both"),
        pytest.param(["x1"], (keep(4),), (75, 75, 100, 0), id="a larger skew makes it matter less"),
        pytest.param(
            ["x1"], (keep(1, selector=LabelSelector()),), (100, 100, 100, 0), id="an empty selector counts nobody"
        ),
    ],
)
def test_spread(there: list[str], constraints: tuple[TopologySpreadConstraint, ...], expected: tuple[int, ...]) -> None:
    pods = [web(f"w{i}", on) for i, on in enumerate(there)] + [web("p", spread=constraints)]
    assert tuple(scores(PLACES, pods, podtopologyspread=1)[n.name] for n in PLACES) == expected


@settings(max_examples=200, deadline=None)
@given(worlds(), st.data())
def test_as_kube_scheduler(world: World, data: st.DataObject) -> None:
    """Over any candidates, with weights that keep the scores apart."""
    candidates = data.draw(st.lists(st.sampled_from(world.nodes), min_size=1, unique_by=lambda n: n.name))
    arguments = only(tainttoleration=1, podaffinity=1000, podtopologyspread=1000_000)
    cluster = Cluster(world.nodes, world.pods, "nodeorder", **arguments)
    parts = zip(
        reference.taint_scores(world.pending, candidates),
        reference.inter_pod_scores(world.pending, candidates, world.placed, HARD_POD_AFFINITY_WEIGHT),
        reference.spread_scores(world.pending, candidates, world.nodes, world.placed),
        strict=True,
    )
    expected = {n.name: t + 1000 * p + 1000_000 * s for n, (t, p, s) in zip(candidates, parts, strict=True)}
    assert cluster.scores(world.pending.name, *expected) == expected
