"""Progress bars: on standard error, on a terminal only, and cheap enough to be updated at every step."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from pumice.runtime.printing import escaped

if TYPE_CHECKING:
    from pumice.sim.world import Progress

EVERY_S = 0.1
#: Seconds between two lines where standard error is no terminal, as in a CI job or a pod's log.
LINE_EVERY_S = 30.0
#: An estimate of the end is shown once so much is done: before, it would jump.
_ETA_FROM = 0.02
_BAR_CELLS = 30


def wanted() -> bool:
    """Return True if standard error is a terminal."""
    return sys.stderr.isatty()


class _Bar:
    """One line on the terminal that is written anew, at most every ``EVERY_S`` seconds."""

    def __init__(self) -> None:
        self._begin = monotonic()
        self._next = self._begin

    def show(self, part: float, text: str) -> None:
        """Draw the bar. ``part``: share of the work that is done, 0 to 1."""
        clock = monotonic()
        if clock < self._next:
            return
        self._next = clock + EVERY_S
        done = round(_BAR_CELLS * min(max(part, 0.0), 1.0))
        line = f"{'━' * done}{' ' * (_BAR_CELLS - done)} {_passed(clock - self._begin, part)} {escaped(text)}"
        sys.stderr.write(f"\r{line[: shutil.get_terminal_size().columns - 1]}\x1b[K")
        sys.stderr.flush()

    @contextmanager
    def drawn(self) -> Iterator[_Bar]:
        """Remove the line at the end, whatever happens."""
        try:
            yield self
        finally:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


class _Lines:
    """Progress as lines, the first after ``LINE_EVERY_S`` seconds, so that short work prints none."""

    def __init__(self) -> None:
        self._begin = monotonic()
        self._next = self._begin + LINE_EVERY_S

    def show(self, part: float, text: str) -> None:
        """Print a line if one is due. ``part``: share of the work that is done, 0 to 1."""
        clock = monotonic()
        if clock < self._next:
            return
        self._next = clock + LINE_EVERY_S
        sys.stderr.write(
            f"{100 * min(max(part, 0.0), 1.0):.0f} % {_passed(clock - self._begin, part)} {escaped(text)}\n"
        )
        sys.stderr.flush()


def _passed(seconds: float, part: float) -> str:
    """Return the time that has passed, and an estimate of what is left."""
    left = f" (about {_clock(seconds * (1 - part) / part)} left)" if _ETA_FROM <= part < 1 else ""
    return f"{_clock(seconds)}{left}"


def _clock(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


@contextmanager
def _shown() -> Iterator[_Bar | _Lines]:
    if not wanted():
        yield _Lines()
        return
    with _Bar().drawn() as bar:
        yield bar


@contextmanager
def counting(unit: str) -> Iterator[Callable[[int, int, str], None]]:
    """Yield ``show(done, total, what)``, which draws a bar."""
    with _shown() as bar:
        yield lambda done, total, what: bar.show(done / max(total, 1), f"{done}/{total} {unit} {what}")


@contextmanager
def simulating(start: float, until: float | None) -> Iterator[Callable[[Progress], None]]:
    """Yield a function that draws simulated time, jobs that ended, waiting jobs, and cycles. The bar follows simulated
    time if that has an end, else jobs that have ended."""
    from pumice.report.units import duration

    with _shown() as bar:

        def show(now: Progress) -> None:
            passed = now.now - start
            end = f" of {duration(until)}" if until is not None else ""
            parts = (
                f"{now.ended:,}/{now.jobs:,} jobs {duration(passed)}{end}",
                f"{now.waiting:,} waiting",
                f"{now.running:,} running",
                f"{now.cycles:,} cycles",
            )
            bar.show(passed / until if until else now.ended / max(now.jobs, 1), " · ".join(parts))

        yield show


@contextmanager
def sharing_out(count: int) -> Iterator[Callable[[int, float], None]]:
    """Yield ``show(task, part)``, which notes that a share of one of ``count`` tasks is done, 0 to 1. One bar shows all
    tasks."""
    with _shown() as bar:
        parts: dict[int, float] = {}

        def show(task: int, part: float) -> None:
            parts[task] = part
            ended, done = sum(each >= 1.0 for each in parts.values()), sum(parts.values()) / count
            bar.show(done, f"{100 * done:.0f} % {ended} of {count} runs")

        yield show
