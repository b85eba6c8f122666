"""When waiting jobs are expected to start, as text and as JSON."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict, replace

from pumice.cli.console import Column, Table
from pumice.cli.output import console
from pumice.cli.params import SPAN
from pumice.reasons.words import counted
from pumice.report.units import duration
from pumice.runtime.printing import escaped

if TYPE_CHECKING:
    from pumice.answers.seen import HiddenNames
    from pumice.answers.world import World
    from pumice.ours.start_scores import Record
    from pumice.sim.starts.predicted import Predictions, StartPrediction

SAMPLES_MAX = 200
_NAMES_MAX = 3
#: About ten CPU seconds on 100 nodes with 1,000 jobs, and less on more of both.
_PAGE_STEPS_MAX = 300_000
#: To begin a simulation costs about as much as eight steps for each of its jobs: so many jobs are put into all of them.
_PAGE_BUILT_MAX = 40_000
#: Fewer simulations say nothing about an interval of 80 %, and more jobs than this take longer than an answer may.
_PAGE_SAMPLES, _PAGE_SAMPLES_MIN, _PAGE_JOBS_MAX = 8, 4, 10_000


def starts_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--starts``, and the options for how far and how often it simulates."""
    for option in (
        click.option("--seed", type=int, default=0, help="Seed of --starts. Nothing else is random."),
        click.option(
            "--samples",
            type=click.IntRange(1, SAMPLES_MAX),
            default=8,
            show_default=True,
            help="Simulations of --starts, with run times and later jobs drawn at random.",
        ),
        click.option(
            "--within", type=SPAN, default="7d", show_default=True, metavar="T", help="How far ahead --starts looks."
        ),
        click.option("--starts", is_flag=True, help="Also say when the job is expected to start, from simulations."),
    ):
        command = option(command)
    return command


def predictions_of(world: World, until_s: float, samples: int, seed: int) -> Predictions:
    """Simulate a cluster on, under its policy."""
    return _predicted(world, until_s=until_s, samples=samples, seed=seed)


def _predicted(world: World, **horizon: Any) -> Predictions:
    from pumice.ours.start_scores import record_in
    from pumice.sim.starts.predicted import predicted_starts
    from pumice.sim.starts.samples import Horizon

    objects, record = world.objects.values(), record_in(world.notes)
    return predicted_starts(objects, world.policy, world.now, Horizon(**horizon), record=record)


def as_seen(found: Predictions, hidden: HiddenNames) -> Predictions:
    """Return predictions without the names that a user may not see."""
    shown = {
        key: replace(each, why_not=hidden.removed(each.why_not))
        for key, each in found.by_job.items()
        if not hidden.are_in(key)
    }
    # How many they are is a sum, which everyone sees.
    return replace(found, by_job=shown, by_age=tuple(map(hidden.removed, found.by_age)))


def page_starts(world: World, part: int = 1) -> dict[str, Any]:
    """Return what pages show of starts: in bounded steps, with ``at``, the time that they count from. ``part``: in one
    of so many parts of these steps. Raises: NoResult if there are too many jobs."""
    from pumice.web.shared_work import NoResult

    jobs = len(world.groups)
    if jobs > _PAGE_JOBS_MAX // part:
        most = f"{_PAGE_JOBS_MAX // part:,}"
        raise NoResult(f"{jobs:,} jobs are more than the {most} for which a page works them out")
    samples = max(_PAGE_SAMPLES_MIN, min(_PAGE_SAMPLES, _PAGE_BUILT_MAX // part // max(jobs, 1)))
    return starts_described(_predicted(world, samples=samples, steps_max=_PAGE_STEPS_MAX // part)) | {"at": world.now}


def print_starts(found: Predictions, job: str = "") -> None:
    """Print when a job is expected to start, or all that wait ("")."""
    out = console()
    lines = Table(Column(wraps=False), Column(), gap=2)
    if job:
        lines.add(("start", "cyan"), escaped(_line(found.by_job.get(job))))
    else:
        for key, each in found.by_job.items():
            lines.add(escaped(key), escaped(_line(each)))
    out.print()
    out.print_table(lines)
    learnt = f"run times of {counted(found.learnt, 'ended job')}" if found.learnt else "no ended jobs"
    if found.by_age:
        more = ", …" if len(found.by_age) > _NAMES_MAX else ""
        names = f"{', '.join(found.by_age[:_NAMES_MAX])}{more}"
        out.print(
            f"running without an estimate, so expected to end by age alone: {len(found.by_age)} ({escaped(names)})",
            style="dim",
        )
    basis = f"{counted(found.samples, 'simulation')} of {duration(found.until_s)}, by estimates and {learnt}"
    out.print(f"{basis}; {_record(found.record)}", style="dim")


def _record(record: Record | None) -> str:
    if record is None or not record.known:
        return "not yet compared with what happened"
    shares = ((record.within_80, 80), (record.within_95, 95))
    right = " and ".join(f"{100 * count / record.known:.0f} % within {level} %" for count, level in shares)
    return f"of {counted(record.known, 'earlier prediction')} {right}"


def _line(found: StartPrediction | None) -> str:
    if found is None:
        return "it does not wait for nodes"
    if found.why_not:
        return f"not known: {found.why_not}"
    spans = f"80 %: {_span(found.low_80_s, found.high_80_s)}; 95 %: {_span(found.low_95_s, found.high_95_s)}"
    return f"in about {duration(found.middle_s)} ({spans})"


def _span(low_s: float, high_s: float) -> str:
    return f"{duration(low_s)} to {duration(high_s) if math.isfinite(high_s) else 'not within that time'}"


def starts_described(found: Predictions, job: str = "") -> dict[str, Any]:
    """Return the part of ``pumice explain --json`` about starts. Times are seconds from now, null for not within."""

    def plain(seconds: float) -> float | None:
        return round(seconds, 3) if math.isfinite(seconds) else None

    def one(each: StartPrediction) -> dict[str, Any]:
        return {
            "middle_s": plain(each.middle_s),
            "interval_80_s": [plain(each.low_80_s), plain(each.high_80_s)],
            "interval_95_s": [plain(each.low_95_s), plain(each.high_95_s)],
            "why_not": each.why_not,
            "simulated_s": [plain(each_s) for each_s in each.simulated_s],
        }

    chosen = found.by_job if not job else {key: each for key, each in found.by_job.items() if key == job}
    return {
        "jobs": {key: one(each) for key, each in chosen.items()},
        "samples": found.samples,
        "until_s": found.until_s,
        "ended_jobs": found.learnt,
        "without_estimate": list(found.by_age),
        "compared": None if found.record is None else asdict(found.record),
    }
