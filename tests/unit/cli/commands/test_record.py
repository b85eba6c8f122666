"""``--record``, ``pumice replay`` and ``pumice story``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.answers.codes import Code
from pumice.cli.main import main
from pumice.runtime.record.story import HOLDS_NODES, WAITS, JobChange, waited_by_code

ROOT = Path(__file__).parents[4]
GANG = str(ROOT / "examples/debug-gang")


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("record"))
    result = CliRunner().invoke(main, ["simulate", GANG, "--record", folder])
    assert f"wrote {folder}" in result.stderr
    return folder


def test_all_cycles_are_run_again(record: str) -> None:
    result = CliRunner().invoke(main, ["replay", record])
    assert result.exit_code == 0 and "cycles run again: all decided the same" in result.stdout
    found = json.loads(CliRunner().invoke(main, ["replay", record, "--json"]).stdout)
    assert found["schema"] == "pumice.replay/1" and found["cycles"] > 0 and not found["differ"]


def test_one_cycle_is_run_beside_another_policy_and_saved(record: str, tmp_path: Path) -> None:
    saved, conf = str(tmp_path / "cycle.pumice"), str(ROOT / "examples/demo/volcano-scheduler.conf")
    words = ["replay", record, "--job", "ml/tf", "--conf", conf, "--save", saved]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert "the same decisions" in result.stdout and "jobs that wait by reason: 1 Shortage" in result.stdout
    explained = CliRunner().invoke(main, ["explain", "ml/tf", saved, "--no-ways"])
    assert explained.exit_code == 0 and "Shortage" in explained.stdout


def test_the_story_of_a_job_names_codes(record: str) -> None:
    found = json.loads(CliRunner().invoke(main, ["story", "ml/tf", record, "--json"]).stdout)
    assert found["schema"] == "pumice.story/1"
    assert found["moments"][-1]["state"] == "waits" and found["moments"][-1]["code"] == "Shortage"
    said = CliRunner().invoke(main, ["story", "ml/tf", record]).stdout
    assert "Shortage" in said
    assert set(found["waited_s"]) == {each["code"] for each in found["moments"] if each["code"]}
    assert "\nwaited " in said


def test_time_is_split_by_the_reason_that_held_from_one_change_to_the_next() -> None:
    def at(now: float, code: Code | None) -> JobChange:
        return JobChange(1, now, WAITS if code else HOLDS_NODES, code, "")

    moments = [at(0.0, Code.QUEUE_LIMIT), at(60.0, Code.ROOM), at(80.0, Code.QUEUE_LIMIT), at(100.0, None)]
    assert waited_by_code(moments, 500.0) == {Code.QUEUE_LIMIT: 80.0, Code.ROOM: 20.0}
    assert waited_by_code(moments[:2], 500.0) == {Code.ROOM: 440.0, Code.QUEUE_LIMIT: 60.0}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["story", "ml/tg", "REC"], "did you mean ml/tf?"),
        (["replay", "REC", "--cycle", "999"], "found no cycle 999"),
        (["replay", "REC", "--at", "-1"], "found no cycle by -1.0"),
        (["replay", "REC", "--job", "ml/x"], "found no cycle about job"),
        (["replay", "REC", "--cycle", "1", "--at", "5"], "wanted one of them"),
        (["replay", "REC", "--conf", "x.conf"], "wanted --cycle, --at or --job"),
        (["replay", GANG], "found no file of a record"),
    ],
)
def test_wrong_input_is_one_sentence(words: list[str], said: str, record: str) -> None:
    result = CliRunner().invoke(main, [record if word == "REC" else word for word in words])
    assert result.exit_code == 2 and said in result.output


def test_a_damaged_record_says_where_it_ends(record: str, tmp_path: Path) -> None:
    content = next(Path(record).glob("*.record")).read_bytes()
    (tmp_path / "000001.record").write_bytes(content[:-1])
    result = CliRunner().invoke(main, ["replay", str(tmp_path)])
    assert result.exit_code == 1 and "ends within frame" in result.stderr
