"""Two policies side by side: the same universes for both, differences with intervals, what is there after Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from pumice.report.comparison import Figure, FigureKind, PairedRuns, RunOutcome
from tests.unit.cli.kit import run
from tests.unit.report.kit import TWO_QUEUES, job, node, queue

ENQUEUE_NOT = (
    'actions: "allocate, backfill"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n  - name: proportion\n'
)
#: A worker is a process that imports everything: a second one is for the tests that are about several.
ONE_WORKER = ("--workers", 1)


@pytest.fixture
def two_queues(tmp_path: Path) -> Path:
    file = tmp_path / "all.yaml"
    file.write_text("\n".join(TWO_QUEUES))
    return file


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A policy that places in the cycle in which a job comes: it has no admission before that."""
    file = tmp_path / "other.conf"
    file.write_text(ENQUEUE_NOT)
    return file


def figure(found: dict[str, object], name: str) -> dict[str, object]:
    return next(each for each in found["figures"] if each["name"] == name)  # type: ignore[attr-defined, no-any-return]


def test_a_policy_compared_with_itself(two_queues: Path) -> None:
    found = run("compare", "default", "default", two_queues, "--repeats", 2, *ONE_WORKER, "--json").json
    assert (found["a"], found["b"], found["universes"], found["shake_s"]) == ("default", "default", 2, 60.0)
    assert found["same"] is True and found["problems"] == []
    assert {each["difference"] for each in found["figures"] if each["difference"] is not None} == {0.0}
    assert {each["better"] for each in found["figures"]} == {None}


def test_one_universe_is_the_input_itself(two_queues: Path, other: Path) -> None:
    found = run("compare", "default", other, two_queues, "--repeats", 1, *ONE_WORKER, "--json").json
    assert found["shake_s"] == 0.0
    for side, conf in (("a", ()), ("b", ("--conf", other))):
        alone = run("simulate", two_queues, *conf, "--json").json
        assert found["runs"][0][side]["digest"] == alone["digest"]
        assert figure(found, "wait_mean")[side] == pytest.approx(alone["wait_s"]["mean"], abs=1e-3)
        assert figure(found, "fairness")[side] == pytest.approx(alone["fairness"]["jain"], abs=1e-6)
    wait = figure(found, "wait_mean")
    assert (wait["low"], wait["high"], wait["better"]) == (None, None, None)


def test_both_see_the_same_universes_however_many_work(two_queues: Path, other: Path) -> None:
    result = [
        run("compare", "default", other, two_queues, "--repeats", 3, "--seed", 7, "--workers", count, "--json")
        for count in (1, 2)
    ]
    assert result[0].json == result[1].json
    found = result[0].json
    assert [each["seed"] for each in found["runs"]] == [7, 8, 9]
    alone = run("simulate", two_queues, "--shake", "60s", "--seed", 8, "--json").json
    assert found["runs"][1]["a"]["digest"] == alone["digest"]
    assert len(figure(found, "wait_p50")["pairs"]) == 3
    assert "6 of 6 runs: " in result[0].err


def test_blocks_are_universes(tmp_path: Path, other: Path) -> None:
    file = tmp_path / "days.yaml"
    days = [job(f"j{i}", at=43_200 * i) for i in range(7)]
    file.write_text("\n".join([queue("a"), node("n1"), *days]))
    found = run("compare", "default", other, file, "--blocks", "1d", *ONE_WORKER, "--json").json
    assert (found["universes"], found["block_s"], found["shake_s"]) == (3, 86_400.0, 0.0)
    assert [figure(found, "completed")[side] for side in ("a", "b")] == [2.0, 2.0]
    shown = run("compare", "default", other, file, "--blocks", "1d", *ONE_WORKER).out
    assert "universes  3, blocks of 1 d of arrivals\n" in shown
    assert "Intervals are about blocks of 1 d of this input, each from an empty cluster on" in " ".join(shown.split())


def test_the_table(two_queues: Path, other: Path) -> None:
    out = run("compare", "default", other, two_queues, "--repeats", 3, *ONE_WORKER).out
    assert "universes  3, seeds 0 to 2, arrivals moved by up to 1 min\n" in out
    rows = {line.split("  ")[0]: line for line in out.splitlines()}
    for label in ("wait, mean", "slowdown, mean", "CPU use", "fairness", "pods evicted"):
        assert (label in rows) == (label != "pods evicted"), label  # neither policy evicts: no row
    assert "not known in every run" in rows["wait, 90 %"] and " to " in rows["wait, mean"]


