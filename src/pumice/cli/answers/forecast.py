"""When jobs start and end as things are, and with changes, as text and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from pumice.cli.console import Column, Table
from pumice.cli.output import console
from pumice.reasons.words import counted
from pumice.report.units import duration
from pumice.runtime.printing import escaped

if TYPE_CHECKING:
    from pumice.answers.world import Draft
    from pumice.sim.forecast import Forecast, JobForecast

_SHOWN_MAX, _NAMED_MAX = 20, 3


class Forecasts(Struct, frozen=True):
    """As things are, and with the changes, for so many seconds."""

    until_s: float
    before: Forecast
    after: Forecast

    @property
    def differing(self) -> list[str]:
        """Return the jobs that start or end at another time, or that the changes add. Those that they remove are named
        by the changes themselves."""
        return [key for key, times in sorted(self.after.jobs.items()) if self.before.jobs.get(key) != times]


def forecasts_of(draft: Draft, until_s: float) -> Forecasts:
    """Simulate a cluster without and with the changes of a draft."""
    from pumice.sim.forecast import forecast

    world = draft.world
    before = forecast(world.objects.values(), world.policy, world.now, until_s)
    return Forecasts(until_s, before, forecast(draft.objects(), draft.policy, world.now, until_s))


def print_forecasts(found: Forecasts) -> None:
    """Print the jobs for which something differs, and those that have no estimate."""
    out, differing = console(), found.differing
    span, verb = duration(found.until_s), "starts or ends" if len(differing) == 1 else "start or end"
    out.print(f"\nwithin {span}: {counted(len(differing), 'job')} {verb} at another time, by estimates")
    lines = Table(Column(wraps=False), Column(), Column(), gap=2)
    for key in differing[:_SHOWN_MAX]:
        was, now = found.before.jobs.get(key), found.after.jobs.get(key)
        starts, ends = ([each(times, span) for times in (was, now)] for each in (_start, _end))
        lines.add(escaped(key), _moved("starts", *starts), _moved("ends", *ends))
    out.print_table(lines)
    if len(differing) > _SHOWN_MAX:
        out.print(f"and {counted(len(differing) - _SHOWN_MAX, 'more job')}; --json lists all")
    waits = [_waits(each) for each in (found.before, found.after)]
    out.print(f"jobs that have not started by then: {waits[0]:,} → {waits[1]:,}")
    if stay := found.after.stay:
        named = f"{', '.join(stay[:_NAMED_MAX])}{', …' if len(stay) > _NAMED_MAX else ''}"
        out.print(escaped(f"without an estimate, and so taken to run on: {counted(len(stay), 'job')} ({named})"))


def _moved(what: str, before: str, after: str) -> str:
    """Return how a time moves, "" if it does not."""
    return f"{what} {before} → {after}" if before != after else ""


def _start(times: JobForecast | None, span: str) -> str:
    if times is None:
        return "–"
    if times.starts_s is None:
        return f"after {span}"
    return "now" if times.starts_s == 0 else f"in {duration(times.starts_s)}"


def _end(times: JobForecast | None, span: str) -> str:
    if times is None:
        return "–"
    return f"after {span}" if times.ends_s is None else f"in {duration(times.ends_s)}"


def _waits(found: Forecast) -> int:
    return sum(1 for times in found.jobs.values() if times.starts_s is None)


def forecasts_described(found: Forecasts) -> dict[str, Any]:
    """Return the part of ``pumice whatif --json`` that says what is simulated. Times are seconds from now."""

    def times(each: JobForecast | None) -> dict[str, float | None] | None:
        return None if each is None else {"starts_s": each.starts_s, "ends_s": each.ends_s}

    keys = sorted(found.before.jobs.keys() | found.after.jobs.keys())
    return {
        "until_s": found.until_s,
        "jobs": [
            {"job": key, "before": times(found.before.jobs.get(key)), "after": times(found.after.jobs.get(key))}
            for key in keys
        ],
        "without_estimate": list(found.after.stay),
    }
