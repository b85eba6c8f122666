"""Inputs, languages and commands crossed: what a user may expect of each cell.

Each cell runs all commands on one input under one policy. Commands must agree with one another, text with JSON, Python
with the command line, and the second run with the first.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import pytest

import pumice
from tests.ecosystem.gangs import CLUSTERS, MANIFESTS, name_of
from tests.matrix.inputs import CONFS, JOBS_INPUTS, TRACES, written_input
from tests.unit.cli.kit import Result, run

_OWN = {"volcano": ("volcano", "pumice"), "kai": ("kai",)}  # languages that place the pods of an input
_FAST = {"volcano/rayjob", "volcano/mpijob", "kai/mpijob", "kai/jobset", "kai/leaderworkerset", "native/jobset"}


class Cell:
    """One input under one policy, and what commands print for it, each run once."""

    def __init__(self, folder: Path, paths: tuple[Path | str, ...], conf: str, more: tuple[str, ...] = ()) -> None:
        self.folder, self.paths, self.more, self._seen = folder, paths, more, dict[tuple[object, ...], Result]()
        self.conf = folder / "policy.conf"
        self.conf.write_text(CONFS[conf])

    def run(self, *command: object) -> Result:
        """Run a command on the input under the policy."""
        if command not in self._seen:
            self._seen[command] = run(*command, *self.paths, "--conf", self.conf)
        return self._seen[command]

    def simulate(self, *options: object) -> Result:
        return self.run("simulate", "--until", "2d", *self.more, *options)

    @cached_property
    def bound(self) -> set[str]:
        """The jobs of which the next cycle binds pods."""
        return set(self.run("next", "--json").json["bound"])

    @cached_property
    def reasons(self) -> dict[str, tuple[str, str]]:
        """The code and the sentence of each job that waits, by ``next``."""
        return {each["job"]: (each["code"], each["sentence"]) for each in self.run("next", "--json").json["waiting"]}


def agree_on_one_cycle(cell: Cell) -> None:
    """``schedule``, ``next`` and ``explain --all`` show the same decisions, jobs and reasons."""
    cycle, following = cell.run("schedule", "--json").json, cell.run("next", "--json").json
    listed = cell.run("explain", "--all", "--json").json
    assert cycle["digest"] == following["digest"] == listed["proof"]["digest"]
    assert len(cycle["binds"]) == sum(sum(nodes.values()) for nodes in following["bound"].values())
    assert cell.bound | set(cell.reasons) == set(cycle["podgroups"]) and not cell.bound & set(cell.reasons)
    assert {job: each["code"] for each in listed["waiting"] for job in each["jobs"]} == {
        job: code for job, (code, _) in cell.reasons.items()
    }
    named = {job: text for job, text in cycle["hints"].items() if job in cell.reasons}
    assert named == {job: text for job, (_, text) in cell.reasons.items() if job in named}
    assert all(text for _, text in cell.reasons.values())


def agree_on_each_job(cell: Cell) -> None:
    """``explain JOB`` says of the jobs that are bound, and of no others, that they start."""
    for job in (*sorted(cell.bound)[:2], *sorted(cell.reasons)[:2]):
        found = cell.run("explain", job, "--no-ways", "--json").json
        assert (found["verdict"] == "starts") is (job in cell.bound), (job, found["verdict"])
        assert found["job"] == job and all(each["sentence"] for each in found["reason"])
        assert found["shown"] in cell.run("explain", job, "--no-ways").out


def agree_with_the_text(cell: Cell) -> None:
    """Text has the numbers of JSON."""
    cycle, simulated = cell.run("schedule", "--json").json, cell.simulate("--json").json
    first = cell.run("schedule").out
    assert f"{len(cycle['binds'])} bound" in first and f"{len(cycle['unscheduled'])} not scheduled" in first
    assert cycle["digest"] in first and cycle["digest"] in cell.run("next").out
    text = cell.simulate().out
    assert f"{simulated['completed']} of {simulated['jobs']} done" in " ".join(text.split())
    assert simulated["digest"] in text and f"{simulated['binds']} pod" in text


def agree_with_python(cell: Cell) -> None:
    """The library decides and says what the commands do."""
    cluster, conf = pumice.load(*map(str, cell.paths)), cell.conf
    cycle = cluster.schedule(conf)
    assert cycle.digest == cell.run("schedule", "--json").json["digest"]
    assert cluster.simulate(conf, until="2d").digest == cell.simulate("--json").json["digest"]
    for job in (*sorted(cell.bound)[:1], *sorted(cell.reasons)[:1]):
        assert (
            cluster.explain(job, conf, ways=False).verdict
            == cell.run("explain", job, "--no-ways", "--json").json["verdict"]
        )


def are_the_same_again(cell: Cell) -> None:
    """A second run prints the same bytes; a comparison with itself finds nothing."""
    for command in (("schedule", "--json"), ("explain", "--all", "--json")):
        assert run(*command, *cell.paths, "--conf", cell.conf).out == cell.run(*command).out
    words = ("--repeats", "1", "--workers", "1", "--until", "2d", *cell.more, "--json")
    both = run("compare", cell.conf, cell.conf, *cell.paths, *words)
    assert both.code == 0 and both.json["same"]


def agree_on_a_saved_cycle(cell: Cell) -> None:
    """The first cycle of a simulation decides the same from its snapshot and from its record."""
    saved, record = cell.folder / "cycle.pumice", cell.folder / "record"
    assert cell.simulate("--save-cycle", "1", saved, "--record", record, "--json").json["digest"]
    cycle, following = run("schedule", saved, "--json").json, run("next", saved, "--json").json
    listed = run("explain", "--all", saved, "--json").json
    assert cycle["digest"] == following["digest"] == listed["proof"]["digest"]
    assert run("replay", record).code == 0
    assert pumice.load(str(saved)).schedule().digest == cycle["digest"]


def agree_on_more_room(cell: Cell) -> None:
    """With room for all, ``whatif`` places what waits for nothing else."""
    added = run("whatif", *cell.paths, "--from-conf", cell.conf, "--add-nodes", "20x8cpu,64Gi", "--json").json
    assert not added["not_placed"] and not [each for each in added["waiting"] if each["code"] == "Shortage"]
    assert set(added["placed"]) | set(added["admitted"]) >= set(cell.reasons) - {
        each["job"] for each in added["waiting"]
    }


ALL = (
    agree_on_one_cycle,
    agree_on_each_job,
    agree_with_the_text,
    agree_with_python,
    are_the_same_again,
    agree_on_a_saved_cycle,
    agree_on_more_room,
)
_FAST_TRACES = {("csv", "kai"), ("swf", "volcano"), ("swf", "kai"), ("philly", "pumice")}
#: Cells that are part of each run; the others are long.
_FAST_CELLS = {
    *(("volcano-job", conf) for conf in CONFS),
    *(("kai-pods", conf) for conf in CONFS),
    *((name, "volcano") for name in ("volcano-gang", "batch-job", "pods", "native-gang")),
    *((name, "kai") for name in ("kai-gang", "kai-batch-job", "kai-workload")),
}
_CELLS = [
    pytest.param(name, conf, id=f"{name}-{conf}", marks=() if (name, conf) in _FAST_CELLS else pytest.mark.long)
    for name in JOBS_INPUTS
    for conf in CONFS
]


@pytest.mark.parametrize(("name", "conf"), _CELLS)
def test_commands_agree_on_jobs(tmp_path: Path, name: str, conf: str) -> None:
    form = JOBS_INPUTS[name]
    cell = Cell(tmp_path, (written_input(tmp_path, form),), conf)
    if conf in _OWN[form.language]:
        agree_on_jobs_of_the_language(cell, is_gang=form.is_gang)
    else:
        agree_on_jobs_of_another_scheduler(cell)


def agree_on_jobs_of_the_language(cell: Cell, *, is_gang: bool) -> None:
    for check in ALL:
        check(cell)
    simulated = cell.simulate("--json").json
    assert cell.bound and simulated["completed"] == simulated["jobs"] - is_gang
    # The gang that never fits is named by both.
    never = [each["job"] for each in simulated["never_run"]]
    assert len(never) == is_gang and never == [each["job"] for each in simulated["waiting"]]
    for job in never:
        assert cell.run("explain", job, "--no-ways", "--json").json["verdict"] == "never"


def agree_on_jobs_of_another_scheduler(cell: Cell) -> None:
    for check in (agree_on_one_cycle, agree_on_each_job, agree_with_the_text):
        check(cell)
    sentences = {text for _, text in cell.reasons.values()}
    assert not cell.bound and len(sentences) == 1 and "its pods name the scheduler" in sentences.pop()
    simulated = cell.simulate("--json").json
    assert {each["job"]: (each["code"], each["why"]) for each in simulated["waiting"]} == cell.reasons


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(each, id=name_of(each), marks=() if name_of(each) in _FAST else pytest.mark.long)
        for each in MANIFESTS
    ],
)
def test_commands_agree_on_what_controllers_make(tmp_path: Path, manifest: Path) -> None:
    form = manifest.parent.name
    cell = Cell(tmp_path, (CLUSTERS[form], manifest), "kai" if form == "kai" else "volcano")
    for check in (agree_on_one_cycle, agree_on_each_job, agree_with_the_text, agree_with_python):
        check(cell)
    assert cell.bound and not cell.reasons


@pytest.mark.parametrize(
    ("name", "conf"),
    [
        pytest.param(name, conf, id=f"{name}-{conf}", marks=() if (name, conf) in _FAST_TRACES else pytest.mark.long)
        for name in TRACES
        for conf in CONFS
    ],
)
def test_commands_agree_on_a_trace(tmp_path: Path, name: str, conf: str) -> None:
    trace = TRACES[name]
    cell = Cell(tmp_path, (trace.written(tmp_path),), conf, trace.options)
    assert cell.simulate("--json").json["completed"] > 0
    if trace.options:  # commands of one cycle take no --nodes
        return
    for check in (agree_on_one_cycle, agree_on_each_job, agree_with_the_text, agree_with_python, are_the_same_again):
        check(cell)
