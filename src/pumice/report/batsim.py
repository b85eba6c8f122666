"""Columns of Batsim's table of jobs, which evalys and other tools read.

Source: Batsim's documentation, "Output: jobs". A resource is a node, by its place in the input.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count

from pumice.sim.measures.history import JobRecord

HEADER = (
    "job_id",
    "workload_name",
    "submission_time",
    "requested_number_of_resources",  # pods
    "requested_time",
    "success",
    "starting_time",
    "execution_time",
    "finish_time",
    "waiting_time",
    "turnaround_time",
    "stretch",
    "allocated_resources",
)


class Placements:
    """The nodes on which each job was placed last, from the events of a simulation."""

    def __init__(self, nodes: Iterable[str]) -> None:
        self._places = {node: place for place, node in enumerate(nodes)}
        self._new = count(len(self._places))
        self._pods: dict[str, dict[str, int]] = {}  # job -> pod -> place of its node
        self._done: dict[str, str] = {}

    def add(self, event: Mapping[str, object]) -> None:
        """Take an event of the simulation, in order."""
        job, kind = str(event.get("job")), event["event"]
        if kind in ("bind", "running"):
            node = str(event["node"])
            if node not in self._places:
                self._places[node] = next(self._new)
            self._pods.setdefault(job, {})[str(event["pod"])] = self._places[node]
        elif kind == "gone":
            self._pods.get(job, {}).pop(str(event["pod"]), None)
        elif kind == "done":
            # Only the intervals are kept of what is over.
            self._done[job] = intervals(self._pods.pop(job, {}).values())

    def of(self, job: str) -> str:
        """Return the nodes of a job as an interval set, such as ``0-3 7``; "" for none."""
        found = self._done.get(job)
        return intervals(self._pods.get(job, {}).values()) if found is None else found


def intervals(places: Iterable[int]) -> str:
    """Return whole numbers as an interval set: ``0-3 7``."""
    found: list[list[int]] = []
    for place in sorted(set(places)):
        if found and place == found[-1][1] + 1:
            found[-1][1] = place
        else:
            found.append([place, place])
    return " ".join(f"{low}-{high}" if low < high else f"{low}" for low, high in found)


def cells(record: JobRecord, start: float, nodes: str) -> list[object]:
    """Return the cells of a job, by HEADER. ``start``: of the simulation; ``nodes``: an interval set."""
    workload, _, name = record.key.partition("/")
    submitted = record.submitted - start
    started = None if record.started is None else record.started - start
    ended = None if record.ended is None else record.ended - start
    execution_s = None if ended is None or started is None else ended - started
    return [
        name,
        workload,
        submitted,
        record.size,
        None,  # no walltime: nothing is ended for having run too long
        int(ended is not None),
        started,
        execution_s,
        ended,
        record.wait_s,
        record.completion_s,
        record.completion_s / execution_s if record.completion_s is not None and execution_s else None,
        nodes,
    ]
