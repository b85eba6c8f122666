"""What people read: summaries, answers, help."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.cli.main import COMMANDS
from tests.unit.cli.kit import GOOD, run
from tests.unit.report.kit import TWO_QUEUES

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_helps_with_examples(command: str) -> None:
    result = run(command, "--help")
    assert result.code == 0
    assert result.out.startswith(f"Usage: pumice {command}")
    assert f"  pumice {command} " in result.out.partition("Examples:")[2]


def test_all_commands_are_listed() -> None:
    out = run("--help").out
    assert [name for name, (_, about) in COMMANDS.items() if f"{name} " not in out or about not in out] == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    result = run("completion", shell)
    assert result.code == 0
    assert f"_PUMICE_COMPLETE={shell}_complete" in result.out


def test_simulate(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text("\n".join(TWO_QUEUES))
    out = run("simulate", file).out
    rows = {line.split("  ")[0]: line for line in out.splitlines() if line}
    assert "2 of 3 done, 1 waiting, 1 of them can never run" in rows["jobs"]
    assert "2 min 22 s until nothing more could happen" in rows["simulated"]
    for title in ("Utilisation", "Queues", "Waiting time", "Completion time", "Fairness", "Why jobs waited"):
        assert any(row.startswith(title) for row in rows), title
    gangs = out.partition("1 gang waits at the end\n")[2]
    assert "default/giant" in gangs and "1 min 52 s" in gangs and "QueueLimit" in gangs


def test_gangs_that_wait_for_the_same_are_one_row(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    many = [TWO_QUEUES[-1].replace("name: giant", f"name: giant-{i}") for i in range(5)]
    file.write_text("\n".join([*TWO_QUEUES[:-1], *many]))
    out = run("simulate", file).out
    gangs = " ".join(out.partition("5 gangs wait at the end\n")[2].split())
    assert gangs.count("giant-") == 2 and gangs.count("QueueLimit") == 1 and "3 more" in gangs


def test_schedule() -> None:
    out = run("schedule", ROOT / "examples/debug-gang").out
    assert out.startswith("6 nodes, 1 job: 0 bound, 0 pipelined, 0 evicted, 8 not scheduled\n")
    assert "ml/tf  queue default, 8 pods, minMember 8, Inqueue" in out
    assert "tf-ps-0 → n0, tf-worker-0 → n1" in out
    words = " ".join(out.split())
    assert "condition Unschedulable, NotEnoughResources: 2/8 tasks in gang unschedulable" in words
    assert "tf-worker-5: 0/6 nodes are unavailable: 6 Insufficient cpu." in words


def test_schedule_names_what_is_bound(tmp_path: Path) -> None:
    good = tmp_path / "good.yaml"
    good.write_text(GOOD)
    assert "good-0 → n1" in run("schedule", good).out


def test_check_conf() -> None:
    result = run("check-conf", ROOT / "examples/demo/volcano-scheduler.conf")
    assert result.code == 0
    assert "volcano-scheduler.conf: OK" in result.out and "overcommit-factor = 1.2" in result.out
    assert "None" not in result.out


def test_check_conf_tells_what_no_policy_says() -> None:
    result = run("check-conf", "-", stdin="{kind: SchedulingShard, spec: {partitionLabelValue: blue}}")
    assert result.code == 0 and "dialect kai; actions: allocate" in result.out
    assert result.err == "warning: standard input: spec.partitionLabelValue: use --partition-label-value=blue\n"


def test_bench() -> None:
    out = run("bench", "--scenario", "gang", "--nodes", "10", "--pods", "20", "--gang", "4").out
    assert "20 of 20 pods" in out and "allocate" in out and "the next cycle" in out


def test_the_report_is_one_file_that_fetches_nothing(tmp_path: Path) -> None:
    file, page = tmp_path / "all.yaml", tmp_path / "report.html"
    file.write_text("\n".join(TWO_QUEUES))
    result = run("simulate", file, "--report", page)
    assert result.code == 0 and f"wrote {page}" in result.err
    html = page.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>") and "default-src 'none'" in html
    assert [word for word in ("src=", "href=", "@import", "url(", "fetch(") if word in html] == []
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []
