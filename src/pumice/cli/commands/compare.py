"""``pumice compare``: two policies on the same inputs, in many universes, on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct
from msgspec.structs import replace

from pumice.cli.answers.world import readable
from pumice.cli.errors import INTERRUPTED, InputError, InternalError
from pumice.cli.output import STDOUT, described, fail_for, print_json, say, takes_stdout, tell_input, written_whole
from pumice.cli.params import SPAN, STDIN, engine_option, require_there
from pumice.cli.policies import LENIENT_HELP, PolicyChoice, choose_policy, plugins_option, saved_policy
from pumice.cli.simulating import (
    Flags,
    read_scene,
    require_nodes,
    run_once,
    settings_of,
    simulation_options,
)
from pumice.cli.workers import Line, TaskResult, WorkerError, events_on

if TYPE_CHECKING:
    from pumice.report.comparison import PairedRuns, RunOutcome
    from pumice.sim.scenes.inputs import Inputs
    from pumice.sim.workloads.blocks import Blocks
    from pumice.sim.world import Progress

DEFAULT = "default"
SHAKE_S, REPEATS = 60.0, 5
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Job(Struct, frozen=True):
    """The argument of a worker: the input, and the text of each policy with the place that it came from."""

    inputs: tuple[str, ...]
    policies: tuple[tuple[str, str], ...]
    plugins_dir: str
    strict: bool
    flags: Flags
    block_s: float | None = None


class Task(Struct, frozen=True):
    """One run: which policy, in which universe."""

    side: int
    repeat: int


@click.command()
@click.argument("a", metavar="A.conf")
@click.argument("b", metavar="B.conf")
@click.argument("inputs", metavar="INPUT…", nargs=-1, required=True)
@plugins_option
@simulation_options
@click.option("--repeats", type=click.IntRange(1, 1000), metavar="N", help="Number of universes.  [default: 5]")
@click.option(
    "--blocks",
    type=SPAN,
    metavar="T",
    help="Universes are blocks of the input of length T, such as 7d, in place of moved arrivals.",
)
@engine_option
@click.option(
    "--workers", type=click.IntRange(1, 256), metavar="N", help="Number of processes.  [default: one per core]"
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="F.html",
    help="Write a report with the curves of both: one HTML file.",
)
@click.option(
    "--primary",
    default="wait.mean",
    show_default=True,
    metavar="FIGURE",
    help="Figure on which the comparison is decided, by its name in --json; none: all are equal.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a table.")
@click.option("--strict-conf/--lenient-conf", "strict", default=True, help=LENIENT_HELP)
@click.pass_context
def compare(
    ctx: click.Context,
    a: str,
    b: str,
    inputs: tuple[str, ...],
    plugins_dir: str,
    flags: Flags,
    repeats: int | None,
    blocks: float | None,
    engine: str,
    workers: int | None,
    report: Path | None,
    primary: str,
    as_json: bool,
    strict: bool,
) -> None:
    """Simulate each INPUT under the policies A and B, and show the differences with confidence intervals.

    Both get the same universes: the input with each arrival moved by up to --shake (default 60s; 0 for --repeats 1),
    with seeds from --seed on. Differences are taken within each universe. The interval contains the true mean in 95
    of 100 cases; if it contains 0, the difference may be chance. The word default means Volcano's default policy.
    With --blocks each universe is a part of the input, such as a week, that begins with an empty cluster.
    Ctrl-C ends early and compares what both have finished. Unusable input is named, and the exit code is 1.
    The file - is standard input, for one policy or one INPUT, and standard output for --report.

    \b
    Examples:
      pumice compare default new.conf examples/demo
      pumice compare old.conf new.conf traces/philly-gavel --until 30d --report compare.html
      pumice compare old.conf new.conf all.yaml --faults node-gone=6h --repeats 20 --json
      pumice compare old.conf new.conf traces/theta-2023 --blocks 7d
    """
    takes_stdout((report,), as_json=as_json)
    inputs = ctx.with_resource(readable(inputs))
    require_there(inputs)
    if blocks and repeats:
        raise InputError("found --blocks and --repeats, wanted one of them: each block is one universe")
    if not blocks:
        flags = replace(flags, shake=flags.shake or (SHAKE_S if repeats != 1 else None))
    chosen = [choose_policy(_conf_of(text), (), strict=strict, plugins_dir=plugins_dir) for text in (a, b)]
    job = Job(inputs, tuple((each.text, each.where) for each in chosen), plugins_dir, strict, flags, blocks)
    found = _checked(inputs, flags)
    repeats = _count_blocks(found, blocks) if blocks else repeats or REPEATS
    with ExitStack() as files:
        page = files.enter_context(written_whole(report)) if report else None
        outcomes, interrupted = _run_all(job, repeats, engine, workers or _cores(), chosen)
        compared = _compared(outcomes, found, chosen, job, repeats, primary)
        if compared is None:
            say("interrupted: no universe is finished under both policies, so there is nothing to compare")
            ctx.exit(INTERRUPTED)
        if page is not None:
            from pumice.report.comparison_page import comparison_data
            from pumice.report.html import render

            page.write(render(comparison_data(compared)))
    _print(compared, found, report, as_json=as_json)
    if interrupted:
        say(f"interrupted: {len(compared.pairs)} of {repeats} universes are compared")
        ctx.exit(INTERRUPTED)
    fail_for(ctx, found.scene.problems)


def _print(compared: PairedRuns, found: Inputs, report: Path | None, *, as_json: bool) -> None:
    """Print the comparison unless its report is standard output, and say where the report is."""
    if as_json:
        print_json(compared.to_json() | {"problems": described(found.scene.problems)})
    elif report != STDOUT:
        from pumice.cli.comparison import print_comparison

        print_comparison(compared)
    if report not in (None, STDOUT):
        say(f"wrote {report}")


def _checked(inputs: tuple[str, ...], flags: Flags) -> Inputs:
    """Return what was read, after its problems were printed. Raises: InputError."""
    found = read_scene(inputs, flags)
    tell_input(found.scene.problems, found.scene.notes)
    require_nodes(found, inputs)
    settings_of(found, flags)
    return found


def _conf_of(text: str) -> Path | None:
    """Return the policy file, or None for the default policy. Raises: InputError."""
    if text == DEFAULT and not Path(text).exists():
        return None
    if text != STDIN:
        require_there((text,))
    if Path(text).is_dir():
        raise InputError(f"{text}: found a folder, wanted a policy file, or the word {DEFAULT}")
    return Path(text)


def _chosen(job: Job, side: int, *, tell: bool) -> PolicyChoice:
    text, where = job.policies[side]
    return saved_policy(text, where, strict=job.strict, plugins_dir=job.plugins_dir, tell=tell)


def _cores() -> int:
    return len(os.sched_getaffinity(0))


# -- in a worker


def prepare(job: Job) -> Callable[[Task, Line], RunOutcome]:
    """Read everything once. Return a function that simulates one task."""
    from pumice.report.comparison import outcome_of
    from pumice.report.summary import summarise

    found = read_scene(job.inputs, job.flags)
    blocks = _blocks(found, job.block_s) if job.block_s else None
    policies = [_chosen(job, side, tell=False).policy for side in (0, 1)]

    def do(task: Task, line: Line) -> RunOutcome:
        flags = replace(job.flags, seed=job.flags.seed + task.repeat)
        universe = found if blocks is None else replace(found, scene=blocks[task.repeat])

        def watch(now: Progress) -> None:
            line.tell(_part(now, universe, flags))

        run = run_once(universe, policies[task.side], flags, progress=watch)
        return outcome_of(summarise(run), flags.seed, with_curves=task.repeat == 0)

    return do


def _blocks(found: Inputs, block_s: float) -> Blocks:
    """Return the blocks of the input. Raises: InputError."""
    from pumice.sim.workloads.blocks import BlockError, Blocks

    try:
        return Blocks(found.scene, block_s)
    except BlockError as error:
        raise InputError(f"--blocks: {error}") from None


def _count_blocks(found: Inputs, block_s: float) -> int:
    """Return the number of blocks, after saying what is left out. Raises: InputError."""
    blocks = _blocks(found, block_s)
    if blocks.left_out:
        say(f"jobs that arrive after the last whole block are left out: {blocks.left_out}")
    return len(blocks)


def _part(now: Progress, found: Inputs, flags: Flags) -> float:
    """Return how far a run is, 0 to 1: by simulated time if it has an end, else by jobs."""
    if flags.until is not None:
        return min((now.now - found.newest) / flags.until, 1.0)
    return now.ended / max(now.jobs, 1)


# -- in the command


def _run_all(
    job: Job, repeats: int, engine: str, workers: int, chosen: Sequence[PolicyChoice]
) -> tuple[dict[Task, RunOutcome], bool]:
    """Return (outcomes of finished runs, whether Ctrl-C ended it)."""
    from pumice.cli.progress import sharing_out

    for name in _THREADS:  # a run is one thread, and there are as many runs as cores
        os.environ.setdefault(name, "1")
    tasks = [Task(side, repeat) for repeat in range(repeats) for side in (0, 1)]
    outcomes: dict[Task, RunOutcome] = {}
    try:
        with closing(events_on(engine, workers, prepare, job, tasks)) as events, sharing_out(len(tasks)) as show:
            for event in events:
                if isinstance(event, TaskResult):
                    task = tasks[event.task]
                    outcomes[task] = event.value
                    show(event.task, 1.0)
                    seed = job.flags.seed + task.repeat
                    say(f"{len(outcomes)} of {len(tasks)} runs: {chosen[task.side].where}, seed {seed}")
                else:
                    show(event.task, event.done)
    except KeyboardInterrupt:
        return outcomes, True
    except WorkerError as error:
        if os.environ.get("PUMICE_DEBUG", "") not in ("", "0"):
            say(error.text)
        raise InternalError(str(error)) from None
    return outcomes, False


def _compared(
    outcomes: dict[Task, RunOutcome],
    found: Inputs,
    chosen: Sequence[PolicyChoice],
    job: Job,
    repeats: int,
    primary: str,
) -> PairedRuns | None:
    """Return the comparison of universes that both policies have finished, None if there is none."""
    from pumice.report.comparison import NoSuchFigure, PairedRuns, primary_of

    pairs = [
        (outcomes[Task(0, repeat)], outcomes[Task(1, repeat)])
        for repeat in range(repeats)
        if Task(0, repeat) in outcomes and Task(1, repeat) in outcomes
    ]
    if not pairs:
        return None
    names = (chosen[0].label, chosen[1].label)
    try:
        name = primary_of(primary, pairs[0][0])
    except NoSuchFigure as error:
        raise InputError(f"--primary {error}") from None
    shake_s, block_s = job.flags.shake or 0.0, job.block_s or 0.0
    return PairedRuns(names, tuple(found.sources), len(found.nodes), shake_s, tuple(pairs), name, block_s)
