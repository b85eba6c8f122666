"""The newest summary, the documents made of it, and the pages that wait for the next."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from pumice.runtime.job_times import JobTimes
from pumice.web import documents
from pumice.web.expected_starts import ExpectedStarts
from pumice.web.history import CycleHistory
from pumice.web.jobs_query import JobsIndex
from pumice.web.shared_work import SharedWork
from pumice.web.simulation import Results
from pumice.web.summary import CycleSummary

_DOCUMENTS: Mapping[str, Callable[[CycleSummary], dict[str, Any]]] = MappingProxyType(
    {
        "queues": documents.queues,
        "nodes": documents.nodes,
        "choices": documents.choices,
    }
)
DOCUMENTS = ("overview", *_DOCUMENTS)


class Feed:
    """What pages read. ``number`` counts summaries, so that a page knows whether it shows the newest.

    ``history``: of all cycles, those between two summaries too. ``notes``: what every page says, such as where a record
    is damaged. All methods are for the thread of the event loop.
    """

    def __init__(self, history: CycleHistory | None = None, job_times: JobTimes | None = None) -> None:
        self.number = 0
        self.history = history or CycleHistory()
        self.job_times = job_times or JobTimes()
        #: When waiting jobs are expected to start, None where nothing works that out.
        self.starts: ExpectedStarts | None = None
        #: The one change that lets most jobs start, as ``pumice explain --all --json`` prints it, with ``at``.
        self.relief: SharedWork | None = None
        #: Expected starts against those that happened, of a record.
        self.start_checks: SharedWork | None = None
        self.notes: list[str] = []
        #: Results of a simulation, of which there is one page and no cycle.
        self.simulation: dict[str, Any] | None = None
        #: When a page asked last, or -inf, in seconds of the clock that ``asked`` is given.
        self.asked_at = -math.inf
        self.index: JobsIndex | None = None
        self._encoded: dict[str, bytes] = {}
        self._encoded_history: dict[str, bytes] = {}
        self._encoded_at = (-1, -1)
        self._next = asyncio.Event()

    @property
    def summary(self) -> CycleSummary | None:
        """The newest summary, None before the first cycle."""
        return None if self.index is None else self.index.summary

    def publish(self, summary: CycleSummary) -> None:
        """Replace the summary."""
        self.index = JobsIndex(summary)
        self.renew()

    def renew(self) -> None:
        """Wake the pages that wait: something that they show is new."""
        self.number += 1
        # Encoded once, and not for each viewer.
        self._encoded.clear()
        self._next.set()
        self._next = asyncio.Event()

    def note(self, text: str) -> None:
        """Say something on every page from now on."""
        self.notes.append(text)
        self.renew()

    def show_simulation(self, results: Results) -> None:
        """Show the results of a simulation instead of a cycle."""
        self.simulation, self.notes = results.data, results.notes
        self.renew()

    def asked(self, now: float) -> None:
        """Note that a page is open."""
        self.asked_at = now

    async def newer_than(self, number: int) -> int:
        """Wait for a summary that is newer than one. Return its number."""
        while self.number <= number:
            await self._next.wait()
        return self.number

    def document(self, name: str, index: JobsIndex | None = None) -> bytes:
        """Return one of DOCUMENTS as JSON, with the head of the cycle. ``index``: of a viewer who may not see all."""
        if index is not None and index is not self.index:
            return self.encoded(self._maker(name), index)
        found = self._encoded.get(name)
        if found is None:
            found = self._encoded[name] = self.encoded(self._maker(name))
        return found

    def _maker(self, name: str) -> Callable[[CycleSummary], dict[str, Any]]:
        if name == "overview":
            return lambda summary: documents.overview(summary, self.history.health())
        return _DOCUMENTS[name]

    def overview(self, resource: str, index: JobsIndex | None = None) -> bytes:
        """Return the overview with the curves of one resource as JSON: a page that renews itself asks once, not twice.
        ``index``: see ``document``."""

        def make(summary: CycleSummary) -> dict[str, Any]:
            return documents.overview(summary, self.history.health()) | {"curves": self.history.curves(resource)}

        if index is not None and index is not self.index:
            return self.encoded(make, index)
        return self._of_history(f"overview {resource}", lambda: self.encoded(make))

    def curves(self, resource: str) -> bytes:
        """Return the curves of one resource as JSON."""
        return self._of_history(f"curves {resource}", lambda: self.encoded(lambda _: self.history.curves(resource)))

    def times(self) -> bytes:
        """Return where the time of cycles went as JSON."""
        return self._of_history("times", lambda: self.encoded(lambda _: self.history.times()))

    def _of_history(self, name: str, make: Callable[[], bytes]) -> bytes:
        # A cycle changes curves also if it changes no summary.
        now = (self.number, self.history.taken)
        if self._encoded_at != now:
            self._encoded_history.clear()
            self._encoded_at = now
        found = self._encoded_history.get(name)
        if found is None:
            found = self._encoded_history[name] = make()
        return found

    def encoded(self, make: Callable[[CycleSummary], dict[str, Any]], index: JobsIndex | None = None) -> bytes:
        """Return what is made of the summary as JSON, with the head of the cycle. ``index``: see ``document``."""
        summary = self.summary if index is None else index.summary
        if self.simulation is not None:
            head: dict[str, Any] = {"at": None, "language": "simulation", "resources": []}
            found = {"number": self.number, "head": head, "notes": self.notes, "data": self.simulation}
            return msgspec.json.encode(found)
        if summary is None:
            return msgspec.json.encode({"number": 0, "head": None, "notes": self.notes, "data": None})
        found = {"number": self.number, "head": documents.head(summary), "notes": self.notes, "data": make(summary)}
        return msgspec.json.encode(found)
