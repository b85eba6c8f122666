"""Results of fills of a cluster, beside the published ones: figures, curves, JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from msgspec import Struct

from pumice.sim.traces.fill_published import Published

#: Where policies are compared: so many per cent of the cluster's GPUs have been asked for.
FULL = 100


class PolicyFill(Struct, frozen=True):
    """One policy: for each seed a curve of what is allocated, and one of what typical pods could not use, in per cent
    of the cluster's GPUs by per cent requested. ``cpu_s``: CPU time of all its fills."""

    name: str
    allocation: Sequence[Sequence[float]]
    fragments: Sequence[Sequence[float]]
    cpu_s: float
    published: Published | None = None
    published_fragments: Published | None = None

    def at(self, level: int = FULL) -> tuple[float, float]:
        """Return mean and standard deviation of the allocation over seeds, nan for a level that no fill reaches."""
        return _at(self.allocation, level)

    def fragments_at(self, level: int = FULL) -> tuple[float, float]:
        """Return mean and standard deviation over seeds of what typical pods could not use, nan as in ``at``."""
        return _at(self.fragments, level)

    @property
    def within(self) -> bool | None:
        """Return True if the mean is within a published standard deviation of the published mean, None if none was
        published."""
        if self.published is None:
            return None
        theirs, deviation = self.published.at(FULL)
        ours = self.at()[0]
        return None if math.isnan(theirs) or math.isnan(ours) else abs(ours - theirs) <= deviation

    def to_json(self) -> dict[str, Any]:
        ours, deviation = self.at()
        found = {
            "policy": self.name,
            "allocation": {"mean": rounded(ours), "sd": rounded(deviation), "runs": self._runs()},
            "curve": means(self.allocation),
            "fragments": means(self.fragments),
            "cpu_s": round(self.cpu_s, 2),
            "within": self.within,
        }
        if self.published is not None:
            theirs, their_deviation = self.published.at(FULL)
            published: dict[str, Any] = {
                "mean": rounded(theirs),
                "sd": rounded(their_deviation),
                "curve": [rounded(value) for value in self.published.mean_curve()],
            }
            if self.published_fragments is not None:
                published["fragments"] = [rounded(v) for v in self.published_fragments.mean_curve()]
            found["published"] = published
        return found

    def _runs(self) -> list[float | None]:
        return [rounded(curve[FULL]) if len(curve) > FULL else None for curve in self.allocation]


class FillSummary(Struct, frozen=True):
    """All policies on one trace. ``bound``: for each seed the per cent of the cluster's GPUs that no placement of the
    arrivals can exceed at ``FULL``; empty if it was not requested."""

    trace: str
    nodes: int
    gpus: int
    pods: int
    until: float
    seeds: Sequence[int]
    policies: Sequence[PolicyFill]
    bounds: Sequence[float] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "trace": self.trace,
            "nodes": self.nodes,
            "gpus": self.gpus,
            "pods": self.pods,
            "until": self.until,
            "seeds": list(self.seeds),
            "policies": [each.to_json() for each in self.policies],
            "bound": {"mean": rounded(mean(self.bounds)), "runs": [rounded(b) for b in self.bounds]}
            if self.bounds
            else None,
        }


def _at(curves: Sequence[Sequence[float]], level: int) -> tuple[float, float]:
    found = [curve[level] for curve in curves if len(curve) > level and not math.isnan(curve[level])]
    return (mean(found) if found else math.nan, stdev(found) if len(found) > 1 else 0.0)


def rounded(value: float) -> float | None:
    """Return the value with three digits after the point, None for nan."""
    return None if math.isnan(value) else round(value, 3)


def means(curves: Sequence[Sequence[float]]) -> list[float | None]:
    """Return the mean of curves, up to the end of the shortest."""
    return [rounded(mean(values)) for values in zip(*curves, strict=False)]


def curves_of(summary: FillSummary) -> Mapping[str, tuple[list[float | None], list[float | None]]]:
    """Return our mean curve and the published one, by policy."""
    return {
        each.name: (
            means(each.allocation),
            [rounded(value) for value in each.published.mean_curve()] if each.published is not None else [],
        )
        for each in summary.policies
    }
