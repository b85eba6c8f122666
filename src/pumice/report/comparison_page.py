"""What the report of a comparison shows, as plain values: figures with intervals, and the curves of one universe."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from pumice.reasons.words import counted
from pumice.report.comparison import PairedRuns
from pumice.report.job_data import cut
from pumice.report.units import duration


class ComparisonData(Struct, frozen=True):
    """The data of the page, one field for each part. ``runs``: the curves of A and of B in the first universe."""

    title: str
    subtitle: str
    end_s: float
    facts: list[list[str]]
    confs: list[str]
    rows: list[dict[str, Any]]
    runs: list[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        return {"kind": "comparison", **asdict(self)}


def comparison_data(compared: PairedRuns) -> ComparisonData:
    """Return everything that the page shows."""
    runs = [dict(run.curves or {}) for run in compared.pairs[0]]
    moved = f", arrivals moved by up to {duration(compared.shake_s)}" if compared.shake_s else ""
    blocks = f", blocks of {duration(compared.block_s)} of arrivals" if compared.block_s else ""
    seeds = [pair[0].seed for pair in compared.pairs]
    return ComparisonData(
        title="Pumice comparison",
        subtitle=cut(", ".join(compared.sources)),
        end_s=max((run["end_s"] for run in runs if run), default=0.0),
        facts=[
            ["A", cut(compared.confs[0])],
            ["B", cut(compared.confs[1])],
            ["Cluster", counted(compared.nodes, "node")],
            ["Universes", f"{len(seeds)}{blocks}{moved}"],
            ["Seeds", f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])],
            ["Decisions", "the same in every universe" if compared.same else "not the same"],
        ],
        confs=[cut(conf) for conf in compared.confs],
        rows=[row.to_json() for row in compared.rows if row.is_shown],
        runs=runs,
    )
