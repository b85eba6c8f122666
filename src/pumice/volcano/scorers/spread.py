"""Topology spread constraints that are wishes (ScheduleAnyway). Source: kube-scheduler PodTopologySpread (1.36)
scoring.

A pod without constraints would get the system's default ones in kube-scheduler, made from the Services and controllers
that select it; Pumice does not read those, so such a pod has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import NamedTuple

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.dtypes import F64, I64, AnyArray
from pumice.columns.rows import NodeRows, TaskRows
from pumice.columns.views import Task
from pumice.framework.plugin.incremental import ScoreInTurn
from pumice.model.pod import Pod
from pumice.placing.filters.pods import PodIndex, PodSet
from pumice.placing.filters.spread import SOFT, Prepared, prepare

HOSTNAME = "kubernetes.io/hostname"


class SpreadScore:
    """Asked only for tasks of classes that it ``concerns``."""

    def __init__(self, index: PodIndex) -> None:
        self._index = index
        self._prepared: dict[int, tuple[Prepared, ...]] = {}

    def concerns(self, cls: int) -> bool:
        return bool(self._of(cls))

    def score(self, task: Task, nodes: NodeRows) -> F64:
        """100 where the fewest matching pods are, less where more are; 0 without the labels. Shape (rows,)."""
        cls, pod = task.cls.row, task.pod
        return _score([self._crowd(pod, (SOFT, cls, i), each) for i, each in enumerate(self._of(cls))], nodes.rows)

    def in_turn(self, tasks: TaskRows, nodes: NodeRows) -> ScoreInTurn:
        """The same for tasks of one class that are placed one after the other."""
        cls, pod = tasks.classes[0], tasks.pods[0]
        crowds, joins = [], []
        for i, prepared in enumerate(self._of(cls)):
            crowd = self._crowd(pod, (SOFT, cls, i), prepared)
            crowds.append(crowd._replace(counts=crowd.counts.copy()))
            joins.append(self._pods(pod, prepared).joined_by(tasks))
        return _SpreadInTurn(crowds, joins, nodes.rows, len(tasks))

    def _crowd(self, pod: Pod, kind: tuple[str, int, int], prepared: Prepared) -> _Crowd:
        pods, key = self._pods(pod, prepared), prepared.constraint.topology_key
        if key == HOSTNAME:
            return _Crowd(prepared, pods.per_node(), by_node=True)
        return _Crowd(prepared, pods.per_domain(key, prepared.counted, kind), by_node=False)

    def _pods(self, pod: Pod, prepared: Prepared) -> PodSet:
        return self._index.in_namespace(prepared.constraint.selector, pod.namespace)

    def _of(self, cls: int) -> tuple[Prepared, ...]:
        found = self._prepared.get(cls)
        if found is None:
            tables = self._index.tables
            found = self._prepared[cls] = prepare(self._index.derived, tables.classes.specs[cls], SOFT)
        return found


class _Crowd(NamedTuple):
    """A constraint with the number of matching pods on each node (N,), ``by_node``, or in each domain (D + 1,)."""

    prepared: Prepared
    counts: I64
    by_node: bool

    def among(self, rows: AnyArray) -> tuple[I64, int]:
        """Matching pods in each candidate's domain, and the number of domains among the candidates."""
        if self.by_node:
            return self.counts[rows], len(rows)
        codes = self.prepared.codes[rows]
        return self.counts[codes], len(distinct(codes))

    def add(self, row: int) -> None:
        """One more is on a node."""
        if self.by_node:
            self.counts[row] += 1
        elif self.prepared.counted[row]:
            self.counts[self.prepared.codes[row]] += 1


class _SpreadInTurn(ScoreInTurn):
    """``joins``, by constraint: whether the task of a turn is counted once it is placed."""

    def __init__(self, crowds: Sequence[_Crowd], joins: Sequence[list[int]], rows: AnyArray, count: int) -> None:
        self.count, self._crowds, self._joins, self._rows = count, crowds, joins, rows

    def score(self, turn: int, places: AnyArray) -> F64:
        return _score(self._crowds, self._rows[places])

    def placed(self, turn: int, place: int) -> bool:
        joined = [crowd for crowd, joins in zip(self._crowds, self._joins, strict=True) if joins[turn]]
        for crowd in joined:
            crowd.add(int(self._rows[place]))
        return bool(joined)


def _score(crowds: Sequence[_Crowd], rows: AnyArray) -> F64:
    """Shape (rows,)."""
    labelled = np.ones(len(rows), dtype=bool)
    for crowd in crowds:
        labelled &= crowd.prepared.codes[rows] >= 0
    taking_part = rows[labelled]
    score = np.zeros(len(rows))
    if not len(taking_part):
        return score
    crowded = np.zeros(len(taking_part))
    for crowd in crowds:
        counts, domains = crowd.among(taking_part)
        crowded += counts * log(domains + 2) + (crowd.prepared.constraint.max_skew - 1)
    score[labelled] = _reversed(_rounded(crowded))
    return score


def _rounded(values: F64) -> I64:
    """Halves up (values are not below 0)."""
    whole = np.floor(values)
    return (whole + (values - whole >= 0.5)).astype(np.int64)


def _reversed(crowd: I64) -> F64:
    """100 · (max + min - crowd) / max, whole; 100 for all where nobody is."""
    most = int(crowd.max())
    if most == 0:
        return np.full(len(crowd), 100.0)
    return (100 * (most + int(crowd.min()) - crowd) // most).astype(np.float64)
