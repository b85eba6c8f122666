"""What the fragmentation study published: tables of a row for each workload, policy and seed, and a column for each per
cent of the cluster's GPUs that has been asked for. Source: Weng et al., USENIX ATC'23, its artifact."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from statistics import mean, stdev

from msgspec import Struct

ALLOCATION, FRAGMENTS = "analysis_allo_discrete.csv", "analysis_frag_discrete.csv"
#: How the study calls the policies.
NAMES = {
    "random": "01-Random",
    "dotprod": "02-DotProd",
    "clustering": "03-GpuClustering",
    "packing": "04-GpuPacking",
    "bestfit": "05-BestFit",
    "fgd": "06-FGD",
}
ROWS_MAX, BYTES_MAX, LEVELS_MAX = 100_000, 1 << 26, 1_000


class PublishedError(ValueError):
    """A table that cannot be read: what was found, what was wanted, where."""


class Published(Struct, frozen=True):
    """Of one workload and policy: a curve for each seed, nan where there is nothing."""

    curves: tuple[tuple[float, ...], ...]

    def at(self, level: int) -> tuple[float, float]:
        """Mean and standard deviation over seeds at so many per cent; nan where nothing is known."""
        found = [curve[level] for curve in self.curves if level < len(curve) and not math.isnan(curve[level])]
        return (mean(found) if found else math.nan, stdev(found) if len(found) > 1 else 0.0)

    def mean_curve(self) -> list[float]:
        """The mean over seeds."""
        return [self.at(level)[0] for level in range(max(map(len, self.curves), default=0))]


def read_published(folder: Path, table: str, workload: str) -> dict[str, Published]:
    """By policy, in our names; empty where the table does not have the workload. Raises: PublishedError."""
    path = folder / table
    if not path.is_file():
        raise PublishedError(f"{folder}: found no {table}")
    if path.stat().st_size > BYTES_MAX:
        raise PublishedError(f"{path}: found more than {BYTES_MAX >> 20} MB")
    ours = {theirs: name for name, theirs in NAMES.items()}
    found: dict[str, list[tuple[float, ...]]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        levels = [name for name in rows.fieldnames or () if name.isdigit()]
        if not {"workload", "sc_policy"} <= set(rows.fieldnames or ()) or not 1 <= len(levels) <= LEVELS_MAX:
            raise PublishedError(f"{path}: wanted columns workload, sc_policy and 0, 1, 2 and so on")
        if levels != [str(level) for level in range(len(levels))]:
            raise PublishedError(f"{path}: wanted columns 0 to {len(levels) - 1}, in order")
        for number, row in enumerate(rows):
            if number >= ROWS_MAX:
                raise PublishedError(f"{path}: found more than {ROWS_MAX:,} rows")
            policy = ours.get(row["sc_policy"])
            if row["workload"] == workload and policy is not None:
                curve = tuple(_number(path, number + 2, row[level]) for level in levels)
                found.setdefault(policy, []).append(curve)
    return {name: Published(tuple(curves)) for name, curves in found.items()}


def _number(path: Path, line: int, text: str | None) -> float:
    try:
        value = float(text) if text else math.nan
    except ValueError:
        value = math.inf
    if math.isinf(value):
        raise PublishedError(f"{path} line {line}: found {(text or '')[:40]!r}, wanted a number")
    return value
