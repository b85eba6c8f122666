"""``pumice simulate``: a workload on a simulated cluster, under a real policy."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pumice.cli.answers.recording import RecordFlags, record_options, recording
from pumice.cli.answers.run_files import FILE, RunFiles, TakeEvent, file_options, opened
from pumice.cli.answers.world import readable
from pumice.cli.errors import FAILED, INTERRUPTED, InputError
from pumice.cli.output import (
    STDOUT,
    described,
    fail_for,
    print_json,
    say,
    takes_stdout,
    tell_input,
    tell_problems,
    write_snapshot,
)
from pumice.cli.params import require_there
from pumice.cli.policies import CONF_HELP, LENIENT_HELP, PolicyChoice, choose_policy, plugins_option
from pumice.cli.simulating import Flags, read_scene, require_nodes, run_once, simulation_options

if TYPE_CHECKING:
    from pumice.columns.snapshot import Snapshot
    from pumice.report.summary import Summary
    from pumice.sim.run import Run
    from pumice.sim.scenes.inputs import Inputs


@click.command()
@click.argument("inputs", metavar="INPUT…", nargs=-1, required=True)
@click.option("--conf", type=click.Path(path_type=Path), help=CONF_HELP)
@plugins_option
@simulation_options
@file_options
@click.option(
    "--save-cycle",
    type=(click.IntRange(1), FILE),
    metavar="N FILE",
    help="Write the input of the Nth cycle (cluster, policy, time) to a file for pumice schedule.",
)
@record_options
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of tables.")
@click.option("--strict", "is_strict", is_flag=True, help="Exit with 1 if a job can never run.")
@click.option("--strict-conf/--lenient-conf", "strict", default=True, help=LENIENT_HELP)
@click.pass_context
def simulate(
    ctx: click.Context,
    inputs: tuple[str, ...],
    conf: Path | None,
    plugins_dir: str,
    flags: Flags,
    files: RunFiles,
    save_cycle: tuple[int, Path] | None,
    record: RecordFlags | None,
    as_json: bool,
    is_strict: bool,
    strict: bool,
) -> None:
    """Simulate all INPUTs together: manifests (files or folders) and traces.

    A trace is recognised by its content, or by its format before the path, such as swf: or csv:. A
    volcano-scheduler.conf in a folder is used as the policy. The same input always gives the same decisions, and so
    the same digest. Ctrl-C ends early with the results so far. Unusable input is named, the rest is simulated, and the
    exit code is 1; jobs that can never run are named, and are an error with --strict. The file - is standard input, and
    for --events, --jobs, --perfetto, --report and --save-cycle standard output, which replaces the summary. One run
    proves little: see --shake.

    \b
    Examples:
      pumice simulate examples/demo --report demo.html
      pumice simulate traces/philly-gavel --json
      pumice simulate swf:theta_2022.swf --until 30d --events events.jsonl
      pumice simulate traces/philly-gavel --until 60d --warm-up 7d --cool-down 7d --jobs jobs.csv
      pumice simulate examples/demo --shake 60s --seed 3
      pumice simulate jobs.yaml --nodes "8:cpu=64,memory=512Gi,gpu=8" --conf volcano-scheduler.conf
      pumice simulate examples/demo --save-cycle 12 cycle.pumice && pumice schedule cycle.pumice
      pumice simulate examples/demo --record rec && pumice story demo/bert-elastic rec
    """
    is_piped = takes_stdout((*files.paths, save_cycle and save_cycle[1]), as_json=as_json)
    with readable(inputs) as paths:
        require_there(paths)
        found = read_scene(paths, flags)
    chosen = choose_policy(conf, found.confs, strict=strict, plugins_dir=plugins_dir, is_kai=found.is_kai)
    tell_input(found.scene.problems, found.scene.notes)
    require_nodes(found, inputs)
    with opened(files, found) as writers:
        saving = None if save_cycle is None else _Saving(*save_cycle, chosen)
        run = _run(found, chosen, flags, writers.tell, saving, record)
        summary = _summary(run)
        writers.end(summary, found, chosen.label)
    tell_problems(summary.problems)
    if not is_piped:
        _print(summary, found, chosen, flags, as_json)
    for path in (*files.paths, record and record.folder, saving.path if saving and saving.is_done else None):
        if path not in (None, STDOUT):
            say(f"wrote {path}")
    _end(ctx, summary, found, saving, is_strict=is_strict)


def _end(ctx: click.Context, summary: Summary, found: Inputs, saving: _Saving | None, *, is_strict: bool) -> None:
    """Exit with the code that the run and its input come to. Raises: InputError for a cycle that did not happen."""
    result = summary.run.result
    if result.ending == "interrupted":
        say("interrupted: the figures cover the time until then")
        ctx.exit(INTERRUPTED)
    if saving:
        saving.require_done(result.cycles)
    fail_for(ctx, [*found.scene.problems, *summary.problems])
    if is_strict and any(each.impossible is not None for each in summary.run.stuck):
        ctx.exit(FAILED)


class _Saving:
    """Writes the cycle of one number when it begins. Raises: InputError where it cannot be."""

    def __init__(self, number: int, path: Path, chosen: PolicyChoice) -> None:
        if not path.parent.is_dir():
            raise InputError(f"{path}: the folder {path.parent} does not exist")
        self.number, self.path, self.is_done = number, path, False
        self._chosen = chosen

    def __call__(self, number: int, now: float, snapshot: Snapshot) -> None:
        from pumice.runtime.files.snapshot_file import Cycle, SnapshotError
        from pumice.runtime.policy.conf import shown_text

        if number != self.number:
            return
        cycle = Cycle(snapshot, now, shown_text(self._chosen.text), lenient=bool(self._chosen.policy.warnings))
        try:
            write_snapshot(self.path, cycle)
        except SnapshotError as error:
            raise InputError(f"--save-cycle {number}: the snapshot {error}") from None
        self.is_done = True

    def require_done(self, cycles: int) -> None:
        """Raises: InputError if there was no such cycle."""
        if not self.is_done:
            raise InputError(f"--save-cycle {self.number}: there were {cycles} cycles; {self.path} is not written")


def _run(
    found: Inputs,
    chosen: PolicyChoice,
    flags: Flags,
    tell: TakeEvent | None,
    saving: _Saving | None,
    record: RecordFlags | None,
) -> Run:
    from pumice.cli.interrupt import stopped_by_ctrl_c
    from pumice.cli.progress import simulating

    recorder_in = nullcontext() if record is None else recording(record, chosen.text, chosen.policy)
    with simulating(found.newest, flags.until) as show, stopped_by_ctrl_c(show) as progress, recorder_in as recorder:
        run = run_once(found, chosen.policy, flags, progress=progress, event=tell, began=saving, recorder=recorder)
    return run


def _summary(run: Run) -> Summary:
    from pumice.report.summary import summarise

    return summarise(run)


def _print(summary: Summary, found: Inputs, chosen: PolicyChoice, flags: Flags, as_json: bool) -> None:
    if not as_json:
        from pumice.cli.summary import print_summary

        print_summary(summary, found, chosen.label)
        return
    print_json(
        summary.to_json()
        | {
            "problems": described([*found.scene.problems, *summary.problems]),
            "notes": list(found.scene.notes),
            "sources": list(found.sources),
            "conf": chosen.where,
            "left_out_actions": list(chosen.left_out),
            "nodes": len(found.nodes),
            "seed": flags.seed,
            "period_s": flags.period,
            "shake_s": flags.shake or 0.0,
        }
    )
