"""Jobs of traces in either language: parts of GPUs run together where KAI's schedules, and are named where it does
not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import pumice
from pumice.framework.plugin.policy_file import Policy
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.sim.run import Run, simulate
from pumice.sim.scenes.inputs import read_inputs
from pumice.sim.scenes.scene import Scene
from pumice.sim.settings import Observers, SimSettings
from pumice.sim.workloads.work import arriving
from tests.unit.cli.kit import run

PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
KAI = "dialect: kai\nactions: allocate\ntiers: [{plugins: [name: predicates, name: proportion, name: gpuplacement]}]\n"
VOLCANO = "actions: 'enqueue, allocate'\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: proportion}]\n"


@pytest.fixture
def piece(tmp_path: Path) -> Path:
    """A node of two GPUs; at first 0.6 and 0.4 of one, and a whole one; then 0.5, for which one must end."""
    rows = [
        *("p0,4000,1024,1,600,,,,0,500,100", "p1,4000,1024,1,400,,,,0,600,100", "p2,4000,1024,1,1000,T4,,,0,700,100"),
        *("p3,4000,1024,1,500,,,,10,110,20", "p4,4000,1024,0,0,,,,10,60,10"),
    ]
    (tmp_path / "openb_pod_list_default.csv").write_text(PODS + "\n".join(rows) + "\n")
    (tmp_path / "openb_node_list_gpu_node.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,64000,65536,2,T4\n")
    return tmp_path


def scene(piece: Path) -> Scene:
    return read_inputs([str(piece)]).scene


def policy(text: str) -> Policy:
    return policy_of(text, builtin_registry())


def starts(piece: Path, text: str) -> tuple[dict[str, float], Run]:
    """When each job began, in seconds; laws are checked after every event."""
    reports: list[Mapping[str, Any]] = []
    ran = simulate(scene(piece), policy(text), SimSettings(check_laws=True), Observers(event=reports.append))
    return {each["job"].partition("/")[2]: each["t"] for each in reports if each["event"] == "started"}, ran


def test_parts_of_gpus_run_together_as_far_as_they_fill_one(piece: Path) -> None:
    found, ran = starts(piece, KAI)
    assert found == {"p0": 0, "p1": 0, "p2": 0, "p4": 10, "p3": 400}, "p3 needs what p0 has until then"
    assert not ran.result.problems


def test_jobs_whose_arrival_was_moved_are_changed_as_well(piece: Path) -> None:
    moved = replace(scene(piece), works=tuple(arriving(work, work.arrival_s + 5) for work in scene(piece).works))
    ran = simulate(moved, policy(KAI))
    assert not ran.waiting
    assert len(ran.result.history.jobs) == 5
    (said,) = simulate(scene(piece), policy(VOLCANO), SimSettings(shake_s=5.0)).result.problems
    assert said.startswith("3 jobs ask for a part of a GPU and are left out")


def test_volcano_leaves_them_out_and_says_so(piece: Path) -> None:
    found, ran = starts(piece, VOLCANO)
    assert set(found) == {"p2", "p4"}
    assert ran.result.problems == ("3 jobs ask for a part of a GPU and are left out: use a policy with `dialect: kai`",)


def test_the_command_runs_a_trace_whole_under_a_policy_of_kais(piece: Path) -> None:
    conf = piece / "kai.conf"
    conf.write_text(KAI)
    reports = run("simulate", f"openb:{piece}", "--conf", conf, "--json")
    assert reports.code == 0
    assert not reports.json["problems"]


def test_one_cycle_takes_jobs_of_a_trace_in_the_language_of_its_policy(piece: Path) -> None:
    conf = piece / "kai.conf"
    conf.write_text(KAI)
    cluster = pumice.load(str(piece))
    assert len(cluster.schedule(conf).binds) == 4, "p3 needs what others hold"
    assert len(cluster.waiting(conf).reasons) == 1
    with pytest.warns(UserWarning, match="3 jobs ask for a part of a GPU and are left out"):
        assert len(cluster.schedule().binds) == 2
    (told,) = run("schedule", piece).lines("warning")
    assert told.startswith("traces: 3 jobs ask for a part of a GPU")
