"""``pumice fill``: how much of a cluster's GPUs policies give away, beside what was published."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from pumice.cli.answers.world import readable
from pumice.cli.console import Table, columns
from pumice.cli.errors import InputError
from pumice.cli.output import (
    STDOUT,
    console,
    described,
    fail_for,
    print_json,
    say,
    takes_stdout,
    tell_problems,
    written_whole,
)
from pumice.cli.params import STDIN
from pumice.library.filling import FIRST_SEED, REPEATS_MAX, UNTIL, policy_names, published_of, read_fill, summary_of

if TYPE_CHECKING:
    from pumice.library.filling import FillTrace
    from pumice.report.fill import FillSummary


HEADS = ("policy", "GPU allocation", "± sd", "published", "± sd", "within", "at the end", "CPU s a fill")
_FILE = click.Path(path_type=Path, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


@click.command()
@click.argument("trace", metavar="TRACE", type=click.Path(path_type=Path))
@click.option("--policies", metavar="A,B", help="Policies, separated by commas.  [default: all]")
@click.option(
    "--until",
    type=click.FloatRange(0.01, 10.0),
    default=UNTIL,
    show_default=True,
    help="Stop when pods have requested this many times the cluster's GPUs.",
)
@click.option("--repeats", type=click.IntRange(1, REPEATS_MAX), default=10, show_default=True, help="Fills per policy.")
@click.option(
    "--seed", type=click.IntRange(0, 2**31), default=FIRST_SEED, show_default=True, help="Seed of the first fill."
)
@click.option("--expected", type=_FOLDER, metavar="DIR", help="Tables of the study, to print beside the results.")
@click.option("--bound", is_flag=True, help="Compute the upper bound for any policy (extra bounds: HiGHS).")
@click.option("--all-nodes", is_flag=True, help="Include the nodes without GPUs, which the study left out.")
@click.option("--nodes", type=_FILE, metavar="F.csv", help="Node list.  [default: the one beside TRACE]")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a table.")
@click.option("--report", type=_FILE, metavar="F.html", help="Write the table and the curves: one HTML file.")
@click.pass_context
def fill(
    ctx: click.Context,
    trace: Path,
    policies: str | None,
    until: float,
    repeats: int,
    seed: int,
    expected: Path | None,
    bound: bool,
    all_nodes: bool,
    nodes: Path | None,
    as_json: bool,
    report: Path | None,
) -> None:
    """Fill the cluster of an openb TRACE (a pod list, or its folder) with pods drawn from it at random, and print what
    share of the GPUs each policy has allocated when the pods have requested as many as there are.

    As in the study of GPU fragmentation (Weng et al., USENIX ATC'23), a pod without a place is dropped, and no pod
    ends. The same seed gives the same fill; fill i has the seed SEED + i. The file - is standard input, for the pod
    list, beside which there is no node list, or for --nodes, and standard output for --report.

    \b
    Examples:
      pumice fill traces/openb-2023 --repeats 3
      pumice fill openb-2023/openb_pod_list_gpuspec33.csv --policies bestfit,fgd --expected openb-2023/expected
      pumice fill traces/openb-2023 --json --report fill.html
      zcat pods.csv.gz | pumice fill - --nodes openb-2023/openb_node_list_gpu_node.csv
    """
    is_piped = takes_stdout((report,), as_json=as_json)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    if str(trace) == STDIN and nodes is None:
        raise InputError("-: found a pod list without a node list beside it, wanted --nodes")
    with readable([str(path) for path in (trace, nodes) if path is not None]) as paths, _named():
        names = policy_names(None if policies is None else policies.split(","))
        found = read_fill(Path(paths[0]), all_nodes, Path(paths[1]) if nodes is not None else None)
        published = published_of(expected, found.workload)
    if expected is not None and not published[0]:
        say(f"note: {expected} has no results for {found.workload}")
    tell_problems(found.problems)
    seeds = range(seed, seed + repeats)
    with _maybe(report) as page:
        with _named():
            bounds = _bounds(found, until, seeds) if bound else []
            summary = summary_of(found, names, until, seeds, published, bounds)
        if page is not None:
            _write(page, summary)
    if as_json:
        print_json(summary.to_json() | {"problems": described(found.problems)})
    elif not is_piped:
        _print(summary)
    if report not in (None, STDOUT):
        say(f"wrote {report}")
    fail_for(ctx, found.problems)


@contextmanager
def _named() -> Iterator[None]:
    """Raises: this command's InputError for that of the library."""
    from pumice.library.errors import InputError as Wrong

    try:
        yield
    except Wrong as error:
        raise InputError(
            f"--{problem}" if problem.startswith("policies: ") else problem for problem in error.problems
        ) from None


def _bounds(found: FillTrace, until: float, seeds: range) -> list[float]:
    from pumice.report.fill_bound import BoundError, bound
    from pumice.sim.fills.fill import arrivals_of

    try:
        return [bound(arrivals_of(found.specs, found.nodes, until, seed)) for seed in seeds]
    except BoundError as error:
        raise InputError(f"--bound: {error}") from None


@contextmanager
def _maybe(path: Path | None) -> Iterator[IO[str] | None]:
    if path is None:
        yield None
        return
    with written_whole(path) as file:
        yield file


def _rows(summary: FillSummary) -> list[list[str]]:
    rows = []
    for each in summary.policies:
        ours, theirs = each.at(), each.published.at(100) if each.published is not None else None
        shown = [f"{value:.2f}" for value in (*ours, *(theirs or ()))]
        last = [curve[-1] for curve in each.allocation]
        within = {True: "yes", False: "no", None: ""}[each.within]
        end, cpu = sum(last) / len(last), each.cpu_s / len(last)
        rows.append([each.name, *shown, *[""] * (4 - len(shown)), within, f"{end:.2f}", f"{cpu:.1f}"])
    if summary.bounds:
        rows.append(["any: at most", f"{sum(summary.bounds) / len(summary.bounds):.2f}", *[""] * 6])
    return rows


def _print(summary: FillSummary) -> None:
    out = console()
    out.print(
        f"{summary.trace}: {summary.nodes:,} nodes, {summary.gpus:,} GPUs; per cent of them allocated when 100% had"
        f" been asked for, mean of {len(summary.seeds)}"
    )
    table = Table(*columns(HEADS, right=set(HEADS) - {"policy", "within"}))
    for row in _rows(summary):
        table.add(*row)
    out.print_table(table)


def _write(page: IO[str], summary: FillSummary) -> None:
    from pumice.report.fill_page import page as page_of

    page.write(page_of(summary, _rows(summary), HEADS))
