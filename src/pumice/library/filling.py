"""Fills of a cluster: how much of its GPUs each policy gives away, beside what was published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from pumice.library.column import flag, number, text
from pumice.library.errors import InputError
from pumice.library.table import Table
from pumice.model.devices.gpu import GPU_RESOURCE
from pumice.report.fill import FillSummary, PolicyFill

if TYPE_CHECKING:
    from pumice.model.node import Node
    from pumice.model.pod import PodSpec
    from pumice.runtime.problems.problem import Problem
    from pumice.sim.traces.fill_published import Published

FIRST_SEED = 42  # the study's
REPEATS_MAX = 1_000
UNTIL = 1.3
FILL_COLUMNS = (
    text("policy", "name of the policy"),
    number("allocated", "% of GPUs", "allocated when 100 % have been asked for: mean over seeds"),
    number("deviation", "% of GPUs", "standard deviation over seeds"),
    number("published", "% of GPUs", "mean of the study; missing without its tables"),
    number("published_deviation", "% of GPUs", "standard deviation of the study"),
    flag("within", "ours is within a published standard deviation; false where nothing is published"),
    number("fragments", "% of GPUs", "that typical pods could not use when 100 % have been asked for: mean over seeds"),
    number("published_fragments", "% of GPUs", "mean of the study; missing without its tables"),
    number("published_fragments_deviation", "% of GPUs", "standard deviation of the study"),
)


class FillTrace(Struct, frozen=True):
    """A trace of pods to fill a cluster with."""

    workload: str
    specs: list[PodSpec]
    nodes: list[Node]
    problems: list[Problem]


class Fill:
    """What fills came to. ``policies``: a row for each policy."""

    def __init__(self, summary: FillSummary) -> None:
        self.summary = summary

    @cached_property
    def policies(self) -> Table:
        """A row for each policy, beside what was published."""
        return Table("policies", FILL_COLUMNS, lambda: [_row(each) for each in self.summary.policies])

    def to_dict(self) -> dict[str, Any]:
        """Return the fills as ``pumice fill --json`` prints them, with their curves."""
        return self.summary.to_json()

    def __repr__(self) -> str:
        found = self.summary
        head = f"{found.trace}: {found.nodes:,} nodes, {found.gpus:,} GPUs, {len(found.seeds)} fills a policy"
        return f"{head}\n{self.policies!r}"

    def _repr_html_(self) -> str:
        return self.policies._repr_html_()


def fill(
    trace: str | Path,
    policies: Sequence[str] | None = None,
    *,
    repeats: int = 10,
    seed: int = FIRST_SEED,
    until: float = UNTIL,
    expected: str | Path | None = None,
    all_nodes: bool = False,
    nodes: str | Path | None = None,
) -> Fill:
    """Fill the cluster of an openb trace with pods drawn from it, once for each policy and seed.

    ``trace``: a pod list, or its folder. ``policies``: some of those of ``gpuplacement``, all by default. ``until``:
    how many times the cluster's GPUs are asked for. ``expected``: the folder with the study's tables. ``all_nodes``:
    with those without GPUs. ``nodes``: the node list, in place of the one beside the pod list. Raises: InputError.
    Source: Weng et al., USENIX ATC'23.
    """
    names = policy_names(policies)
    if not 1 <= repeats <= REPEATS_MAX:
        raise InputError(f"repeats: found {repeats}, wanted 1 to {REPEATS_MAX:,}")
    found = read_fill(Path(trace), all_nodes, None if nodes is None else Path(nodes))
    published = published_of(None if expected is None else Path(expected), found.workload)
    return Fill(summary_of(found, names, until, range(seed, seed + repeats), published))


def policy_names(given: Iterable[str] | None) -> list[str]:
    """Return the policies to fill under, each once. Raises: InputError."""
    from pumice.ours.plugins.gpuplacement import POLICIES

    names = list(POLICIES) if given is None else [name.strip() for name in given if name.strip()]
    wrong = [name for name in names if name not in POLICIES]
    if wrong or not names:
        raise InputError(f"policies: found {(wrong or [''])[0][:40]!r}, wanted some of {', '.join(POLICIES)}")
    return list(dict.fromkeys(names))


def read_fill(trace: Path, all_nodes: bool = False, nodes: Path | None = None) -> FillTrace:
    """Return a pod list, or the default one of a folder, with a node list: ``nodes``, or the one beside it. Raises:
    InputError."""
    from pumice.sim.traces import openb
    from pumice.sim.traces.trace import TraceError

    if nodes is not None and all_nodes:
        raise InputError("found a node list and all nodes, wanted one of them: each row of the list is a node")
    if gone := [path for path in (trace, nodes) if path is not None and not path.exists()]:
        raise InputError(f"{path}: no such file or folder" for path in gone)
    try:
        file = openb.trace_file(trace)
        specs, problems = openb.read_specs(file)
        found, more = openb.read_nodes(nodes or openb.node_list(file, every_node=all_nodes))
    except TraceError as error:
        raise InputError(str(error)) from None
    return FillTrace(file.stem, specs, found, [*problems, *more])


#: What was published of allocation and of fragments, by policy.
PublishedTables = tuple[Mapping[str, "Published"], Mapping[str, "Published"]]


def published_of(folder: Path | None, workload: str) -> PublishedTables:
    """Return the study's results for a workload, none without a folder. Raises: InputError."""
    from pumice.sim.traces.fill_published import ALLOCATION, FRAGMENTS, PublishedError, read_published

    if folder is None:
        return {}, {}
    try:
        found = read_published(folder, ALLOCATION, workload)
        fragments = read_published(folder, FRAGMENTS, workload) if found and (folder / FRAGMENTS).is_file() else {}
    except PublishedError as error:
        raise InputError(str(error)) from None
    return found, fragments


def summary_of(
    found: FillTrace,
    names: Sequence[str],
    until: float,
    seeds: range,
    published: PublishedTables,
    bounds: Sequence[float] = (),
) -> FillSummary:
    """Return the fills of all policies. Raises: InputError for a trace that fills nothing."""
    try:
        filled = [_one_policy(found, name, until, seeds, published) for name in names]
    except ValueError as error:
        raise InputError(f"{found.workload}: {error}") from None
    gpus = sum(node.allocatable.get(GPU_RESOURCE) for node in found.nodes) / 1000.0
    return FillSummary(
        found.workload, len(found.nodes), round(gpus), len(found.specs), until, list(seeds), filled, bounds
    )


def _one_policy(found: FillTrace, name: str, until: float, seeds: range, published: PublishedTables) -> PolicyFill:
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


def _row(each: PolicyFill) -> tuple[object, ...]:
    from pumice.report.fill import rounded

    ours, deviation = each.at()
    fragments, theirs = rounded(each.fragments_at()[0]), _of_study(each.published_fragments)
    return (
        each.name,
        rounded(ours),
        rounded(deviation),
        *_of_study(each.published),
        bool(each.within),
        fragments,
        *theirs,
    )


def _of_study(published: Published | None) -> tuple[float | None, float | None]:
    from pumice.report.fill import FULL, rounded

    if published is None:
        return None, None
    found, deviation = published.at(FULL)
    return rounded(found), rounded(deviation)
