"""``pumice simulate``: a workload on a simulated cluster, under a real policy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from pumice.cli.errors import INTERRUPTED, InputError
from pumice.cli.output import described, fail_for, print_json, say, tell_problems, written_whole
from pumice.cli.params import SPAN, require_there
from pumice.cli.policies import CONF_HELP, LENIENT_HELP, Chosen, choose_policy, plugins_option
from pumice.runtime.printing import json_text

if TYPE_CHECKING:
    from pumice.report.summary import Summary
    from pumice.sim.inputs import Inputs
    from pumice.sim.run import Run

Tell = Callable[[Mapping[str, object]], object]


@click.command()
@click.argument("inputs", metavar="INPUT…", nargs=-1, required=True)
@click.option("--conf", type=click.Path(path_type=Path), help=CONF_HELP)
@plugins_option
@click.option(
    "--nodes",
    metavar="SPEC",
    help="The cluster, in place of the input's: 125x4gpu or 16:cpu=32,memory=256Gi,gpu=4, groups split by ;",
)
@click.option("--until", type=SPAN, metavar="T", help="Stop after this much simulated time: 90s, 12h, 7d.")
@click.option(
    "--faults",
    metavar="PLAN",
    help="What goes wrong: refused=2%,late=5%,node-gone=6h,pod-deleted=1h (each is optional).",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    metavar="N",
    help="Seed of the dice of --faults. Nothing else is random.",
)
@click.option(
    "--events",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="F.jsonl",
    help="Write every event as a line of JSON.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="F.html",
    help="Write a report with plots: one HTML file.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of tables.")
@click.option("--strict-conf/--lenient-conf", "strict", default=True, help=LENIENT_HELP)
@click.pass_context
def simulate(
    ctx: click.Context,
    inputs: tuple[str, ...],
    conf: Path | None,
    plugins_dir: str,
    nodes: str | None,
    until: float | None,
    faults: str | None,
    seed: int,
    events: Path | None,
    report: Path | None,
    as_json: bool,
    strict: bool,
) -> None:
    """Simulate each INPUT together: manifests (files or folders) and traces.

    A trace is recognised by its content, or named: philly-gavel:, acme:, tiresias:, swf:, openb: before the path. A
    folder with a volcano-scheduler.conf brings its own policy. The same input gives the same decisions, and so the same
    digest, always. Ctrl-C ends early with what was done so far. What could not be used is named, the rest is simulated,
    and the exit code is 1.

    \b
    Examples:
      pumice simulate examples/demo --report demo.html
      pumice simulate traces/philly-gavel --json
      pumice simulate swf:theta_2022.swf --until 30d --events events.jsonl
      pumice simulate jobs.yaml --nodes "8:cpu=64,memory=512Gi,gpu=8" --conf volcano-scheduler.conf
    """
    from pumice.sim.inputs import read_inputs
    from pumice.sim.traces.trace import TraceError

    require_there(inputs)
    try:
        found = read_inputs(inputs, nodes)
    except TraceError as error:
        raise InputError(str(error)) from None
    chosen = choose_policy(conf, found.confs, strict=strict, plugins_dir=plugins_dir)
    tell_problems(found.scene.problems)
    for note in found.scene.notes:
        say(f"note: {note}")
    _require_nodes(found)
    with ExitStack() as files:
        tell = files.enter_context(_event_file(events)) if events else None
        page = files.enter_context(written_whole(report)) if report else None
        run = _run(found, chosen, until, faults, seed, tell)
        summary = _summary(run)
        if page is not None:
            _write_report(page, summary, found, chosen)
    _print(summary, found, chosen, seed, as_json)
    for path in (events, report):
        if path is not None:
            say(f"wrote {path}")
    if run.result.ending == "interrupted":
        say("interrupted: the figures are those of the time until then")
        ctx.exit(INTERRUPTED)
    fail_for(ctx, found.scene.problems)


def _require_nodes(found: Inputs) -> None:
    if found.nodes:
        return
    if not found.scene.objects and not found.scene.works:
        raise InputError("nothing in the input can be used")
    raise InputError("there are no nodes in the input; give --nodes, such as --nodes 16x4gpu")


@contextmanager
def _event_file(path: Path) -> Iterator[Tell]:
    with written_whole(path) as file:

        def tell(event: Mapping[str, object]) -> None:
            file.write(json_text(event) + "\n")

        yield tell


def _run(found: Inputs, chosen: Chosen, until: float | None, faults: str | None, seed: int, tell: Tell | None) -> Run:
    from pumice.cli.interrupt import stopped_by_ctrl_c
    from pumice.cli.progress import simulating
    from pumice.sim.run import simulate as run_simulation

    plan = None
    if faults is not None:
        from pumice.cli.faults import parse_faults

        last = max((work.arrival_s for work in found.scene.works), default=0.0)
        plan = parse_faults(faults, quiet_after_s=last + 3600.0 if until is None else until)
    with simulating(found.newest, until) as show, stopped_by_ctrl_c(show) as observe:
        run = run_simulation(
            found.scene,
            chosen.policy,
            start=found.newest,
            until=until,
            seed=seed,
            faults=plan,
            clock=time.perf_counter,
            observe=observe,
            tell=tell,
        )
    if tell is not None:
        result = run.result
        tell({"t": round(result.simulated_s, 6), "event": "end", "ending": result.ending.value, "digest": run.digest})
    return run


def _summary(run: Run) -> Summary:
    from pumice.report.summary import summarise

    return summarise(run)


def _write_report(page: IO[str], summary: Summary, found: Inputs, chosen: Chosen) -> None:
    from pumice.report.data import report_data
    from pumice.report.html import render

    page.write(render(report_data(summary, found, chosen.where)))


def _print(summary: Summary, found: Inputs, chosen: Chosen, seed: int, as_json: bool) -> None:
    if not as_json:
        from pumice.cli.summary import print_summary

        print_summary(summary, found, chosen.where)
        return
    problems = described(found.scene.problems)
    problems += [{"severity": "warning", "where": "simulation", "what": text} for text in summary.run.result.problems]
    print_json(
        summary.to_json()
        | {"problems": problems, "notes": list(found.scene.notes), "sources": list(found.sources), "conf": chosen.where}
        | {"nodes": len(found.nodes), "seed": seed}
    )
