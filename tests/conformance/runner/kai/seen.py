"""What one cycle made of the tasks of a case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
from msgspec import Struct

from pumice.columns.nodes import FUTURE, IDLE
from pumice.columns.tables import Tables
from pumice.framework.cycle.outcome import Outcome
from pumice.model.decisions import CLAIMS, GPU_GROUPS, Bind, ClaimGrant, Evict, device_grant
from pumice.model.devices.numa import PREDICTED_ANNOTATION, zone_amounts
from pumice.model.status import ALLOCATED_STATUSES, TaskStatus
from tests.conformance.runner.kai.objects import GPU
from tests.conformance.runner.result import Unusable
from tests.conformance.runner.session import Recorder

Raw = Mapping[str, Any]

#: On their nodes until they are gone.
_LEAVES = (TaskStatus.RELEASING, TaskStatus.PIPELINED)


class Place(Struct, frozen=True):
    """Where a task is: its state by KAI's name, and its node, empty for none."""

    state: str
    node: str = ""

    def __str__(self) -> str:
        return f"{self.state}@{self.node}" if self.node else self.state


class Seen:
    """``places`` by task. ``binds``, ``evictions``: decisions. ``pipelines``: tasks that wait for a node they were
    promised. ``groups``: the tasks that share devices with each bound task. ``given``: what claims were given, by name.
    ``zones``: numbers of the NUMA zones that bound tasks are expected to get."""

    def __init__(self, outcome: Outcome, recorder: Recorder) -> None:
        if outcome.faults:
            raise Unusable(f"a plugin failed: {outcome.faults[0]}")
        self.tables = outcome.tables
        self.places = places_in(outcome.tables)
        self.binds = sum(isinstance(each, Bind) for each in recorder.taken)
        self.evictions = sum(isinstance(each, Evict) for each in recorder.taken)
        self.pipelines = sum(place.state == "Pipelined" for place in self.places.values())
        self.groups = {
            each.pod.partition("/")[2]: list(map(str, cast(Iterable[object], each.context[GPU_GROUPS])))
            for each in recorder.taken
            if isinstance(each, Bind) and GPU_GROUPS in each.context
        }
        self.given = {
            grant.claim.partition("/")[2]: grant.allocation
            for each in recorder.taken
            if isinstance(each, Bind)
            for grant in cast(Iterable[ClaimGrant], each.context.get(CLAIMS, ()))
            if grant.allocation is not None
        }
        self.overcommitted = overcommitted(outcome.tables)
        self.zones = {
            each.pod.partition("/")[2]: [
                int(zone.rpartition("-")[2]) for zone, _ in zone_amounts(dict(given.annotations)[PREDICTED_ANNOTATION])
            ]
            for each in recorder.taken
            if isinstance(each, Bind)
            and (given := device_grant(each)) is not None
            and PREDICTED_ANNOTATION in dict(given.annotations)
        }

    def gpus(self, node: str) -> tuple[float, float]:
        """(idle, releasing) whole devices of a node."""
        row = self.tables.nodes.facts.row_of[node]
        books = self.tables.nodes.books[row, :, self.tables.axis.names.index(GPU)] / 1000.0
        return float(books[IDLE]), float(books[FUTURE] - books[IDLE])


def places_in(tables: Tables) -> dict[str, Place]:
    """Where each task is, by the name of its pod."""
    tasks, names = tables.tasks, tables.nodes.facts.names
    found = {}
    for row in (tasks.status >= 0).nonzero()[0].tolist():
        state = TaskStatus(int(tasks.status[row])).label
        node = names[tasks.node[row]] if tasks.node[row] >= 0 else ""
        found[tasks.pods[row].name] = Place(state, "" if state in ("Pending", "Failed", "Succeeded") else node)
    return found


def overcommitted(tables: Tables) -> list[str]:
    """Nodes of which more was given away than there is, now or when all that leave have left: by what pods ask for, not
    by the books."""
    tasks, facts = tables.tasks, tables.nodes.facts
    now, soon = np.zeros_like(facts.allocatable), np.zeros_like(facts.allocatable)
    for row in (tasks.status >= 0).nonzero()[0].tolist():
        status, asked = int(tasks.status[row]), tables.classes.charge[tasks.cls[row]]
        stays = status in ALLOCATED_STATUSES
        there = tasks.node[row] if stays else facts.row_of.get(tasks.pods[row].node_name, -1)
        if there >= 0 and (stays or status in _LEAVES):
            now[there] += asked
        if stays or status == TaskStatus.PIPELINED:
            soon[tasks.node[row]] += asked
    short = np.asarray((np.maximum(now, soon) > facts.allocatable + 1e-6).any(axis=1))
    return [facts.names[row] for row in short.nonzero()[0].tolist()]
