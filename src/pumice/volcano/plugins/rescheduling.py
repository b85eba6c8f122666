"""rescheduling: from time to time evict pods from nodes with high measured load, while others have low load.

It names victims for the action shuffle. Measured load is a table of the snapshot. Source: Volcano rescheduling plugin,
strategy lowNodeUtilization; decision 0015 lists the differences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from pumice.api import (
    CPU,
    F64,
    MEMORY,
    AnyArray,
    Bool,
    Session,
    TaskRows,
    plugin,
    points,
)
from pumice.model.plain_words import kind_of
from pumice.volcano.durations import argument_s, duration_problems
from pumice.volcano.scorers.node_usage import node_usage

STRATEGY = "lowNodeUtilization"
DEFAULT_INTERVAL = "5m"
RAN_AT = "rescheduling.ran_at"
_AMOUNTS = [CPU, MEMORY]
_NAMES = ("cpu", "memory")
# The order in which pods lose: those without requests first, because they were promised nothing.
_QOS = {"BestEffort": 0, "Burstable": 1, "Guaranteed": 2}


class Limits(NamedTuple):
    """Limits in percent, CPU and memory (2,) each. A node is idle below ``low`` in both, and busy above ``high`` in
    either."""

    low: F64
    high: F64

    @classmethod
    def read(cls, strategies: object) -> Limits | None:
        """Return the limits of the first lowNodeUtilization, None if there is none. Invalid values are 100."""
        if strategies is None:
            return cls(np.full(2, 100.0), np.full(2, 100.0))
        for each in strategies if isinstance(strategies, list) else ():
            if isinstance(each, Mapping) and each.get("name") == STRATEGY:
                return cls(*(_percents(each, kind) for kind in ("thresholds", "targetThresholds")))
        return None


@plugin("rescheduling")
class Rescheduling:
    """Evict pods from busy nodes.

    ``interval``: time between two runs, counted from the start of the scheduler. ``strategies``: a list of
    ``{name, params}``; the only strategy is ``lowNodeUtilization`` with ``thresholds`` and ``targetThresholds``
    (``{cpu: 20, memory: 20}``, percent of a node). ``metricsPeriod`` has no effect: load is measured as the mean of
    ten minutes.
    """

    def __init__(
        self, ssn: Session, *, interval: str = DEFAULT_INTERVAL, metricsPeriod: str = "5m", strategies: Any = None
    ) -> None:
        self.ssn = ssn
        self.interval = argument_s(interval, DEFAULT_INTERVAL)
        self.limits = Limits.read(strategies)
        ran_at = ssn.snapshot.notes.get(RAN_AT)
        # The time of the last run is a note of the snapshot, and not a field of the process: a cycle remains a function
        # of its inputs, and a restart does not run it early.
        self.due = ran_at is not None and ssn.now - ran_at >= self.interval
        self._is_first = ran_at is None

    @staticmethod
    def problems(*, interval: str, metricsPeriod: str, strategies: object) -> Iterator[str]:
        """Yield problems with the arguments."""
        yield from duration_problems("interval", interval, DEFAULT_INTERVAL)
        if strategies is not None and not isinstance(strategies, list):
            yield f"argument strategies: found {kind_of(strategies)}, wanted a list of {{name, params}}"
            return
        found = (problem for each in strategies or () for problem in _strategy_problems(each))
        yield from islice(found, 1)

    def wakes_at(self) -> float | None:
        """Return the time of the next run, if the policy has the action shuffle."""
        ran_at = self.ssn.snapshot.notes.get(RAN_AT)
        if self.limits is None or ran_at is None or not self.ssn.policy.has_action("shuffle"):
            return None
        return ran_at + self.interval if ran_at + self.interval > self.ssn.now else None

    @points.victim_tasks
    def victim_tasks(self, tasks: TaskRows) -> Bool:
        """Return the tasks to evict: from the busiest node first, the least important pods first, until the node is no
        longer busy or the idle nodes have no room left. Shape (rows,)."""
        found = np.zeros(len(tasks), dtype=bool)
        if not self.due or self.limits is None:
            return found
        load, known = self._load()
        if not known.any():
            return found
        # A cordoned node can take no pods, however low its load is.
        idle = known & ~self.ssn.tables.nodes.facts.unschedulable & (load < self.limits.low).all(axis=1)
        busy = (known & ~idle & (load > self.limits.high).any(axis=1)).nonzero()[0]
        # Without an idle node, an evicted pod would only move the load to another busy one.
        if idle.any() and len(busy):
            room = self._room(load, idle)
            table = self.ssn.tables.tasks
            # Only pods marked as preemptable may be evicted.
            where = np.where(table.preemptable[tasks.rows], table.node[tasks.rows], -1)
            # Stable, so that equally busy nodes are relieved in the order of their rows.
            for node in busy[np.argsort(-load[busy].sum(axis=1), kind="stable")].tolist():
                self._relieve(tasks, (where == node).nonzero()[0], load[node], node, room, found)
        return found

    def _load(self) -> tuple[F64, Bool]:
        """Return the load of nodes in percent, and whether it is known. Shapes (N, 2), (N,)."""
        measured = node_usage(self.ssn)
        return np.column_stack([measured.cpu, measured.memory]), measured.fresh(self.ssn.now)

    def _room(self, load: F64, idle: Bool) -> F64:
        """Return how much the idle nodes can take together up to the high limit. Shape (2,)."""
        assert self.limits is not None
        # Of what is allocatable, because only so much can be placed there; the load itself is percent of the machine.
        has = self.ssn.tables.nodes.facts.allocatable[idle][:, _AMOUNTS]
        found: F64 = ((self.limits.high - load[idle]) / 100.0 * has).sum(axis=0)
        return found

    def _relieve(self, tasks: TaskRows, there: AnyArray, load: F64, node: int, room: F64, found: Bool) -> None:
        """Mark the tasks to evict from one node. Updates ``load`` and ``room``."""
        assert self.limits is not None
        pods, req = tasks.pods, tasks.tables.classes.req
        # At least 1, because a node may state none of a resource, and its load is divided by this.
        has = np.maximum(tasks.tables.nodes.facts.view_allocatable[node, _AMOUNTS], 1.0)

        def importance(at: int) -> tuple[Any, ...]:
            pod = pods[at]
            return pod.spec.priority or 0, _QOS.get(pod.spec.qos, 1), pod.creation, pod.uid

        for at in sorted(there.tolist(), key=importance):
            # Checked before each task, because both change with each eviction: the node may be relieved, or the idle
            # nodes be full.
            if not (load >= self.limits.high).any() or not (room > 0).all():
                return
            asked = req[tasks.classes[at], _AMOUNTS]
            found[at] = True
            room -= asked
            load -= 100.0 * asked / has

    @points.session_close
    def close(self) -> None:
        """Remember the time of the last run. The first session sets the start."""
        if self._is_first or (self.due and self.ssn.policy.has_action("shuffle")):
            self.ssn.notes[RAN_AT] = self.ssn.now


def _params(strategy: Mapping[str, Any], kind: str) -> Any:
    """Return the thresholds of a strategy."""
    params = strategy.get("params")
    return params.get(kind) if isinstance(params, Mapping) else None


def _percents(strategy: Mapping[str, Any], kind: str) -> F64:
    """Return thresholds as numbers, 100 for invalid ones."""
    stated = _params(strategy, kind)
    values = stated if isinstance(stated, Mapping) else {}
    return np.array([float(values[name]) if _is_percent(values.get(name)) else 100.0 for name in _NAMES])


def _is_percent(value: object) -> bool:
    """Return True for a whole number from 0 to 100."""
    return type(value) is int and 0 <= value <= 100


def _strategy_problems(strategy: Any) -> Iterator[str]:
    """Yield problems with a strategy."""
    # Without a message, a misspelled strategy would look like a cluster in balance.
    name = strategy.get("name") if isinstance(strategy, Mapping) else strategy
    if name != STRATEGY:
        yield f"argument strategies: found {name!r:.80}, wanted {STRATEGY}; nothing is done for it"
        return
    for kind in ("thresholds", "targetThresholds"):
        stated = _params(strategy, kind)
        if stated is not None and not isinstance(stated, Mapping):
            yield f"argument strategies, {kind}: found {kind_of(stated)}, wanted a mapping with cpu and memory"
        for resource, value in stated.items() if isinstance(stated, Mapping) else ():
            if resource not in _NAMES:
                yield f"argument strategies, {kind}: found {str(resource)[:80]!r}, wanted cpu or memory"
            elif not _is_percent(value):
                yield f"argument strategies, {kind}.{resource}: found {value!r:.80}, wanted a whole number, 0 to 100"
