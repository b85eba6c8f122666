"""Images that a node has: their size, spread over nodes, from 23 MiB to 1000 MiB a container."""

from __future__ import annotations

import pytest

from pumice.model.node import NodeImage
from pumice.volcano.scorers.images import full_name
from tests.unit.volcano.cluster import node, pod
from tests.unit.volcano.scorers.scoring import scores

MIB = 1024.0**2


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


@pytest.mark.parametrize(
    ("written", "full"),
    [
        ("a", "a:latest"),
        ("a:1", "a:1"),
        ("host:5000/a", "host:5000/a:latest"),
        ("host:5000/a:1", "host:5000/a:1"),
        ("a@sha256:1", "a@sha256:1"),
    ],
)
def test_a_name_without_a_tag_is_the_latest(written: str, full: str) -> None:
    assert full_name(written) == full
