"""Score topology spread constraints with ScheduleAnyway. Source: kube-scheduler PodTopologySpread (1.36) scoring.

kube-scheduler gives a pod without constraints system defaults, derived from the Services and controllers that select
it. Pumice does not read those, so such a pod has none.
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
from pumice.placing.filters.spread import SOFT, Prepared, prepared_of

HOSTNAME = "kubernetes.io/hostname"


class SpreadScore:
    """The score of the soft constraints. Asked only for classes that it ``concerns``."""

    def __init__(self, index: PodIndex) -> None:
        self._index = index

    def concerns(self, cls: int) -> bool:
        """Return True if the class has soft constraints."""
        return bool(self._of(cls))

    def score(self, task: Task, nodes: NodeRows) -> F64:
        """Return 100 where the fewest matching pods are, less where there are more, and 0 without the labels.
        Shape (rows,)."""
        cls, pod = task.cls.row, task.pod
        return _score([self._crowd(pod, (SOFT, cls, i), each) for i, each in enumerate(self._of(cls))], nodes.rows)

    def in_turn(self, tasks: TaskRows, nodes: NodeRows) -> ScoreInTurn:
        """Return an incremental score for tasks of one class that are placed one after the other."""
        cls, pod = tasks.classes[0], tasks.pods[0]
        crowds, joins = [], []
        for i, prepared in enumerate(self._of(cls)):
            crowd = self._crowd(pod, (SOFT, cls, i), prepared)
            # Copied, because the counts change with each placement.
            crowds.append(crowd._replace(counts=crowd.counts.copy()))
            joins.append(self._pods(pod, prepared).joined_by(tasks))
        return _SpreadInTurn(crowds, joins, nodes.rows, len(tasks))

    def _crowd(self, pod: Pod, kind: tuple[str, int, int], prepared: Prepared) -> _Crowd:
        """Return a constraint with its counts."""
        pods, key = self._pods(pod, prepared), prepared.constraint.topology_key
        # Each node is a domain of its own, so the counts per node are used without a mapping.
        if key == HOSTNAME:
            return _Crowd(prepared, pods.per_node(), by_node=True)
        return _Crowd(prepared, pods.per_domain(key, prepared.counted, kind), by_node=False)

    def _pods(self, pod: Pod, prepared: Prepared) -> PodSet:
        """Return the pods that a constraint selects."""
        return self._index.in_namespace(prepared.constraint.selector, pod.namespace)

    def _of(self, cls: int) -> tuple[Prepared, ...]:
        """Return the prepared constraints of a class."""
        return prepared_of(self._index, cls, SOFT)


class _Crowd(NamedTuple):
    """A constraint with the number of matching pods per node (N,) if ``by_node``, or else per domain (D + 1,)."""

    prepared: Prepared
    counts: I64
    by_node: bool

    def among(self, rows: AnyArray) -> tuple[I64, int]:
        """Return the number of matching pods in each candidate's domain, and the number of domains among the
        candidates."""
        if self.by_node:
            return self.counts[rows], len(rows)
        codes = self.prepared.codes[rows]
        return self.counts[codes], len(distinct(codes))

    def add(self, row: int) -> None:
        """Count one more pod on a node."""
        if self.by_node:
            self.counts[row] += 1
        elif self.prepared.counted[row]:
            self.counts[self.prepared.codes[row]] += 1


class _SpreadInTurn(ScoreInTurn):
    """The incremental score. ``joins``: per constraint, whether the task of a step matches its selector."""

    def __init__(self, crowds: Sequence[_Crowd], joins: Sequence[list[int]], rows: AnyArray, count: int) -> None:
        self.count, self._crowds, self._joins, self._rows = count, crowds, joins, rows

    def score(self, step: int, places: AnyArray) -> F64:
        return _score(self._crowds, self._rows[places])

    def placed(self, step: int, place: int) -> bool:
        # A pod need not match the selectors of its own constraints, and then it changes nothing for the next one.
        joined = [crowd for crowd, joins in zip(self._crowds, self._joins, strict=True) if joins[step]]
        for crowd in joined:
            crowd.add(int(self._rows[place]))
        return bool(joined)


def _score(crowds: Sequence[_Crowd], rows: AnyArray) -> F64:
    """Return the score of candidates. Shape (rows,)."""
    labelled = np.ones(len(rows), dtype=bool)
    for crowd in crowds:
        # Nodes that lack one of the labels are left out of all constraints, as in kube-scheduler.
        labelled &= crowd.prepared.codes[rows] >= 0
    taking_part = rows[labelled]
    score = np.zeros(len(rows))
    if not len(taking_part):
        return score
    crowded = np.zeros(len(taking_part))
    for crowd in crowds:
        counts, domains = crowd.among(taking_part)
        # As in kube-scheduler: the logarithm gives constraints with few domains, such as zones, less weight per pod.
        crowded += counts * log(domains + 2) + (crowd.prepared.constraint.max_skew - 1)
    score[labelled] = _reversed(_rounded(crowded))
    return score


def _rounded(values: F64) -> I64:
    """Round halves up, for values that are not negative."""
    # Not np.rint, which rounds halves to even, while Go's math.Round rounds them up.
    whole = np.floor(values)
    return (whole + (values - whole >= 0.5)).astype(np.int64)


def _reversed(crowd: I64) -> F64:
    """Return 100 · (max + min - crowd) / max as whole numbers, 100 for all if there are no pods."""
    most = int(crowd.max())
    # Without any pod every candidate is equally good, and the division below would be by 0.
    if most == 0:
        return np.full(len(crowd), 100.0)
    return (100 * (most + int(crowd.min()) - crowd) // most).astype(np.float64)
