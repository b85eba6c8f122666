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
        """``part``: of the work that is done, 0 to 1."""
        clock = monotonic()
        if clock < self._next:
            return
        self._next = clock + EVERY_S
        done = round(_BAR_CELLS * min(max(part, 0.0), 1.0))
        seconds = int(clock - self._begin)
        passed = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        line = f"{'━' * done}{' ' * (_BAR_CELLS - done)} {passed} {escaped(text)}"
        sys.stderr.write(f"\r{line[: shutil.get_terminal_size().columns - 1]}\x1b[K")
        sys.stderr.flush()

    @contextmanager
    def drawn(self) -> Iterator[_Bar]:
        """The line is gone at the end, whatever happens."""
        try:
            yield self
        finally:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextmanager
def counting(unit: str) -> Iterator[Callable[[int, int, str], None]]:
    """``show(done, total, what)`` draws a bar."""
    if not wanted():
        yield lambda done, total, what: None
        return
    with _Bar().drawn() as bar:
        yield lambda done, total, what: bar.show(done / max(total, 1), f"{done}/{total} {unit} {what}")


@contextmanager
def simulating(start: float, until: float | None) -> Iterator[Callable[[Progress], None] | None]:
    """Draw simulated time, jobs done, how many wait, and cycles. Yields None unless standard error is a terminal."""
    if not wanted():
        yield None
        return
    from pumice.report.units import duration

    with _Bar().drawn() as bar:

        def show(now: Progress) -> None:
            end = f" of {duration(until)}" if until is not None else ""
            parts = (
                f"{now.ended:,}/{now.jobs:,} jobs {duration(now.now - start)}{end}",
                f"{now.waiting:,} waiting",
                f"{now.running:,} running",
                f"{now.cycles:,} cycles",
            )
            bar.show(now.ended / max(now.jobs, 1), " · ".join(parts))

        yield show


@contextmanager
def sharing_out(count: int) -> Iterator[Callable[[int, float], None]]:
    """``show(task, part)``: so much of one of ``count`` tasks is done, 0 to 1. One bar over all of them."""
    if not wanted():
        yield lambda task, part: None
        return
    with _Bar().drawn() as bar:
        parts: dict[int, float] = {}

        def show(task: int, part: float) -> None:
            parts[task] = part
            ended, done = sum(each >= 1.0 for each in parts.values()), sum(parts.values()) / count
            bar.show(done, f"{100 * done:.0f} % {ended} of {count} runs")

        yield show
