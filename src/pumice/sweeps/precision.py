"""Seeds until a figure is known well enough: ``wait.mean ± 2 %``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from pumice.algorithms.intervals import mean_interval
from pumice.sweeps.plan import Plan
from pumice.sweeps.results import FinishedUniverses
from pumice.sweeps.universe import Universe

#: No interval is trusted before so many seeds.
SEEDS_MIN = 4
_RULE = re.compile(r"\s*([a-z_.0-9]{1,60})\s*(?:±|\+-|\+/-)\s*([0-9]{1,3}(?:\.[0-9]{1,6})?)\s*%\s*")


class Precision(Struct, frozen=True):
    """The 95 % interval of the mean of ``figure`` is to be at most ``share`` of the mean to either side."""

    figure: str
    share: float

    def __str__(self) -> str:
        return f"{self.figure} ± {100 * self.share:g} %"


def parse(text: str) -> Precision:
    """Return the precision of a text such as ``wait.mean ± 2 %``. Raises: ValueError."""
    found = _RULE.fullmatch(text)
    share = float(found[2]) / 100 if found else 0.0
    if found is None or not 0 < share < 1:
        raise ValueError(f"found {text[:60]!r}, wanted a figure and a share of its mean, such as 'wait.mean ± 2 %'")
    return Precision(found[1].replace(".", "_"), share)


def rounds(plan: Plan) -> Iterator[tuple[int, list[Universe]]]:
    """Yield (number of seeds so far, the universes of the new ones), in the order of seeds.

    How many seeds come together follows from their number alone, and not from workers or what is finished, so that
    every run of a plan stops after the same seed.
    """
    seeds = list(dict.fromkeys(universe.seed for universe in plan.universes))
    by_seed: dict[int, list[Universe]] = {seed: [] for seed in seeds}
    for universe in plan.universes:
        by_seed[universe.seed].append(universe)
    known, wanted = 0, SEEDS_MIN
    while known < len(seeds):
        new = seeds[known:wanted]
        known, wanted = known + len(new), max(wanted + 1, math.ceil(1.25 * wanted))
        yield known, [universe for seed in new for universe in by_seed[seed]]


def up_to(plan: Plan, seeds: int) -> Plan:
    """Return the plan of the first seeds alone."""
    kept = set(list(dict.fromkeys(universe.seed for universe in plan.universes))[:seeds])
    return Plan(
        tuple(universe for universe in plan.universes if universe.seed in kept),
        plan.arguments,
        plan.problems,
        plan.notes,
    )


def widest(found: FinishedUniverses, figure: str) -> float:
    """Return the largest half of an interval over its mean, of all settings; inf where some run cannot tell the figure.

    Raises: ValueError for a figure that no run has.
    """
    values: dict[object, list[float]] = {}
    for universe, row in found:
        if figure not in row.figures:
            raise ValueError(f"found the figure {figure!r}, wanted one of {', '.join(row.figures)}")
        value = row.figures[figure]
        key = (universe.policy, universe.nodes, universe.arguments)
        values.setdefault(key, []).append(math.inf if value is None else value)
    return max((_relative(listed) for listed in values.values()), default=math.inf)


def _relative(values: Sequence[float]) -> float:
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return math.inf
    interval = mean_interval(np.array(values))
    half = (interval.high - interval.low) / 2
    return half / abs(interval.mean) if interval.mean else 0.0 if not half else math.inf
