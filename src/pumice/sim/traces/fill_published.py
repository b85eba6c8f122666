"""Read results of the fragmentation study: tables with a row per workload, policy and seed, and a column per per cent
of the cluster's GPUs that has been requested. Source: Weng et al., USENIX ATC'23, its artifact."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev

from msgspec import Struct

ALLOCATION, FRAGMENTS = "analysis_allo_discrete.csv", "analysis_frag_discrete.csv"
#: Our names of the study's policies.
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
    """A table cannot be read: found, wanted, where."""


class Published(Struct, frozen=True):
    """Curves of one workload and policy, one per seed, nan where there is no value."""

    curves: tuple[tuple[float, ...], ...]

    def at(self, level: int) -> tuple[float, float]:
        """Return mean and standard deviation over seeds at a percentage, nan if unknown."""
        found = [curve[level] for curve in self.curves if level < len(curve) and not math.isnan(curve[level])]
        return (mean(found) if found else math.nan, stdev(found) if len(found) > 1 else 0.0)

    def mean_curve(self) -> list[float]:
        """Return the mean over seeds."""
        return [self.at(level)[0] for level in range(max(map(len, self.curves), default=0))]


def read_published(folder: Path, table: str, workload: str) -> dict[str, Published]:
    """Return results by policy, in our names; none if the table does not have the workload. Raises: PublishedError."""
    path = folder / table
    if not path.is_file():
        raise PublishedError(f"{folder}: found no {table}")
    if path.stat().st_size > BYTES_MAX:
        raise PublishedError(f"{path}: found more than {BYTES_MAX >> 20} MB")
    found: dict[str, list[tuple[float, ...]]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for policy, curve in _curves(path, csv.DictReader(file), workload):
                found.setdefault(policy, []).append(curve)
    except (csv.Error, UnicodeDecodeError) as error:
        raise PublishedError(f"{path}: is not a table in UTF-8: {error}") from None
    return {name: Published(tuple(curves)) for name, curves in found.items()}


def _curves(path: Path, rows: csv.DictReader[str], workload: str) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yield a policy, in our names, and a curve for each row of a workload. Raises: PublishedError."""
    ours = {theirs: name for name, theirs in NAMES.items()}
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
            yield policy, tuple(_number(path, number + 2, row[level]) for level in levels)


def _number(path: Path, line: int, text: str | None) -> float:
    try:
        value = float(text) if text else math.nan
    except ValueError:
        value = math.inf
    if math.isinf(value):
        raise PublishedError(f"{path} line {line}: found {(text or '')[:40]!r}, wanted a number")
    return value
