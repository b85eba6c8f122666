"""Problems that a simulation found, as sentences: jobs that can never run, and resources that are held in vain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pumice.model.plain_words import first_names
from pumice.reasons.words import per_unit, unit
from pumice.report.units import amount
from pumice.runtime.problems.problem import Problem, Severity
from pumice.sim.measures.stuck import Stuck
from pumice.sim.run import Run

NAMES_SHOWN = 3


def problems_of(run: Run) -> tuple[Problem, ...]:
    """Return the problems of a run. Jobs with the same problem are named together."""
    met = [Problem("simulation", text, Severity.WARNING) for text in run.result.problems]
    return (*_stuck(run.stuck), *met)


def _stuck(stuck: Iterable[Stuck]) -> Iterator[Problem]:
    groups: dict[tuple[str | None, bool, bool], list[Stuck]] = {}
    for each in stuck:
        groups.setdefault((each.impossible, bool(each.promised), bool(each.holds)), []).append(each)
    for (why, promised, holds), jobs in groups.items():
        what = []
        if why is not None:
            what.append(f"can never run: alone on the empty cluster, {why.rstrip('.')}")
        else:
            what.append("waits forever")
        if promised:
            sum_of = _amounts(each.promised for each in jobs)
            what.append(f"was admitted and reserves {sum_of} without using it")
        if holds:
            what.append(f"holds {_amounts(each.holds for each in jobs)} on nodes without running")
        where = f"job {first_names([each.shown or each.job for each in jobs], NAMES_SHOWN)}"
        yield Problem(where, "; ".join(what), Severity.WARNING)


def _amounts(tables: Iterable[Mapping[str, float]]) -> str:
    """Return the sum of tables of amounts as text: ``5 cores, 3 GPUs, 12 GiB of memory``."""
    total: dict[str, float] = {}
    for table in tables:
        for resource, value in table.items():
            total[resource] = total.get(resource, 0.0) + value
    named = ((resource, value / per_unit(resource)) for resource, value in total.items())
    return ", ".join(f"{amount(value)} {_counted_in(resource)}" for resource, value in named)


def _counted_in(resource: str) -> str:
    return "GiB of memory" if resource == "memory" else unit(resource)
