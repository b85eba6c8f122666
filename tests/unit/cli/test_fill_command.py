"""`pumice fill`: the table, JSON and the page; what cannot be read is named, and the rest is filled."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.sim.traces.fill_published import ALLOCATION
from tests.unit.cli.kit import run

PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    pods = [f"p{i},4000,1024,1,{600 if i % 2 else 1000},{'T4' if i % 3 else ''},,,0,1,0" for i in range(8)]
    (tmp_path / "openb_pod_list_default.csv").write_text(PODS + "\n".join(pods) + "\n")
    nodes = [f"n{i},32000,65536,2,{'P100' if i % 3 else 'T4'}" for i in range(30)]
    (tmp_path / "openb_node_list_gpu_node.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\n" + "\n".join(nodes))
    (tmp_path / "openb_node_list_all_node.csv").write_text(
        "sn,cpu_milli,memory_mib,gpu,model\nd,1000,1,0,\n" + nodes[0]
    )
    curve = ",".join(["0"] * 131)
    (tmp_path / ALLOCATION).write_text(
        f"workload,sc_policy,tune,seed,total_gpus,{','.join(map(str, range(131)))}\n"
        f"openb_pod_list_default,06-FGD,1.3,42,6,{curve}\n"
    )
    return tmp_path


def test_json_has_each_policy_with_its_curves_and_the_published_ones(trace: Path) -> None:
    found = run("fill", trace, "--policies", "fgd,bestfit", "--repeats", 2, "--expected", trace, "--json").json
    assert (found["trace"], found["nodes"], found["gpus"], found["seeds"]) == (
        "openb_pod_list_default",
        30,
        60,
        [42, 43],
    )
    fgd, best = found["policies"]
    assert [fgd["policy"], best["policy"]] == ["fgd", "bestfit"]
    assert 0 < fgd["allocation"]["mean"] <= 100 and len(fgd["allocation"]["runs"]) == 2
    assert len(fgd["curve"]) == len(fgd["fragments"]) > 100
    assert fgd["published"]["mean"] == 0 and fgd["within"] is False
    assert "published" not in best and best["within"] is None


def test_a_fill_is_the_same_for_the_same_seed(trace: Path) -> None:
    again = [run("fill", trace, "--policies", "random", "--repeats", 1, "--json").json["policies"][0] for _ in range(2)]
    assert again[0]["curve"] == again[1]["curve"]


def test_the_table_and_the_page(trace: Path, tmp_path: Path) -> None:
    page = tmp_path / "fill.html"
    result = run("fill", trace, "--policies", "packing", "--repeats", 1, "--report", page)
    assert result.code == 0 and "packing" in result.out and f"wrote {page}" in result.err
    text = page.read_text()
    assert "<script" not in text and text.count("<polyline") == 2 and "packing" in text


def test_the_bound_is_listed_beside_the_policies(trace: Path) -> None:
    pytest.importorskip("highspy")
    found = run("fill", trace, "--policies", "priced", "--repeats", 1, "--bound", "--json").json
    assert found["policies"][0]["allocation"]["mean"] <= found["bound"]["mean"] <= 100


def test_wrong_input_is_named(trace: Path) -> None:
    result = run("fill", trace, "--policies", "best")
    assert result.code == 2 and "--policies: found 'best', wanted some of random" in result.err
    assert run("fill", trace / "none").code == 2
    (trace / "openb_pod_list_default.csv").write_text(PODS + "p0,1,1,3,500,,,,0,1,0\n")
    result = run("fill", trace)
    assert result.code == 2 and "no pod asks for GPUs" in result.err
    assert "1 row left out, parts of several GPUs" in result.err


def test_nodes_without_gpus_come_where_they_are_wanted(trace: Path) -> None:
    assert run("fill", trace, "--repeats", 1, "--policies", "fgd", "--all-nodes", "--json").json["nodes"] == 2
    (trace / "openb_node_list_all_node.csv").unlink()
    result = run("fill", trace, "--all-nodes")
    assert result.code == 2 and "found no openb_node_list_all_node.csv" in result.err
