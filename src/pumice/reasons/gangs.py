"""Blockers of the gang itself: pods that are missing, are leaving or are held back, and nodes reserved for it."""

from __future__ import annotations

from collections import Counter

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.counting import RELEASING, VALID
from pumice.columns.dtypes import EPS
from pumice.columns.nodes import RELEASING as RELEASED
from pumice.columns.views import Job
from pumice.model.blockers import Amount, GangIncomplete, Gated, Reserved
from pumice.model.pod import QUEUE_GATE
from pumice.model.status import TaskStatus
from pumice.reasons.view import View


def incomplete(view: View, job: int, text: str = "") -> GangIncomplete | None:
    """Return by how many pods the gang is below its minimum, in all or of a role, or None. ``text``: the language's."""
    tables, handle = view.tables, Job(view.tables, job)
    rows, least, valid = tables.jobs.tasks[job], handle.min_available, handle.valid_count
    if valid < least:
        leaving = int(np.count_nonzero(tables.tasks.status[rows] == RELEASING))
        return GangIncomplete("", valid, least, text, leaving)
    live = [row for row in rows.tolist() if VALID[tables.tasks.status[row]]]
    roles = Counter(tables.tasks.pods[row].role for row in live)
    lacking = [(role, least) for role, least in sorted(handle.group.min_task_member.items()) if roles[role] < least]
    return GangIncomplete(lacking[0][0], roles[lacking[0][0]], lacking[0][1], text) if lacking else None


def held_back(view: View, job: int, *, by_its_queue: bool = False) -> Gated | None:
    """Return the gates that hold back so many of its waiting pods that it cannot start; of a job that runs, all.
    ``by_its_queue``: the gate that the scheduler takes off once the queue takes the pod on, too."""
    # Most jobs have no gates, and thousands of pods are not looked at for them.
    if not by_its_queue and not view.tables.jobs.gated[job]:
        return None
    pods = [view.tables.tasks.pods[row] for row in view.waiting_rows(job)]
    gated = [pod for pod in pods if pod.gates and (by_its_queue or pod.gates != (QUEUE_GATE,))]
    if not gated or len(pods) - len(gated) >= view.needed(job):
        return None
    return Gated(tuple(sorted({gate for pod in gated for gate in pod.gates})), len(gated), len(pods))


def reserved(view: View, job: int) -> Reserved | None:
    """Return the nodes that are reserved for its pods, with what leaves there, or None."""
    tables, rows = view.tables, view.tables.jobs.tasks[job]
    if not tables.jobs.counts[job, TaskStatus.PIPELINED]:
        return None
    mine = rows[tables.tasks.status[rows] == TaskStatus.PIPELINED]
    nodes = distinct(tables.tasks.node[mine])
    leaving = (tables.tasks.status == TaskStatus.RELEASING) & np.isin(tables.tasks.node, nodes)
    pods = [tables.tasks.pods[row] for row in leaving.nonzero()[0].tolist()]
    names = tuple(view.facts.names[node] for node in nodes.tolist())
    found = Reserved(tables.jobs.uids[job], names, bool(pods), tuple(sorted({p.group_key or p.key for p in pods})))
    asked = sum((view.request(row) for row in mine.tolist()), start=np.zeros(len(view.axis)))
    freed = tables.nodes.books[nodes, RELEASED].sum(axis=0)
    d = next((d for d in view.asked_in(asked) if freed[d] >= EPS), None)
    if d is None:
        return found
    return Reserved(
        found.job, names, found.leaving, found.by, Amount(view.axis.names[d], float(asked[d])), float(freed[d])
    )
