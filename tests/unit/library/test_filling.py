"""Fills from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import pumice

NODES = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(f"n{i},64000,262144,4,T4\n" for i in range(3))
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n" + "".join(
    f"p{i},1000,1024,1,{500 if i % 2 else 1000},\n" for i in range(10)
)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    (tmp_path / "openb_pod_list_default.csv").write_text(PODS)
    (tmp_path / "openb_node_list_gpu_node.csv").write_text(NODES)
    return tmp_path


def test_a_fill_is_a_row_for_each_policy(trace: Path) -> None:
    found = pumice.fill(trace, ["bestfit", "packing"], repeats=2)
    assert found.policies["policy"] == ["bestfit", "packing"]
    assert found.policies["published"] == [None, None] and found.policies["within"] == [False, False]
    first = found.to_dict()["policies"][0]
    assert first["allocation"]["mean"] == found.policies["allocated"][0]
    assert first["fragments"][100] == found.policies["fragments"][0]
    assert found.policies["published_fragments"] == [None, None]
    assert "3 nodes, 12 GPUs, 2 fills a policy" in repr(found)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"policies": ["fdg"]}, "policies: found 'fdg', wanted some of"),
        ({"repeats": 0}, "repeats: found 0, wanted 1 to 1,000"),
        ({"expected": "nowhere"}, "nowhere"),
    ],
)
def test_wrong_arguments_are_named(trace: Path, arguments: dict[str, object], said: str) -> None:
    with pytest.raises(pumice.InputError, match=said):
        pumice.fill(trace, **arguments)  # type: ignore[arg-type]
    with pytest.raises(pumice.InputError, match="no such file or folder"):
        pumice.fill(trace / "none")
