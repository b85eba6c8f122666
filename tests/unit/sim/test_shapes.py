"""``--nodes`` text: what it means, and what is said when it means nothing."""

from __future__ import annotations

import pytest

from pumice.sim.traces.shapes import Shapes, parse_nodes
from pumice.sim.traces.trace import TraceError

GI = 2**30


def test_amounts_by_name() -> None:
    nodes = parse_nodes("125:cpu=32,memory=256Gi,gpu=4")
    assert len(nodes) == 125
    room = nodes[124].allocatable
    assert (room.milli_cpu, room.memory, room.get("nvidia.com/gpu"), room.get("pods")) == (32_000, 256 * GI, 4000, 110)
    assert room.max_task_num == 110
    assert nodes[124].name == "node-00124"
    assert nodes[124].labels["kubernetes.io/hostname"] == "node-00124"


def test_short_form_groups_and_full_names() -> None:
    nodes = parse_nodes("2x4gpu; 1:cpu=500m,memory=1Gi,example.com/tpu=3,pods=7")
    assert [n.name for n in nodes] == ["node-00000", "node-00001", "node-00002"]
    assert nodes[0].allocatable.get("nvidia.com/gpu") == 4000
    assert nodes[2].allocatable.milli_cpu == 500
    assert nodes[2].allocatable.get("example.com/tpu") == 3000
    assert nodes[2].allocatable.max_task_num == 7


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "found '', wanted COUNT:cpu=32"),
        ("125", "found '125', wanted COUNT:cpu=32"),
        ("5:", "found '5:', wanted COUNT:cpu=32"),
        ("0:cpu=1", "found a count of '0', wanted 1 to 100,000"),
        ("-3:cpu=1", "found a count of '-3', wanted 1 to 100,000"),
        ("many:cpu=1", "found a count of 'many', wanted 1 to 100,000"),
        ("1000000000000:cpu=1", "found a count of '1000000000000', wanted 1 to 100,000"),
        ("99999x1gpu;99999x1gpu", "found more than 100,000 nodes"),
        ("5:gpus=4", "found 'gpus=4' (did you mean 'gpu'?), wanted cpu="),
        ("5:cpu", "found 'cpu', wanted cpu="),
        ("5:cpu=1,cpu=2", "found 'cpu' twice"),
        ("5:cpu=lots", "cpu: 'lots' is not a quantity"),
        ("5:cpu=-4", "found a negative amount"),
        ("5:memory=1e40", "memory:"),
    ],
)
def test_what_means_nothing_is_named(text: str, why: str) -> None:
    with pytest.raises(TraceError) as error:
        parse_nodes(text)
    assert why in str(error.value)


def test_equal_shapes_are_one_spec() -> None:
    shapes = Shapes()
    one = shapes.pod(4000, GI, 1)
    assert shapes.pod(4000.0, GI, 1) is one
    assert shapes.pod(4000, GI, 2) is not one
    assert (one.request.get("nvidia.com/gpu"), one.request.get("pods")) == (1000, 1)
    assert shapes.pod(4000, GI, 1, ("A10",)).affinity.node_required is not None
