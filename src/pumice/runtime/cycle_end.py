"""What is handed on of a cycle that ended to what shows cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter

from msgspec import Struct

from pumice.framework.cycle.outcome import Outcome
from pumice.model.decisions import Decision
from pumice.runtime.telemetry.cycle_metrics import CycleTimer


class CycleEnd(Struct, frozen=True):
    """A cycle that ended. ``number``: counts the cycles of one scheduler from 1. ``digest``: of its decisions, or of
    all up to it. ``spans``: seconds by part, as ``seconds_of`` names them, empty where none were measured. The outcome
    is valid until the next cycle runs.
    """

    number: int
    outcome: Outcome
    decisions: Sequence[Decision]
    digest: str
    spans: Mapping[str, float] = {}


def state_of(outcome: Outcome) -> tuple[object, ...]:
    """Return what is equal for two cycles only if nothing was written between them of what pages and metrics show."""
    tables = outcome.tables
    shown = (tables.nodes, tables.tasks, tables.jobs, tables.queues)
    # Numbers alone would not do: a new store counts anew.
    versions = [column.version for table in shown for column in table.columns.values()]
    return tables.versions, tables.nodes.facts.version, tables.tree.version, *versions


def seconds_of(timer: CycleTimer) -> dict[str, float]:
    """Return the time of each part of a cycle: ``open session``, ``close session``, each action by its name, and
    ``plugin NAME`` for what of opening and closing was spent in a plugin. Units: seconds."""
    found = {
        name.removeprefix("action ").replace("_", " "): milliseconds / 1000.0
        for name, milliseconds in timer.spans().items()
        if name != "e2e_scheduling"
    }
    for (plugin, _), milliseconds in timer.plugin_spans().items():
        found[f"plugin {plugin}"] = found.get(f"plugin {plugin}", 0.0) + milliseconds / 1000.0
    return found


class StopWatch:
    """The observer of cycles that run one after the other."""

    def __init__(self) -> None:
        self._timer = CycleTimer(perf_counter)

    def __call__(self, phase: str) -> None:
        """A phase begins."""
        self._timer(phase)

    def taken(self) -> dict[str, float]:
        """Return the seconds of each part of the cycle that ended now. The next one begins from zero."""
        timer, self._timer = self._timer, CycleTimer(perf_counter)
        return seconds_of(timer)