def test_who_is_better_is_said_where_it_is_no_chance() -> None:
    wait, use = Figure("wait", "wait", FigureKind.SECONDS, True), Figure("use", "use", FigureKind.SHARE, False)
    size, gone = Figure("size", "size", FigureKind.NUMBER, None), Figure("p99", "p99", FigureKind.SECONDS, True)
    sides = [
        ({wait: 10.0 + i, use: 0.5, size: 1, gone: None}, {wait: 20.0 + i % 2, use: 0.7, size: 2, gone: 3.0})
        for i in range(4)
    ]
    pairs = tuple((RunOutcome(i, "x", "done", a), RunOutcome(i, "y", "done", b)) for i, (a, b) in enumerate(sides))
    rows = {row.figure.name: row for row in PairedRuns(("a", "b"), (), 1, 0.0, pairs).rows}
    assert {name: row.better for name, row in rows.items()} == {"wait": "a", "use": "b", "size": "", "p99": ""}
    assert rows["wait"].difference is not None and rows["wait"].difference.mean == pytest.approx(9.0)
    assert rows["p99"].difference is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["nope.conf", "default", "{input}"], "nope.conf: no such file or folder", id="no-conf"),
        pytest.param(["default", "{folder}", "{input}"], "found a folder, wanted a policy file", id="folder"),
        pytest.param(["default", "default"], "missing argument 'INPUT…'", id="no-input"),
        pytest.param(["default", "default", "{input}", "--nodes", "x"], "--nodes: found 'x'", id="nodes"),
        pytest.param(["default", "default", "{input}", "--blocks", "9d"], "found 0 blocks in", id="blocks"),
        pytest.param(["default", "default", "{input}", "--blocks", "1h", "--repeats", "3"], "one of them", id="both"),
        pytest.param(["default", "default", "{input}", "--warm-up", "9d"], "leaves no time to measure", id="window"),
    ],
)
def test_wrong_input(two_queues: Path, tmp_path: Path, arguments: list[str], said: str) -> None:
    places = {"{input}": two_queues, "{folder}": tmp_path}
    result = run("compare", *(places.get(each, each) for each in arguments))
    assert (result.code, result.out) == (2, "")
    assert said in result.lines("error")[0]


def test_what_could_not_be_used_is_in_the_json_and_ends_with_1(two_queues: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("apiVersion: v1\nkind: Node\nmetadata: 5\n")
    result = run("compare", "default", "default", two_queues, wrong, "--repeats", 1, *ONE_WORKER, "--json")
    assert (result.code, [each["severity"] for each in result.json["problems"]]) == (1, ["error"])


@pytest.mark.slow
def test_ctrl_c_gives_what_both_have_finished(tmp_path: Path) -> None:
    """The signal goes to the whole group, as from a terminal; no process of it is left."""
    file = tmp_path / "all.yaml"
    jobs = [job(f"job-{i}", at=10 * i, seconds=25) for i in range(50)]
    file.write_text("\n".join([node("n1"), queue("a"), *jobs]))
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # whatever this process ignores
    run = f"{heard}; from pumice.cli.main import main; main()"
    command = [sys.executable, "-c", run, "compare", "default", "default", str(file)]
    with subprocess.Popen(
        [*command, "--repeats", "40", "--workers", "2", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        # With two under way, two runs that have ended may be of two universes; of four that have, some are of one.
        # Not each number is said, if several runs end at once.
        for line in process.stderr:
            # Every 30 s, a line of the bar has the number of runs too.
            done = re.search(r"(\d+) of 80 runs", line)
            if done and int(done[1]) >= 4:
                break
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    found = json.loads(out)
    assert 1 <= found["universes"] == len(found["runs"]) < 40
    assert f"interrupted: {found['universes']} of 40 universes are compared" in err
    assert "Traceback" not in err
    for left in alive_in_group(process.pid):  # on its way out: it ends by itself, soon
        assert select.select([left], [], [], 30)[0]
        os.close(left)


def alive_in_group(group: int) -> list[int]:
    """A file descriptor of each process that runs in a group: readable when it has ended."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, its_group = status.read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and state != "Z":
                found.append(os.pidfd_open(int(status.parent.name)))
    return found
