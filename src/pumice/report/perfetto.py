"""A simulation as a file for Perfetto's viewer (ui.perfetto.dev): nodes as tracks, jobs as slices.

Source: the Trace Event Format, complete events (``X``) and metadata (``M``), times in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import IO

from pumice.report.stays import Stay, Stays
from pumice.runtime.printing import json_text

_US = 1_000_000


class Perfetto:
    """Writes slices as they end, so that a long run needs no memory for those that are over.

    A node is a process, and a job on it a slice; slices that overlap are on different threads of the process, since a
    thread shows only slices that are within each other.
    """

    def __init__(self, file: IO[str], nodes: Iterable[str]) -> None:
        self._file = file
        self._places: dict[str, int] = {}  # node -> process
        self._lanes: dict[str, list[Stay | None]] = {}
        self._stays = Stays(self._ended, self._began)
        file.write('{"displayTimeUnit":"ms","traceEvents":[')
        for node in nodes:
            self._process(node)

    def add(self, event: Mapping[str, object]) -> None:
        """Take an event of the simulation, in order."""
        self._stays.add(event)

    def close(self, now: float) -> None:
        """Write what still runs, and end the file. ``now``: seconds from the start."""
        self._stays.close(now)
        self._file.write("\n]}\n")

    def _process(self, node: str) -> int:
        place = self._places.get(node)
        if place is None:
            place = self._places[node] = len(self._places) + 1
            self._write({"ph": "M", "pid": place, "name": "process_name", "args": {"name": node}})
            self._write({"ph": "M", "pid": place, "name": "process_sort_index", "args": {"sort_index": place}})
        return place

    def _began(self, stay: Stay) -> None:
        lanes = self._lanes.setdefault(stay.node, [])
        if None in lanes:
            lanes[lanes.index(None)] = stay
        else:
            lanes.append(stay)

    def _ended(self, stay: Stay, now: float, how: str) -> None:
        lanes = self._lanes[stay.node]
        lane = next(i for i, each in enumerate(lanes) if each is stay)
        lanes[lane] = None
        self._write(
            {
                "ph": "X",
                "pid": self._process(stay.node),
                "tid": lane + 1,
                "ts": round(stay.since * _US),
                "dur": round((now - stay.since) * _US),
                "name": stay.job,
                "args": {"pods": stay.pods, "ended": how},
            }
        )

    def _write(self, event: Mapping[str, object]) -> None:
        # A process comes before all others, so the first event needs no look at what was written.
        first = event["ph"] == "M" and event["pid"] == 1 and event["name"] == "process_name"
        self._file.write(("\n" if first else ",\n") + json_text(event))
