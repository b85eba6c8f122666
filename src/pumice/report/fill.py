"""What fills of a cluster came to, beside what was published: figures, curves, JSON."""

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
    """One policy: a curve for each seed, of what is allocated and of what typical pods could not use, in per cent of
    the cluster's GPUs by per cent asked for. ``cpu_s`` of all its fills."""

    name: str
    allocation: Sequence[Sequence[float]]
    fragments: Sequence[Sequence[float]]
    cpu_s: float
    published: Published | None = None
    published_fragments: Published | None = None

    def at(self, level: int = FULL) -> tuple[float, float]:
        """Mean and standard deviation of the allocation over seeds; nan where it does not come that far."""
        return _at(self.allocation, level)

    def fragments_at(self, level: int = FULL) -> tuple[float, float]:
        """Mean and standard deviation over seeds of what typical pods could not use; nan as in ``at``."""
        return _at(self.fragments, level)

    @property
    def within(self) -> bool | None:
        """Whether the mean is within a published standard deviation of the published mean; None where none is known."""
        if self.published is None:
            return None
        theirs, deviation = self.published.at(FULL)
        ours = self.at()[0]
        return None if math.isnan(theirs) or math.isnan(ours) else abs(ours - theirs) <= deviation

    def to_json(self) -> dict[str, Any]:
        ours, deviation = self.at()
        found = {
            "policy": self.name,
            "allocation": {"mean": known(ours), "sd": known(deviation), "runs": self._runs()},
            "curve": means(self.allocation),
            "fragments": means(self.fragments),
            "cpu_s": round(self.cpu_s, 2),
            "within": self.within,
        }
        if self.published is not None:
            theirs, their_deviation = self.published.at(FULL)
            published: dict[str, Any] = {
                "mean": known(theirs),
                "sd": known(their_deviation),
                "curve": [known(value) for value in self.published.mean_curve()],
            }
            if self.published_fragments is not None:
                published["fragments"] = [known(v) for v in self.published_fragments.mean_curve()]
            found["published"] = published
        return found

    def _runs(self) -> list[float | None]:
        return [known(curve[FULL]) if len(curve) > FULL else None for curve in self.allocation]


class FillSummary(Struct, frozen=True):
    """All policies on one trace. ``bound``: per cent of the cluster's GPUs above which no placement of what arrived
    could come at ``FULL``, for each seed; empty if it was not requested."""

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
            "bound": {"mean": known(mean(self.bounds)), "runs": [known(b) for b in self.bounds]}
            if self.bounds
            else None,
        }


def _at(curves: Sequence[Sequence[float]], level: int) -> tuple[float, float]:
    found = [curve[level] for curve in curves if len(curve) > level and not math.isnan(curve[level])]
    return (mean(found) if found else math.nan, stdev(found) if len(found) > 1 else 0.0)


def known(value: float) -> float | None:
    """Two digits, None for what is not known."""
    return None if math.isnan(value) else round(value, 3)


def means(curves: Sequence[Sequence[float]]) -> list[float | None]:
    """The mean of curves, as far as the shortest goes."""
    return [known(mean(values)) for values in zip(*curves, strict=False)]


def curves_of(summary: FillSummary) -> Mapping[str, tuple[list[float | None], list[float | None]]]:
    """By policy: our mean curve, and the published one."""
    return {
        each.name: (
            means(each.allocation),
            [known(value) for value in each.published.mean_curve()] if each.published is not None else [],
        )
        for each in summary.policies
    }
