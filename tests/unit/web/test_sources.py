"""What ``pumice pages`` can be about, as ``--print`` shows it: manifests, a record, the results of a simulation."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pumice.cli.main import main
from pumice.cli.pages.recorded import recorded_source
from pumice.runtime.record.recorder import SUFFIX
from pumice.web.feed import Feed
from pumice.web.simulation import results_in

DEMO = str(Path(__file__).parents[3] / "examples/demo")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Return the record of a simulation, and its results."""
    folder = tmp_path_factory.mktemp("pages") / "record"
    found = CliRunner().invoke(main, ["simulate", DEMO, "--record", str(folder), "--json"])
    assert found.exit_code == 0, found.stderr
    return folder, json.loads(found.stdout)


def pages(*words: str) -> Result:
    return CliRunner().invoke(main, ["pages", *words])


def shown(*words: str) -> Any:
    found = pages(*words)
    assert found.exit_code == 0, found.stderr
    return json.loads(found.stdout)


def test_all_cycles_of_a_record_are_in_its_curves(recorded: tuple[Path, dict[str, Any]]) -> None:
    folder, results = recorded
    found = shown(str(folder), "--print", "cycles")
    assert found["notes"] == []
    assert sum(found["data"]["counts"]["cycles"]) == results["cycles"]
    assert sum(found["data"]["counts"]["bound"]) == results["binds"]
    assert sum(found["data"]["spans"]["allocate"]) > 0


def test_the_last_cycle_of_a_record_is_shown(recorded: tuple[Path, dict[str, Any]]) -> None:
    found = shown(str(recorded[0]), "--print", "overview")
    assert found["data"]["nodes"] == 12
    cycles = shown(str(recorded[0]), "--print", "cycles")["data"]["cycles"]
    assert found["head"]["at"] == cycles[0]["at"] and found["data"]["states"]["waits"] == 1


def test_of_a_damaged_record_what_is_whole_is_shown(recorded: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    (file,) = recorded[0].iterdir()
    content = file.read_bytes()
    (tmp_path / file.name).write_bytes(content[:-10])
    found = shown(str(tmp_path), "--print", "cycles")
    assert 0 < sum(found["data"]["counts"]["cycles"]) < recorded[1]["cycles"]
    assert "The record is damaged" in found["notes"][0]


def test_a_record_of_which_nothing_is_whole_says_so(tmp_path: Path) -> None:
    (tmp_path / f"000001{SUFFIX}").write_bytes(b"nothing")
    found = shown(str(tmp_path), "--print", "overview")
    assert found["data"] is None and "No cycle of the record could be run again." in found["notes"]


def test_after_the_last_cycle_of_a_record_starts_are_expected(recorded: tuple[Path, dict[str, Any]]) -> None:
    found = shown(str(recorded[0]), "--print", "starts")
    assert found["jobs"].keys() == {"demo/giant"} and found["samples"] == 8


async def test_a_record_is_asked_what_helps_and_whether_expected_starts_came_true(
    recorded: tuple[Path, dict[str, Any]],
) -> None:
    source, feed = recorded_source(recorded[0], ""), Feed()
    source.ask(feed)
    assert feed.relief is not None and feed.start_checks is not None
    waiting = asyncio.create_task(feed.relief.renew())
    await source.fill(feed)
    await waiting
    assert feed.relief.found["proof"]["trials"] >= 1
    await feed.start_checks.renew()
    found = feed.start_checks.found
    assert 2 <= len(found["moments"]) <= 4 and found["expected"] >= found["started"] >= found["within"] >= 0
    assert feed.job_times.of("demo/bert-elastic") is not None


async def test_a_record_of_which_nothing_is_whole_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / f"000001{SUFFIX}").write_bytes(b"nothing")
    source, feed = recorded_source(tmp_path, ""), Feed()
    source.ask(feed)
    assert feed.relief is not None
    await source.fill(feed)
    await feed.relief.renew()
    assert feed.relief.why_not == "no cycle of the record could be run again"


def test_a_record_has_its_own_policy_and_time(recorded: tuple[Path, dict[str, Any]]) -> None:
    found = pages(str(recorded[0]), "--now", "3", "--print", "overview")
    assert found.exit_code == 2 and "a record says these itself" in found.stderr


def test_results_of_a_simulation_are_shown(recorded: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(recorded[1]))
    found = shown(str(path), "--print", "overview")
    assert found["notes"] == [] and found["head"]["language"] == "simulation"
    assert found["data"]["queues"].keys() == {"batch", "production", "research"}


def test_of_damaged_results_each_field_that_is_right_is_shown(recorded: tuple[Path, dict[str, Any]]) -> None:
    found = results_in(json.dumps(recorded[1] | {"queues": [1], "jobs": "many"}).encode())
    assert found is not None
    assert found.data["queues"] is None and found.data["jobs"] is None and found.data["binds"] == recorded[1]["binds"]
    assert [note.split(" ")[0] for note in found.notes] == ["jobs", "queues"]


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"kind": "List"}', b"\xff", b"[" * 9999])
def test_other_documents_are_no_results(content: bytes) -> None:
    assert results_in(content) is None


def test_tables_of_results_are_bounded(recorded: tuple[Path, dict[str, Any]]) -> None:
    row = {"job": "a", "queue": "q", "pods": 1, "why": "x", "code": "", "waited_s": 1.0}
    found = results_in(json.dumps(recorded[1] | {"waiting": [row] * 900}).encode())
    assert found is not None and len(found.data["waiting"]) == 200
    assert "of waiting the first 200 of 900 are shown" in found.notes
