"""The result of a trace reader. Problems are counted, named and located, and the rest is used."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from msgspec import Struct

from pumice.model.events import Object
from pumice.model.node import Node
from pumice.model.queue import PriorityClass, Queue
from pumice.model.topology import HyperNode
from pumice.runtime.problems.problem import Problem, Severity
from pumice.sim.scenes.scene import Scene
from pumice.sim.workloads.work import SimJob

PLACES_SHOWN = 5


class TraceError(ValueError):
    """A trace cannot be read at all: found, wanted, where."""


class Problems:
    """Collects problems with rows. There are as many reasons as columns, however many rows there are."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[int, list[str]]] = {}

    def add(self, source: str, reason: str, place: str = "") -> None:
        """Count a row that is left out."""
        count, places = self._found.get((source, reason), (0, []))
        if place and len(places) < PLACES_SHOWN:
            places.append(place)
        self._found[source, reason] = (count + 1, places)

    def listed(self) -> list[Problem]:
        """Return one problem per reason, with its count and first places, in the order of their first appearance."""
        return [
            Problem(source, _left_out(reason, count, places), Severity.WARNING)
            for (source, reason), (count, places) in self._found.items()
        ]


def _left_out(reason: str, count: int, places: Sequence[str]) -> str:
    rows = "1 row" if count == 1 else f"{count:,} rows"
    more = ", …" if count > len(places) else ""
    return f"{rows} left out, {reason}" + (f": {', '.join(places)}{more}" if places else "")


class Trace(Struct, frozen=True):
    """A workload, and the cluster on which it ran, if known. ``notes``: assumptions, for readers of a report.
    ``problems``: what was left out."""

    name: str
    jobs: list[SimJob]
    nodes: list[Node] | None = None
    queues: list[Queue] = []
    hypernodes: list[HyperNode] = []
    notes: list[str] = []
    problems: list[Problem] = []
    priorities: list[PriorityClass] = []

    def scene(self, nodes: Sequence[Node] | None = None) -> Scene:
        """Return the trace as a scene, on these nodes or on its own.

        Raises: TraceError if no nodes are known.
        """
        hypernodes = [] if nodes is not None else self.hypernodes
        nodes = self.nodes if nodes is None else nodes
        if not nodes:
            raise TraceError(f"trace {self.name}: its cluster is unknown: use --nodes, such as --nodes 16x4gpu")
        objects: tuple[Object, ...] = (*self.priorities, *self.queues, *nodes, *hypernodes)
        return Scene(objects, tuple(self.jobs), tuple(self.notes), tuple(self.problems))


def spelling_hint(word: str, known: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` for the nearest known word, "" if none is near."""
    close = difflib.get_close_matches(word[:100], list(known), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def missing_columns(source: str, found: Sequence[str], wanted: Sequence[str]) -> TraceError:
    """Return the error for a table without some columns."""
    missing = [name for name in wanted if name not in found]
    spare = [name for name in found if name not in wanted]
    hints = ", ".join(f"{name!r}{spelling_hint(name, spare)}" for name in missing)
    what = "columns" if len(missing) > 1 else "column"
    return TraceError(f"{source}: missing {what} {hints}; found {_shown(found)}; wanted {_shown(wanted)}")


def _shown(names: Sequence[str]) -> str:
    listed = ", ".join(name[:40] for name in names[:20])
    return f"{listed}, … ({len(names)} in all)" if len(names) > 20 else listed or "none"
