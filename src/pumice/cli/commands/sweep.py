"""``pumice sweep``: many simulations that differ in policy, arguments, size and seed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from msgspec import Struct
from msgspec.structs import replace

from pumice.cli.answers.world import readable
from pumice.cli.errors import FAILED, INTERRUPTED, STDIN_NAME, InputError
from pumice.cli.output import STDOUT, fail_for, print_json, say, takes_stdout, tell_input
from pumice.cli.params import STDIN, engine_option
from pumice.cli.policies import stdin_policy
from pumice.reasons.words import counted

if TYPE_CHECKING:
    from pumice.sweeps.engines import Engine
    from pumice.sweeps.folder import SweepFolder
    from pumice.sweeps.plan import Plan
    from pumice.sweeps.precision import Precision
    from pumice.sweeps.request import Request
    from pumice.sweeps.results import Setting
    from pumice.sweeps.running import Failure

_SHARD = re.compile(r"(\d{1,6})/(\d{1,6})")
_MERGE = "merge"
_TIMES = ("until", "period", "warm_up", "cool_down", "shake")


class _Options(Struct, frozen=True):
    out: Path
    shard: tuple[int, int]
    engine: str
    workers: int
    figure: str
    as_json: bool
    heat: Path | None
    precision: Precision | None


@click.command()
@click.argument("words", metavar="PLAN|INPUT…", nargs=-1, required=True)
@click.option("--policy", "policies", multiple=True, metavar="CONF", help="Policy file, - or default. Can be repeated.")
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="PLUGIN.ARG=V,…",
    help="Values of an argument of a plugin. Given several times: all combinations.",
)
@click.option("--nodes", multiple=True, metavar="SPEC,…", help="Cluster sizes, such as 100x8gpu,120x8gpu.")
@click.option("--seeds", default="0", show_default=True, metavar="A..B", help="Seeds of --shake: 0..19 or 1,5,7.")
@click.option(
    "--until",
    multiple=True,
    metavar="T|RULE",
    help="Stop each simulation after this time (7d), or add seeds until a figure is precise enough "
    "('wait.mean ± 2 %'). Can be given twice, for both.",
)
@click.option("--period", default="1s", show_default=True, metavar="T", help="Schedule period.")
@click.option("--warm-up", metavar="T", help="Measure from T after the start.")
@click.option("--cool-down", metavar="T", help="Measure until T before the last arrival, or before --until.")
@click.option("--shake", metavar="T", help="Move each arrival by up to T.  [default: 60s if there are several seeds]")
@click.option("--plugins-dir", default="", metavar="DIR", help="Folder with your plugins. They are executed.")
@click.option("--columns", default="", metavar="FIELD=COLUMN,…", help="Columns of plain tables, as in pumice simulate.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Folder of the results.")
@click.option("--shard", metavar="I/N", help="Run the I-th of N parts only; merge them afterwards.")
@engine_option
@click.option("--workers", type=click.IntRange(1, 256), metavar="N", help="Local processes.  [default: one per core]")
@click.option(
    "--heat-map",
    "heat",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="F.html",
    help="Write a heat map of settings that differ in two things.",
)
@click.option("--figure", default="wait_mean", show_default=True, metavar="NAME", help="Figure that decides the best.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a table.")
def sweep(
    words: tuple[str, ...],
    out: Path | None,
    shard: str | None,
    engine: str,
    workers: int | None,
    figure: str,
    as_json: bool,
    heat: Path | None,
    **given: Any,
) -> None:
    """Simulate INPUTs under all combinations of policies, arguments, sizes and seeds, and show which setting is best.

    A PLAN is a TOML or YAML file with the same words as the options. All problems are named before the first run.
    Each finished universe is kept in the folder of the results, under the digest of its inputs: the same command goes
    on where it was stopped, and runs nothing twice. table.arrow has a row for each universe. The best setting is
    compared with each other one within seeds; the intervals are corrected for their number.

    The file - is standard input, for an INPUT, a PLAN in YAML or a policy, and standard output for --heat-map.

    merge DIR… after the PLAN or INPUTs puts the results of shards together.

    \b
    Examples:
      pumice sweep examples/sweep.toml
      pumice sweep traces/philly --policy default --policy drf.conf --nodes 100x8gpu,120x8gpu --seeds 0..19 --until 7d
      pumice sweep jobs.yaml --set nodeorder.leastrequested.weight=1,5,10 --seeds 0..4 --shake 5m
      pumice sweep jobs.yaml --policy default,drf.conf --until 7d --until "wait.mean ± 2 %"
      pumice sweep examples/sweep.toml --shard 1/4 --out part-1
      pumice sweep examples/sweep.toml merge part-1 part-2 part-3 part-4 --out whole
    """
    from pumice.library.errors import InputError as Wrong
    from pumice.sweeps.plan import plan_of

    ctx = click.get_current_context()
    takes_stdout((heat,), as_json=as_json)
    named, parts = _divided(words)
    inputs = list(ctx.with_resource(readable(named)))
    defaults = {name for name in given if ctx.get_parameter_source(name) is ParameterSource.DEFAULT}
    request = _request(inputs, given, defaults, Path() if STDIN in named else None)
    precision = _precision_of(request, in_parts=bool(parts or shard))
    out = out or Path(f"{Path(inputs[0].rpartition(':')[2]).stem}.sweep")
    workers = workers or len(os.sched_getaffinity(0))
    options = _Options(out, _shard_of(shard), engine, workers, figure, as_json, heat, precision)
    request, texts = _with_stdin(request)
    try:
        plan = plan_of(request, texts)
    except Wrong as error:
        raise InputError(error.problems) from None
    tell_input(plan.problems, plan.notes)
    if parts:
        _merge(ctx, plan, parts, options)
    else:
        _run(ctx, plan, options)
    fail_for(ctx, plan.problems)


def _divided(words: Sequence[str]) -> tuple[list[str], list[Path]]:
    """Return (plan or inputs, folders to merge)."""
    place = words.index(_MERGE) if _MERGE in words else len(words)
    inputs, parts = list(words[:place]), [Path(each) for each in words[place + 1 :]]
    if not inputs or (place < len(words) and not parts):
        raise InputError("wanted a plan or inputs, then merge and the folders of all shards")
    if gone := [path for path in parts if not path.is_dir()]:
        raise InputError(f"{path}: no such folder" for path in gone)
    return inputs, parts


def _precision_of(request: Request, *, in_parts: bool) -> Precision | None:
    """Raises: InputError."""
    from pumice.sweeps.precision import parse

    if not request.precision:
        return None
    if in_parts:
        raise InputError(
            f"--until {request.precision}: each shard would stop for itself; wanted no --shard and no merge"
        )
    try:
        return parse(request.precision)
    except ValueError as error:
        raise InputError(f"--until: {error}") from None


def _request(inputs: list[str], given: dict[str, Any], defaults: set[str], folder: Path | None) -> Request:
    """Return the request of a plan file, or of the flags. ``folder``: see ``read_request``. Raises: InputError."""
    from pumice.sweeps.request import (
        PRECISION_SEEDS,
        Request,
        divided,
        is_request_file,
        read_request,
        settings_of_flags,
        sizes_of,
    )

    try:
        if len(inputs) == 1 and is_request_file(Path(inputs[0])):
            if both := sorted(given.keys() - defaults):
                flags = ", ".join(f"--{name.replace('_', '-')}" for name in both)
                raise InputError(f"{inputs[0]}: the plan says what to run; leave out {flags}")
            return read_request(Path(inputs[0]), folder)
        until, precision = divided(given["until"])
        seeds = PRECISION_SEEDS if precision and given["seeds"] == "0" else given["seeds"]
        shake = given["shake"] or ("60s" if seeds != "0" else None)
        times = {name: given[name] for name in _TIMES} | {"shake": shake, "until": until}
        return Request(
            inputs=inputs,
            policies=[name for text in given["policies"] for name in text.split(",")],
            arguments=settings_of_flags(given["sets"]),
            nodes=sizes_of(given["nodes"]),
            seeds=seeds,
            plugins_dir=given["plugins_dir"],
            columns=given["columns"],
            precision=precision,
            **times,
        )
    except ValueError as error:
        raise InputError(str(error)) from None


def _with_stdin(request: Request) -> tuple[Request, dict[str, str]]:
    """Return the request with another name in the place of the policy ``-``, and the text of that policy by its name.
    Raises: InputError, PolicyError."""
    if STDIN not in request.policies:
        return request, {}
    names = [STDIN_NAME if name == STDIN else name for name in request.policies]
    return replace(request, policies=names), {STDIN_NAME: stdin_policy()}


def _shard_of(text: str | None) -> tuple[int, int]:
    if text is None:
        return 1, 1
    found = _SHARD.fullmatch(text)
    number, count = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= number <= count:
        raise InputError(f"--shard: found {text[:40]!r}, wanted I/N such as 1/4")
    return number, count


def _run(ctx: click.Context, plan: Plan, options: _Options) -> None:
    from pumice.cli.progress import counting
    from pumice.library.errors import InputError as Wrong
    from pumice.sweeps.engines import engine_of
    from pumice.sweeps.folder import SweepFolder
    from pumice.sweeps.running import run_all

    folder = SweepFolder(options.out)
    wanted = plan.shard(*options.shard)
    done = sum(folder.row(each.digest) is not None for each in wanted)
    say(f"{counted(len(wanted), 'universe')}, {done:,} finished before; results in {options.out}")
    failures: list[Failure] = []
    try:
        with counting("universes") as show, engine_of(options.engine, options.workers) as engine:

            def finished(universe: object) -> None:
                nonlocal done
                done += 1
                show(done, len(wanted), str(universe))

            if options.precision is None:
                failures = run_all(wanted, engine, folder, finished)
            else:
                plan, failures = _until_precise(plan, options.precision, engine, folder, finished)
    except Wrong as error:
        raise InputError(error.problems) from None
    except KeyboardInterrupt:
        say(f"interrupted: {done} of {len(wanted)} universes are finished; the same command goes on")
        ctx.exit(INTERRUPTED)
    for each in failures:
        say(f"error: {each.universe}: {each.why}")
    if options.shard == (1, 1):
        _conclude(plan, folder, options, failures)
    else:
        say(f"shard {options.shard[0]} of {options.shard[1]}: {done} of {len(wanted)} universes are finished")
    if failures:
        ctx.exit(FAILED)


def _until_precise(
    plan: Plan, rule: Precision, engine: Engine, folder: SweepFolder, finished: Callable[[object], None]
) -> tuple[Plan, list[Failure]]:
    """Run seeds until the rule holds. Return the plan of those that were run. Raises: library InputError."""
    from pumice.library.errors import InputError as Wrong
    from pumice.sweeps.precision import rounds, up_to, widest
    from pumice.sweeps.results import rows_of
    from pumice.sweeps.running import run_all

    failures: list[Failure] = []
    for seeds, universes in rounds(plan):
        failures += run_all(universes, engine, folder, finished)
        known = up_to(plan, seeds)
        try:
            share = widest(rows_of(known, folder), rule.figure)
        except ValueError as error:
            raise Wrong(f"--until: {error}") from None
        if share <= rule.share or failures:
            say(f"{rule}: ± {100 * share:.2g} % after {seeds} seeds")
            return known, failures
    say(f"warning: {rule}: ± {100 * share:.2g} % after all {seeds} seeds; name more with --seeds")
    return plan, failures


def _merge(ctx: click.Context, plan: Plan, parts: Sequence[Path], options: _Options) -> None:
    from pumice.sweeps.folder import SweepFolder

    folder, digests = SweepFolder(options.out), [each.digest for each in plan.universes]
    for part in parts:
        say(f"{part}: {counted(folder.take(SweepFolder(part), digests), 'universe')}")
    missing = [each for each in plan.universes if folder.row(each.digest) is None]
    if missing:
        say(f"error: {len(missing)} of {len(digests)} universes are in no part, such as {missing[0]}")
    _conclude(plan, folder, options, ())
    if missing:
        ctx.exit(FAILED)


def _conclude(plan: Plan, folder: SweepFolder, options: _Options, failures: Sequence[Failure]) -> None:
    """Write the table, and print settings by the figure."""
    from pumice.cli.answers.sweep import described, print_settings
    from pumice.sweeps.results import arrow_bytes, rows_of, settings_by, table_of

    found = rows_of(plan, folder)
    if not found:
        return
    folder.put_table(arrow_bytes(table_of(plan, found)))
    try:
        settings = settings_by(found, options.figure)
    except ValueError as error:
        raise InputError(f"--figure: {error}") from None
    if options.as_json:
        counts = {"universes": len(plan.universes), "finished": len(found)}
        print_json(described(settings, options.figure, counts, failures))
    elif options.heat != STDOUT:
        print_settings(settings, options.figure, len(found))
    say(f"wrote {folder.table_path}")
    _map(settings, options)


def _map(settings: Sequence[Setting], options: _Options) -> None:
    """Write the heat map, if one is wanted. Raises: InputError for settings that have none."""
    from pumice.cli.answers.sweep import cell_text
    from pumice.cli.output import written_whole
    from pumice.report.comparison import less_is_better
    from pumice.sweeps.heat import heat_map, html_of

    if options.heat is None:
        return
    found = heat_map(settings, options.figure, less_is_better=bool(less_is_better(options.figure)))
    if found is None:
        raise InputError("--heat-map: wanted settings that differ in two of policy, nodes and arguments")
    shown = [["" if each is None else cell_text(each, options.figure) for each in row] for row in found.cells]
    with written_whole(options.heat) as page:
        page.write(html_of(found, shown))
    if options.heat != STDOUT:
        say(f"wrote {options.heat}")
