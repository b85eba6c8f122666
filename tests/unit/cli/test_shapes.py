"""What ``--json`` prints: shapes that programs rely on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pumice.cli.commands import bench
from pumice.sim.workloads import volcano as workload
from pumice.sim.workloads.kai import KAI_SCENARIOS
from tests.unit.cli.kit import GOOD, run
from tests.unit.report.kit import TWO_QUEUES

ROOT = Path(__file__).resolve().parents[3]
SPREAD = {"count", "censored", "mean", "p50", "p90", "p99", "max"}


@pytest.fixture
def two_queues(tmp_path: Path) -> Path:
    file = tmp_path / "all.yaml"
    file.write_text("\n".join(TWO_QUEUES))
    return file


def test_simulate(two_queues: Path) -> None:
    found = run("simulate", two_queues, "--json").json
    counts = {key: found[key] for key in ("jobs", "completed", "pending", "running", "to_come", "binds", "evictions")}
    assert counts == {
        "jobs": 3,
        "completed": 2,
        "pending": 1,
        "running": 0,
        "to_come": 0,
        "binds": 12,
        "evictions": 0,
    }
    assert len(found["digest"]) == 32 and int(found["digest"], 16) >= 0
    assert (found["ending"], found["simulated_s"], found["nodes"], found["seed"]) == ("stuck", 142.0, 2, 0)
    assert found["wall_s"] >= 0 and found["cycles"] >= 4
    assert found["conf"] == "default" and found["sources"] == [str(two_queues)]
    assert found["utilisation"]["cpu"] == {
        "mean": pytest.approx((8 * 100 + 4 * 40) / (8 * 142), abs=1e-6),
        "peak": 1.0,
        "while_waiting": pytest.approx((8 * 79 + 4 * 40) / (8 * 120), abs=1e-6),
        "capacity": 8.0,
        "unit": "cores",
    }
    assert set(found["queues"]) == {"a", "b"}
    b = found["queues"]["b"]
    assert (b["jobs"], b["completed"], b["running"], b["pending"]) == (2, 1, 0, 1)
    assert set(b["wait_s"]) == SPREAD and (b["wait_s"]["p50"], b["wait_s"]["max"]) == (82.0, 112.0)
    assert (b["wait_s"]["count"], b["wait_s"]["censored"], b["completion_s"]["p50"]) == (2, 1, 122.0)
    assert set(found["fairness"]) == {"jain", "jain_contended", "contended_share", "of"}
    assert (found["restarts"], found["evicted_again"], found["lost"]) == (0, 0, {"job_s": 0, "hours": {}})
    assert found["window"] == {"from_s": 0.0, "to_s": 142.0, "jobs": 3}
    assert (found["period_s"], found["shake_s"]) == (1.0, 0.0)
    assert b["slowdown"]["p50"] == 3.05
    why = "the cluster has 8 cores, it asks for 9"
    assert found["never_run"] == [{"job": "default/giant", "queue": "b", "pods": 9, "why": why}]
    assert [(each["severity"], each["where"]) for each in found["problems"]] == [("warning", "job default/giant")]
    assert found["held_for_nothing"] == []
    (waiting,) = found["waiting"]
    assert (waiting["job"], waiting["pods"], waiting["waited_s"]) == ("default/giant", 9, 112.0)
    assert (waiting["code"], waiting["why"]) == ("QueueLimit", why)
    assert sum(each["share"] for each in found["waits_by_code"]) == pytest.approx(1.0, abs=1e-4)


def test_simulate_stops_at_a_time(two_queues: Path) -> None:
    found = run("simulate", two_queues, "--json", "--until", "25s").json
    assert (found["ending"], found["simulated_s"]) == ("until", 25.0)
    assert (found["completed"], found["running"], found["pending"], found["to_come"]) == (0, 1, 1, 1)


def test_the_same_input_gives_the_same_digest(two_queues: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.yaml"
    again.write_text("\n".join(reversed(TWO_QUEUES)))
    digests = {run("simulate", file, "--json").json["digest"] for file in (two_queues, two_queues, again)}
    assert len(digests) == 1


def test_events(two_queues: Path, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    result = run("simulate", two_queues, "--json", "--events", events)
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    assert lines[-1] == {"t": 142.0, "event": "end", "ending": "stuck", "digest": result.json["digest"]}
    times = [line["t"] for line in lines]
    assert times == sorted(times)
    assert f"wrote {events}" in result.err


def test_nodes_in_place_of_those_of_the_input(two_queues: Path) -> None:
    found = run("simulate", two_queues, "--json", "--nodes", "1:cpu=32,memory=64Gi").json
    assert (found["nodes"], found["completed"], found["pending"]) == (1, 3, 0)


@pytest.mark.parametrize(
    ("example", "binds", "unscheduled"),
    [pytest.param("debug-gang", 0, 8, id="eight-of-eight"), pytest.param("debug-gang-min-6", 6, 2, id="six-of-eight")],
)
def test_schedule(example: str, binds: int, unscheduled: int) -> None:
    found = run("schedule", ROOT / "examples" / example, "--json").json
    keys = ["digest", "binds", "devices", "pipelined", "evicts", "podgroups", "plugin_faults", "unscheduled"]
    assert list(found) == [*keys, "hints", "blockers", "left_out_actions", "problems", "shown"]
    assert (len(found["binds"]), found["pipelined"], found["evicts"]) == (binds, {}, [])
    assert len(found["unscheduled"]) == unscheduled and all(found["unscheduled"].values())
    assert all(len(pod.split("/")) == 2 and node.startswith("n") for pod, node in found["binds"].items())
    (group,) = found["podgroups"].values()
    assert set(group) == {"phase", "conditions"}
    assert all(set(condition) == {"type", "status", "reason", "message"} for condition in group["conditions"])


def test_schedule_says_why_the_gang_waits() -> None:
    (group,) = run("schedule", ROOT / "examples/debug-gang", "--json").json["podgroups"].values()
    (condition,) = [c for c in group["conditions"] if c["status"] == "True"]
    assert (condition["type"], condition["reason"]) == ("Unschedulable", "NotEnoughResources")
    assert condition["message"].startswith("2/8 tasks in gang unschedulable: ")


@pytest.mark.parametrize(
    ("scenario", "more", "bound"),
    [
        pytest.param("gang", [], 40, id="gang"),
        pytest.param("topo", ["--tier", "1"], 40, id="topo"),
        *(pytest.param(kind, [], 0 if kind == "hopeless" else 40, id=kind) for kind in bench.DIVERSE),
    ],
)
def test_bench(scenario: str, more: list[str], bound: int) -> None:
    sizes = ["--nodes", "20", "--pods", "40", "--gang", "4"]
    found = run("bench", "--scenario", scenario, *sizes, *more, "--json").json
    assert (found["scenario"], found["nodes"], found["pods"], found["bound"]) == (scenario, 20, 40, bound)
    assert {"snapshot", "open", "allocate", "close"} <= set(found["phases"])
    times = ("wall_s", "cpu_s", "peak_rss_mb", "next_cycle_ms", "second_cycle_ms")
    assert all(found[key] >= 0 for key in times)


def test_bench_offers_the_scenarios_that_there_are() -> None:
    assert bench.VOLCANO == workload.SCENARIOS
    assert bench.KAI == KAI_SCENARIOS


def test_check_conf() -> None:
    found = run("check-conf", ROOT / "examples/demo/volcano-scheduler.conf", "--json").json
    assert (found["ok"], found["problems"]) == (True, [])
    assert [action["name"] for action in found["policy"]["actions"]] == ["enqueue", "allocate", "backfill"]
    assert "gang" in [option["name"] for tier in found["policy"]["tiers"] for option in tier]


def test_check_conf_with_problems(tmp_path: Path) -> None:
    conf = tmp_path / "c.conf"
    conf.write_text('actions: "alocate"\ntiers: [{plugins: [{name: gnag}]}]\n')
    result = run("check-conf", conf, "--json")
    assert result.code == 2
    assert result.json["ok"] is False and len(result.json["problems"]) == 2


def test_json_is_all_of_standard_output(tmp_path: Path) -> None:
    good = tmp_path / "good.yaml"
    good.write_text(GOOD + "---\nhello\n")
    result = run("schedule", good, "--json")
    assert result.out.count("\n") == 1 and result.json["binds"] == {"ns/good-0": "n1"}
    assert len(result.lines("error")) == 1
