"""A summary as a viewer may see it: the jobs of some namespaces, and queues as sums over all."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import asdict, replace

from pumice.answers.seen import HiddenNames
from pumice.columns.dtypes import Bool
from pumice.runtime.serving.viewers import Scope, namespaces_of
from pumice.web.columns.devices import NO_DEVICES
from pumice.web.columns.pods import PodColumns
from pumice.web.jobs_query import JobsIndex
from pumice.web.summary import CycleSummary, JobColumns, kinds_of

#: For how many kinds of viewers the newest summary is kept.
_KEPT_MAX = 16


def as_seen(summary: CycleSummary, scope: Scope) -> CycleSummary:
    """Return what a viewer may see of a summary."""
    nodes = summary.nodes
    if not scope.nodes:
        empty = [""] * len(nodes.names)  # sums stay, for overviews
        nodes = replace(nodes, names=empty, groupings=(), closed=empty)
        summary = replace(summary, nodes=nodes, devices=NO_DEVICES)
    if scope.is_all:
        return summary
    jobs, pods = _jobs(summary.jobs, scope), _pods(summary, scope)
    return replace(summary, jobs=jobs, pods=pods, waiting=kinds_of(jobs), reserves_from=None)


def hidden_names(namespaces: Sequence[str], scope: Scope) -> HiddenNames:
    """Return the names of objects that a viewer may not see. ``namespaces``: those that have jobs."""
    return HiddenNames(name for name in namespaces if not scope.is_all and name not in (scope.namespaces or ()))


def _jobs(jobs: JobColumns, scope: Scope) -> JobColumns:
    hidden = hidden_names(namespaces_of(jobs.names), scope)
    rows = _seen(jobs, scope).nonzero()[0]
    columns: dict[str, Any] = asdict(jobs)
    taken: dict[str, Any] = {
        name: column[rows] if isinstance(column, np.ndarray) else [column[row] for row in rows.tolist()]
        for name, column in columns.items()
    }
    taken["sentences"] = [hidden.removed(each) for each in taken["sentences"]]
    return JobColumns(**taken)


def _seen(jobs: JobColumns, scope: Scope) -> Bool:
    return np.fromiter((scope.has(name) for name in jobs.names), dtype=bool, count=len(jobs))


def _pods(summary: CycleSummary, scope: Scope) -> PodColumns:
    """Return the pods of jobs that a viewer may see. Those of no job are in no list of theirs."""
    pods, seen = summary.pods, _seen(summary.jobs, scope)
    rows = (np.append(seen, False)[pods.job]).nonzero()[0]
    place = np.cumsum(seen) - 1
    return PodColumns(
        [pods.names[row] for row in rows.tolist()],
        place[pods.job[rows]].astype(np.int32),
        pods.node[rows],
        pods.status[rows],
    )


class SeenJobs:
    """The newest summary, with the jobs that each viewer may see."""

    def __init__(self) -> None:
        self._of: JobsIndex | None = None
        self._kept: OrderedDict[Scope, JobsIndex] = OrderedDict()

    def index(self, index: JobsIndex | None, scope: Scope) -> JobsIndex | None:
        """Return the index of a viewer. ``index``: of all jobs, None before the first cycle."""
        if index is None or (scope.is_all and scope.nodes):
            return index
        if index is not self._of:
            self._kept.clear()
            self._of = index
        found = self._kept.get(scope)
        if found is None:
            found = self._kept[scope] = JobsIndex(as_seen(index.summary, scope))
        self._kept.move_to_end(scope)
        if len(self._kept) > _KEPT_MAX:
            self._kept.popitem(last=False)
        return found
