"""What node objects and the terms of a pod say of nodes: preferred node affinity, taints to avoid."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.model.node import Taint
from pumice.model.pod import NodeSelectorTerm, PreferredNodeTerm, Requirement, Toleration
from pumice.volcano.scorers.terms import scaled
from tests.unit.volcano.cluster import ZONE, node, pod
from tests.unit.volcano.scorers.scoring import scores


def preferred(weight: int, *requirements: Requirement) -> PreferredNodeTerm:
    return PreferredNodeTerm(weight, NodeSelectorTerm(requirements))


IN_X, HAS_SSD = Requirement(ZONE, "In", ("x",)), Requirement("disk", "In", ("ssd",))
ZONED = [node("x", labels={ZONE: "x"}), node("xs", labels={ZONE: "x", "disk": "ssd"}), node("none")]


@pytest.mark.parametrize(
    ("preferred", "candidates", "expected"),
    [
        pytest.param((), (), {"x": 0.0, "xs": 0.0, "none": 0.0}, id="no preferred term"),
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
    preferred: tuple[PreferredNodeTerm, ...], candidates: tuple[str, ...], expected: dict[str, float]
) -> None:
    assert scores(ZONED, [pod("p", node_preferred=preferred)], *candidates, nodeaffinity=1) == expected


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
    ("raw", "reverse", "expected"),
    [
        pytest.param([1, 2, 3], False, [33, 66, 100], id="floored"),
        pytest.param([1, 2, 3], True, [67, 34, 0], id="the rest of it"),
        pytest.param([0, 0], False, [0, 0], id="nothing preferred"),
        pytest.param([0, 0], True, [100, 100], id="nothing to avoid"),
        pytest.param([], True, [], id="no candidates"),
    ],
)
def test_raw_scores_are_scaled_by_the_largest(raw: list[int], reverse: bool, expected: list[int]) -> None:
    assert scaled(np.array(raw, dtype=np.int64), reverse=reverse).tolist() == expected
