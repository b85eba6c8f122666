"""The files that ``pumice simulate`` writes: their options, and what writes each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click
from msgspec import Struct

from pumice.cli.output import written_whole
from pumice.runtime.printing import json_text

if TYPE_CHECKING:
    from pumice.report.batsim import Placements
    from pumice.report.perfetto import Perfetto
    from pumice.report.summary import Summary
    from pumice.sim.run import Run
    from pumice.sim.scenes.inputs import Inputs

TakeEvent = Callable[[Mapping[str, object]], object]
FILE = click.Path(path_type=Path, dir_okay=False)

_OPTIONS = (
    click.option("--events", type=FILE, metavar="F.jsonl", help="Write every event, one line of JSON for each."),
    click.option("--jobs", type=FILE, metavar="F.csv", help="Write a row for each job, with Batsim's columns too."),
    click.option("--perfetto", type=FILE, metavar="F.json", help="Write a file for ui.perfetto.dev: jobs on nodes."),
    click.option("--report", type=FILE, metavar="F.html", help="Write a report with plots: one HTML file."),
)


class RunFiles(Struct, frozen=True):
    """Where to write what, None for nowhere."""

    events: Path | None
    jobs: Path | None
    perfetto: Path | None
    report: Path | None

    @property
    def paths(self) -> tuple[Path | None, ...]:
        return (self.events, self.jobs, self.perfetto, self.report)


def file_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options, which are passed on as ``files``."""

    @wraps(command)
    def gathered(**given: Any) -> Any:
        return command(files=RunFiles(**{name: given.pop(name) for name in RunFiles.__struct_fields__}), **given)

    found: Any = gathered
    for option in reversed(_OPTIONS):
        found = option(found)
    return found  # type: ignore[no-any-return]  # click's decorators are not typed so


@contextmanager
def opened(files: RunFiles, found: Inputs) -> Iterator[Writers]:
    """Yield what writes the files, which get their names when all is written."""
    with ExitStack() as stack:
        streams = (stack.enter_context(written_whole(path)) if path else None for path in files.paths)
        yield Writers(*streams, names=[node.name for node in found.nodes])


class Writers:
    """Writes the files of a run: some while it goes on, by its events, and the others at its end."""

    def __init__(
        self,
        events: IO[str] | None,
        jobs: IO[str] | None,
        perfetto: IO[str] | None,
        report: IO[str] | None,
        *,
        names: list[str],
    ) -> None:
        """``names``: those of the nodes, in order."""
        self._events, self._jobs, self._report = events, jobs, report
        self._placements: Placements | None = None
        self._perfetto: Perfetto | None = None
        if jobs is not None:
            from pumice.report.batsim import Placements

            self._placements = Placements(names)
        if perfetto is not None:
            from pumice.report.perfetto import Perfetto

            self._perfetto = Perfetto(perfetto, names)

    @property
    def tell(self) -> TakeEvent | None:
        """Return the function that takes events, None if no file needs them, so that none are made."""
        takers: list[TakeEvent] = [each.add for each in (self._placements, self._perfetto) if each is not None]
        if self._events is not None:
            takers.append(self._write)

        def tell(event: Mapping[str, object]) -> None:
            for take in takers:
                take(event)

        return tell if takers else None

    def _write(self, event: Mapping[str, object]) -> None:
        assert self._events is not None
        self._events.write(json_text(event) + "\n")

    def end(self, summary: Summary, found: Inputs, policy: str) -> None:
        """Write what belongs after the last event. ``policy``: how the user calls it."""
        run: Run = summary.run
        simulated_s, ending = run.result.simulated_s, run.result.ending.value
        if self._events is not None:
            self._write({"t": round(simulated_s, 6), "event": "end", "ending": ending, "digest": run.digest})
        if self._perfetto is not None:
            self._perfetto.close(simulated_s)
        if self._jobs is not None and self._placements is not None:
            from pumice.report.job_table import write_jobs

            write_jobs(self._jobs, run, self._placements)
        if self._report is not None:
            from pumice.report.data import report_data
            from pumice.report.html import render

            self._report.write(render(report_data(summary, found, policy)))
