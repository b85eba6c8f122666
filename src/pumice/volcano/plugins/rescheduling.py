"""rescheduling: every now and then pods leave nodes that are really busy, as long as others are really idle.

It names victims of ``shuffle``. What was measured is a table of the snapshot (decision 0015). Source: Volcano
rescheduling (spec 04 §22), strategy lowNodeUtilization; where it differs: decision 0015.
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
    DurationError,
    Session,
    TaskRows,
    parse_duration,
    plugin,
    points,
)
from pumice.model.plain_words import kind_of
from pumice.volcano.scorers.node_usage import node_usage

STRATEGY = "lowNodeUtilization"
DEFAULT_INTERVAL = 300.0
RAN_AT = "rescheduling.ran_at"
_AMOUNTS = [CPU, MEMORY]
_NAMES = ("cpu", "memory")
_QOS = {"BestEffort": 0, "Burstable": 1, "Guaranteed": 2}


class Limits(NamedTuple):
    """In percent, cpu and memory (2,) each: a node with less than ``low`` of both is idle, one with more than ``high``
    of either busy."""

    low: F64
    high: F64

    @classmethod
    def read(cls, strategies: object) -> Limits | None:
        """Of the first lowNodeUtilization there is, None without; what cannot be read is 100."""
        if strategies is None:
            return cls(np.full(2, 100.0), np.full(2, 100.0))
        for each in strategies if isinstance(strategies, list) else ():
            if isinstance(each, Mapping) and each.get("name") == STRATEGY:
                return cls(*(_percents(each, kind) for kind in ("thresholds", "targetThresholds")))
        return None


@plugin("rescheduling")
class Rescheduling:
    """``interval``: how long between two times, from when the scheduler started. ``strategies``: a list of ``{name,
    params}``, of which there is ``lowNodeUtilization`` with ``thresholds`` and ``targetThresholds`` (``{cpu: 20,
    memory: 20}``, percent of what a node has). ``metricsPeriod`` is read by nobody: what is measured is the mean of
    ten minutes.
    """

    def __init__(
        self, ssn: Session, *, interval: str = "5m", metricsPeriod: str = "5m", strategies: Any = None
    ) -> None:
        self.ssn = ssn
        self.interval, self.limits = _seconds(interval), Limits.read(strategies)
        ran_at = ssn.snapshot.notes.get(RAN_AT)
        self.due = ran_at is not None and ssn.now - ran_at >= self.interval
        self._is_first = ran_at is None

    @staticmethod
    def problems(*, interval: str, metricsPeriod: str, strategies: object) -> Iterator[str]:
        """What cannot be used."""
        try:
            parse_duration(interval)
        except DurationError:
            yield f"argument interval: found {interval[:80]!r}, wanted a duration such as 5m; it is 5m"
        if strategies is not None and not isinstance(strategies, list):
            yield f"argument strategies: found {kind_of(strategies)}, wanted a list of {{name, params}}"
            return
        found = (problem for each in strategies or () for problem in _strategy_problems(each))
        yield from islice(found, 1)

    def wakes_at(self) -> float | None:
        """The next time, where the policy has the action."""
        ran_at = self.ssn.snapshot.notes.get(RAN_AT)
        if self.limits is None or ran_at is None or not self.ssn.policy.has_action("shuffle"):
            return None
        return ran_at + self.interval if ran_at + self.interval > self.ssn.now else None

    @points.victim_tasks
    def victim_tasks(self, tasks: TaskRows) -> Bool:
        """Of the busiest node first, and of each the least important pods, until it is busy no longer or the idle nodes
        could take no more. Shape (rows,)."""
        found = np.zeros(len(tasks), dtype=bool)
        if not self.due or self.limits is None:
            return found
        load, known = self._load()
        if not known.any():
            return found
        idle = known & ~self.ssn.tables.nodes.facts.unschedulable & (load < self.limits.low).all(axis=1)
        busy = (known & ~idle & (load > self.limits.high).any(axis=1)).nonzero()[0]
        if idle.any() and len(busy):
            room = self._room(load, idle)
            table = self.ssn.tables.tasks
            where = np.where(table.preemptable[tasks.rows], table.node[tasks.rows], -1)
            for node in busy[np.argsort(-load[busy].sum(axis=1), kind="stable")].tolist():
                self._relieve(tasks, (where == node).nonzero()[0], load[node], node, room, found)
        return found

    def _load(self) -> tuple[F64, Bool]:
        """Percent of cpu and memory in use on each node, and of which nodes that is known. Shapes (N, 2), (N,)."""
        measured = node_usage(self.ssn)
        return np.column_stack([measured.cpu, measured.memory]), measured.fresh(self.ssn.now)

    def _room(self, load: F64, idle: Bool) -> F64:
        """How much more the idle nodes may have together until they are as full as they should be. Shape (2,)."""
        assert self.limits is not None
        has = self.ssn.tables.nodes.facts.allocatable[idle][:, _AMOUNTS]
        found: F64 = ((self.limits.high - load[idle]) / 100.0 * has).sum(axis=0)
        return found

    def _relieve(self, tasks: TaskRows, there: AnyArray, load: F64, node: int, room: F64, found: Bool) -> None:
        """Mark those of the tasks on one node that should leave it; ``load`` and ``room`` shrink with each."""
        assert self.limits is not None
        pods, req = tasks.pods, tasks.tables.classes.req
        has = np.maximum(tasks.tables.nodes.facts.view_allocatable[node, _AMOUNTS], 1.0)

        def importance(at: int) -> tuple[Any, ...]:
            pod = pods[at]
            return pod.spec.priority or 0, _QOS.get(pod.spec.qos, 1), pod.creation, pod.uid

        for at in sorted(there.tolist(), key=importance):
            if not (load >= self.limits.high).any() or not (room > 0).all():
                return
            asked = req[tasks.classes[at], _AMOUNTS]
            found[at] = True
            room -= asked
            load -= 100.0 * asked / has

    @points.session_close
    def close(self) -> None:
        """Remember when it was last time; the first session is when the scheduler started."""
        if self._is_first or (self.due and self.ssn.policy.has_action("shuffle")):
            self.ssn.notes[RAN_AT] = self.ssn.now


def _params(strategy: Mapping[str, Any], kind: str) -> Any:
    params = strategy.get("params")
    return params.get(kind) if isinstance(params, Mapping) else None


def _percents(strategy: Mapping[str, Any], kind: str) -> F64:
    stated = _params(strategy, kind)
    values = stated if isinstance(stated, Mapping) else {}
    return np.array([float(values[name]) if _is_percent(values.get(name)) else 100.0 for name in _NAMES])


def _is_percent(value: object) -> bool:
    return type(value) is int and 0 <= value <= 100


def _strategy_problems(strategy: Any) -> Iterator[str]:
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


def _seconds(text: str) -> float:
    try:
        return max(0.0, parse_duration(text))
    except DurationError:
        return DEFAULT_INTERVAL
