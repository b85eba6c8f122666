"""Progress bars: on standard error, on a terminal only, and cheap enough to be told of every step."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from pumice.sim.world import Progress

EVERY_S = 0.1


def wanted() -> bool:
    """Whether somebody looks."""
    return sys.stderr.isatty()


def _bar(*columns: str) -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    return Progress(
        SpinnerColumn(),
        BarColumn(bar_width=30),
        *(TextColumn(column, markup=False) for column in columns),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        refresh_per_second=8,
    )


@contextmanager
def counting(unit: str) -> Iterator[Callable[[int, int, str], None]]:
    """``show(done, total, what)`` draws a bar."""
    if not wanted():
        yield lambda done, total, what: None
        return
    with _bar("{task.completed}/{task.total} " + unit, "{task.fields[what]}") as bar:
        task = bar.add_task("", total=None, what="")

        def show(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, what=what)

        yield show


@contextmanager
def simulating(start: float, until: float | None) -> Iterator[Callable[[Progress], None] | None]:
    """Simulated time, jobs done, how many wait, cycles. None where nobody looks."""
    if not wanted():
        yield None
        return
    from pumice.report.units import duration

    with _bar("{task.completed:,}/{task.total:,} jobs", "{task.fields[what]}") as bar:
        task = bar.add_task("", total=1, what="starting")
        next_time = 0.0

        def show(now: Progress) -> None:
            nonlocal next_time
            clock = monotonic()
            if clock < next_time:
                return
            next_time = clock + EVERY_S
            end = f" of {duration(until)}" if until is not None else ""
            parts = (
                f"{duration(now.now - start)}{end}",
                f"{now.waiting:,} waiting",
                f"{now.running:,} running",
                f"{now.cycles:,} cycles",
            )
            bar.update(task, completed=now.ended, total=max(now.jobs, 1), what=" · ".join(parts))

        yield show


@contextmanager
def sharing_out(count: int) -> Iterator[Callable[[int, float], None]]:
    """``show(task, part)``: so much of one of ``count`` tasks is done, 0 to 1. One bar over all of them."""
    if not wanted():
        yield lambda task, part: None
        return
    with _bar("{task.percentage:.0f} %", "{task.fields[what]}") as bar:
        shown = bar.add_task("", total=float(count), what="starting")
        parts: dict[int, float] = {}

        def show(task: int, part: float) -> None:
            parts[task] = part
            ended = sum(each >= 1.0 for each in parts.values())
            bar.update(shown, completed=sum(parts.values()), what=f"{ended} of {count} runs")

        yield show
