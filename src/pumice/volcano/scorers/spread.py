"""Topology spread constraints that are wishes (ScheduleAnyway). Source: kube-scheduler PodTopologySpread (1.36)
scoring.

A pod without constraints would get the system's default ones in kube-scheduler, made from the Services and controllers
that select it; Pumice does not read those, so such a pod has none.
"""

from __future__ import annotations

from math import log

import numpy as np

from pumice.columns.dtypes import F64, I64, AnyArray
from pumice.columns.rows import NodeRows
from pumice.columns.views import Task
from pumice.framework.filters.pods import PodIndex
from pumice.framework.filters.spread import SOFT, Prepared, prepare
from pumice.model.pod import Pod

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
        cls, rows = task.cls.row, nodes.rows
        constraints = self._of(cls)
        labelled = np.ones(len(rows), dtype=bool)
        for prepared in constraints:
            labelled &= prepared.codes[rows] >= 0
        taking_part = rows[labelled]
        score = np.zeros(len(rows))
        if not len(taking_part):
            return score
        crowd = np.zeros(len(taking_part))
        for i, prepared in enumerate(constraints):
            counts, domains = self._counts(task.pod, (SOFT, cls, i), prepared, taking_part)
            crowd += counts * log(domains + 2) + (prepared.constraint.max_skew - 1)
        score[labelled] = _reversed(_rounded(crowd))
        return score

    def _counts(self, pod: Pod, kind: tuple[str, int, int], prepared: Prepared, rows: AnyArray) -> tuple[I64, int]:
        """Matching pods in each candidate's domain, and the number of domains among the candidates."""
        constraint = prepared.constraint
        pods = self._index.in_namespace(constraint.selector, pod.namespace)
        if constraint.topology_key == HOSTNAME:
            return pods.per_node()[rows], len(rows)
        codes = prepared.codes[rows]
        return pods.per_domain(constraint.topology_key, prepared.counted, kind)[codes], len(np.unique(codes))

    def _of(self, cls: int) -> tuple[Prepared, ...]:
        found = self._prepared.get(cls)
        if found is None:
            tables = self._index.tables
            found = self._prepared[cls] = prepare(self._index.derived, tables.classes.specs[cls], SOFT)
        return found


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
