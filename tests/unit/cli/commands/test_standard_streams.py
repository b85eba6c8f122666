"""The file ``-``: standard input where a command reads a file, standard output where it writes one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.cli.main import main
from tests.tidy import repo
from tests.unit.cli.kit import GOOD, run

CONF = 'actions: "enqueue, allocate"\ntiers: [{plugins: [{name: gang}, {name: binpack}]}]\n'


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.yaml"
    path.write_text(GOOD)
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("schedule", "{cluster}", "--conf", "-"),
        ("simulate", "{cluster}", "--conf", "-"),
        ("explain", "ns/good", "{cluster}", "--conf", "-"),
        ("next", "{cluster}", "--conf", "-"),
        ("whatif", "{cluster}", "--conf", "-"),
        ("whatif", "{cluster}", "--from-conf", "-", "--remove", "job/ns/good"),
        ("compare", "default", "-", "{cluster}", "--repeats", "1"),
        ("check-conf", "-"),
    ],
    ids=" ".join,
)
def test_a_policy_is_read_from_standard_input(cluster: Path, words: tuple[str, ...]) -> None:
    given = [word.format(cluster=cluster) for word in words]
    assert run(*given, stdin=CONF).code in (0, 1)
    wrong = run(*given, stdin=CONF.replace("gang", "gnag"))
    assert wrong.code == 2 and wrong.lines("error")[0].startswith("standard input: tiers[0].plugins[0]: unknown")


@pytest.mark.parametrize(
    "words",
    [
        ("schedule", "-"),
        ("simulate", "-"),
        ("explain", "ns/good", "-"),
        ("next", "-"),
        ("whatif", "-", "--remove", "job/ns/good"),
        ("whatif", "{cluster}", "--apply", "-"),
        ("compare", "default", "default", "-", "--repeats", "1", "--json"),
        ("sweep", "-", "--policy", "default", "--workers", "1", "--out", "{cluster}.sweep"),
    ],
    ids=" ".join,
)
def test_manifests_are_read_from_standard_input(cluster: Path, words: tuple[str, ...]) -> None:
    found = run(*(word.format(cluster=cluster) for word in words), stdin=GOOD)
    assert found.code in (0, 1) and "error" not in found.err


def test_standard_input_is_read_once(cluster: Path) -> None:
    for words in (("schedule", "-", "--conf", "-"), ("compare", "-", "-", cluster), ("compare", "default", "-", "-")):
        found = run(*words, stdin=CONF)
        assert found.code == 2 and "standard input (-) can be read once" in found.err


def test_a_plan_from_standard_input_names_files_of_the_current_folder(
    cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(cluster.parent)
    plan = "inputs: cluster.yaml\npolicies: [default]\nseeds: 0..1\nshake: 1s\n"
    found = run("sweep", "-", "--workers", "1", "--out", "out", "--json", stdin=plan)
    assert found.code == 0 and found.json["universes"] == 2


def test_a_saved_world_is_read_from_standard_input(tmp_path: Path) -> None:
    from pumice.runtime.policy.languages import builtin_registry
    from pumice.sim.fuzz.case import draw

    world = json.dumps(draw(3, builtin_registry(), [], {}).to_json())
    assert run("fuzz", "--replay", "-", stdin=world).out.startswith("1 worlds, no law broken")


@pytest.mark.parametrize(
    ("words", "begins"),
    [
        (("simulate", "{cluster}", "--report", "-"), b"<!doctype html>"),
        (("simulate", "{cluster}", "--events", "-"), b"{"),
        (("simulate", "{cluster}", "--perfetto", "-"), b"{"),
        (("simulate", "{cluster}", "--save-cycle", "1", "-"), b"PK"),
        (("compare", "default", "default", "{cluster}", "--repeats", "1", "--report", "-"), b"<!doctype html>"),
        (
            (
                "sweep",
                "{cluster}",
                *("--policy", "default", "--set", "nodeorder.leastrequested.weight=1,2", "--nodes", "1x4gpu,2x4gpu"),
                *("--workers", "1", "--out", "{cluster}.sweep", "--heat-map", "-"),
            ),
            b"<!doctype html>",
        ),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_a_file_is_written_to_standard_output_and_nothing_else(
    cluster: Path, words: tuple[str, ...], begins: bytes
) -> None:
    given = [word.format(cluster=cluster) for word in words]
    found = CliRunner().invoke(main, given, prog_name="pumice")
    assert found.exit_code == 0, found.stderr
    assert found.stdout_bytes.lower().startswith(begins.lower()) and "wrote -" not in found.stderr


def test_a_recorded_cycle_is_written_to_standard_output(tmp_path: Path) -> None:
    record, saved = tmp_path / "record", tmp_path / "cycle.pumice"
    run("simulate", repo.ROOT / "examples" / "gang.yaml", "--nodes", "4x8gpu", "--record", record)
    found = CliRunner().invoke(main, ["replay", str(record), "--cycle", "1", "--save", "-"], prog_name="pumice")
    saved.write_bytes(found.stdout_bytes)
    assert found.exit_code == 0 and run("schedule", saved).code == 0


def test_standard_output_is_written_once(cluster: Path) -> None:
    for words in (
        ("simulate", cluster, "--save-cycle", "1", "-", "--json"),
        ("compare", "default", "default", cluster, "--report", "-", "--json"),
        ("sweep", cluster, "--policy", "default", "--heat-map", "-", "--json"),
    ):
        found = run(*words)
        assert found.code == 2 and "standard output (-) can be used once" in found.err
