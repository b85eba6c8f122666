"""``pumice fill``: how much of a cluster's GPUs policies give away, beside what was published."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import IO, TYPE_CHECKING

import click

from pumice.cli.console import Table, columns
from pumice.cli.errors import InputError
from pumice.cli.output import console, described, fail_for, print_json, say, tell_problems, written_whole

if TYPE_CHECKING:
    from pumice.model.node import Node
    from pumice.model.pod import PodSpec
    from pumice.report.fill import FillSummary, PolicyFill
    from pumice.runtime.problems.problem import Problem
    from pumice.sim.traces.fill_published import Published

REPEATS_MAX = 1_000
#: The first seed of the study.
FIRST_SEED = 42
HEADS = ("policy", "GPU allocation", "± sd", "published", "± sd", "within", "at the end", "CPU s a fill")
_FILE = click.Path(path_type=Path, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


@click.command()
@click.argument("trace", metavar="TRACE", type=click.Path(path_type=Path))
@click.option("--policies", metavar="A,B", help="Policies, separated by commas.  [default: all]")
@click.option(
    "--until",
    type=click.FloatRange(0.01, 10.0),
    default=1.3,
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
    as_json: bool,
    report: Path | None,
) -> None:
    """Fill the cluster of an openb TRACE (a pod list, or its folder) with pods drawn from it at random, and print what
    share of the GPUs each policy has allocated when the pods have requested as many as there are.

    As in the study of GPU fragmentation (Weng et al., USENIX ATC'23), a pod without a place is dropped, and no pod
    ends. The same seed gives the same fill; fill i has the seed SEED + i.

    \b
    Examples:
      pumice fill traces/openb-2023 --repeats 3
      pumice fill openb-2023/openb_pod_list_gpuspec33.csv --policies bestfit,fgd --expected openb-2023/expected
      pumice fill traces/openb-2023 --json --report fill.html
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    names = _policies(policies)
    found = _read(trace, all_nodes)
    published = _published(expected, found.workload)
    tell_problems(found.problems)
    with _maybe(report) as page:
        summary = _fill(found, names, until, range(seed, seed + repeats), published, bound)
        if page is not None:
            _write(page, summary)
    if as_json:
        print_json(summary.to_json() | {"problems": described(found.problems)})
    else:
        _print(summary)
    if report is not None:
        say(f"wrote {report}")
    fail_for(ctx, found.problems)


class _TraceFile:
    """A trace that was read."""

    def __init__(self, workload: str, specs: list[PodSpec], nodes: list[Node], problems: list[Problem]) -> None:
        self.workload, self.specs, self.nodes, self.problems = workload, specs, nodes, problems


def _policies(text: str | None) -> list[str]:
    from pumice.ours.plugins.gpuplacement import POLICIES

    names = list(POLICIES) if text is None else [name.strip() for name in text.split(",") if name.strip()]
    wrong = [name for name in names if name not in POLICIES]
    if wrong or not names:
        raise InputError(f"--policies: found {(wrong or [''])[0][:40]!r}, wanted some of {', '.join(POLICIES)}")
    return list(dict.fromkeys(names))


def _read(trace: Path, all_nodes: bool) -> _TraceFile:
    from pumice.sim.traces import openb
    from pumice.sim.traces.trace import TraceError

    if not trace.exists():
        raise InputError(f"{trace}: no such file or folder")
    try:
        file = openb.trace_file(trace)
        specs, problems = openb.read_specs(file)
        nodes, more, _ = openb.read_cluster(file, every_node=all_nodes)
    except TraceError as error:
        raise InputError(str(error)) from None
    return _TraceFile(file.stem, specs, nodes, [*problems, *more])


def _published(folder: Path | None, workload: str) -> tuple[Mapping[str, Published], Mapping[str, Published]]:
    from pumice.sim.traces.fill_published import ALLOCATION, FRAGMENTS, PublishedError, read_published

    if folder is None:
        return {}, {}
    try:
        found = read_published(folder, ALLOCATION, workload)
        if not found:
            say(f"note: {folder} has no results for {workload}")
        return found, read_published(folder, FRAGMENTS, workload) if (folder / FRAGMENTS).is_file() else {}
    except PublishedError as error:
        raise InputError(str(error)) from None


def _fill(
    found: _TraceFile,
    names: list[str],
    until: float,
    seeds: range,
    published: tuple[Mapping[str, Published], Mapping[str, Published]],
    bounded: bool,
) -> FillSummary:
    """Raises: InputError for a trace that fills nothing."""
    from pumice.report.fill import FillSummary

    try:
        filled = [_one_policy(found, name, until, seeds, published) for name in names]
    except ValueError as error:
        raise InputError(f"{found.workload}: {error}") from None
    gpus = sum(node.allocatable.get("nvidia.com/gpu") for node in found.nodes) / 1000.0
    bounds = _bounds(found, until, seeds) if bounded else []
    pods = len(found.specs)
    return FillSummary(found.workload, len(found.nodes), round(gpus), pods, until, list(seeds), filled, bounds)


def _bounds(found: _TraceFile, until: float, seeds: range) -> list[float]:
    from pumice.report.fill_bound import BoundError, bound
    from pumice.sim.fills.fill import arrivals_of

    try:
        return [bound(arrivals_of(found.specs, found.nodes, until, seed)) for seed in seeds]
    except BoundError as error:
        raise InputError(f"--bound: {error}") from None


def _one_policy(
    found: _TraceFile,
    name: str,
    until: float,
    seeds: range,
    published: tuple[Mapping[str, Published], Mapping[str, Published]],
) -> PolicyFill:
    from pumice.report.fill import PolicyFill
    from pumice.runtime.policy.conf import policy_of
    from pumice.runtime.policy.languages import builtin_registry
    from pumice.sim.fills.fill import arrivals_of, policy_text, typical_of
    from pumice.sim.fills.fill import fill as fill_cluster
    from pumice.sim.fills.fragments import fragments

    allocation, fragment, cpu_s = [], [], 0.0
    typical = typical_of(found.specs)
    for seed in seeds:
        arrivals = arrivals_of(found.specs, found.nodes, until, seed)
        policy = policy_of(policy_text(name, seed, typical), builtin_registry())
        began = process_time()
        filled = fill_cluster(arrivals, policy)
        cpu_s += process_time() - began
        allocation.append(filled.allocation())
        fragment.append(filled.curve(100.0 * fragments(filled, typical) / arrivals.capacity))
    return PolicyFill(name, allocation, fragment, cpu_s, published[0].get(name), published[1].get(name))


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
