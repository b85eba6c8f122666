"""Hints where the gang itself is not what it must be: pods that are missing, leave, or are held back."""

from __future__ import annotations

from collections import Counter

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.counting import RELEASING, VALID
from pumice.columns.dtypes import EPS
from pumice.columns.nodes import RELEASING as RELEASED
from pumice.columns.views import Job
from pumice.explain.view import View
from pumice.explain.words import amount, counted, names, number, verb
from pumice.model.pod import QUEUE_GATE
from pumice.model.status import TaskStatus


def incomplete(view: View, job: int) -> str:
    """Say that too few pods exist, by number or by role."""
    tables, handle = view.tables, Job(view.tables, job)
    rows, least = tables.jobs.tasks[job], handle.min_available
    leaving = int(np.count_nonzero(tables.tasks.status[rows] == RELEASING))
    valid = handle.valid_count
    if leaving and valid < least <= valid + leaving:
        there = valid + leaving
        return (
            f"{leaving} of its {counted(there, 'pod')} {verb(leaving, 'is', 'are')} being deleted; "
            f"{valid} {verb(valid, 'is', 'are')} left of the {least} of minMember"
        )
    if valid < least:
        return f"{valid} of the {counted(least, 'pod')} of minMember exist"
    live = [row for row in rows.tolist() if VALID[tables.tasks.status[row]]]
    roles = Counter(tables.tasks.pods[row].role for row in live)
    for role, minimum in sorted(handle.group.min_task_member.items()):
        if roles[role] < minimum:
            return f"{roles[role]} of the {counted(minimum, 'pod')} of role {role} exist"
    return ""


def held_back(view: View, job: int) -> str:
    """Scheduling gates hold pods that the gang needs."""
    tables = view.tables
    pods = [tables.tasks.pods[row] for row in view.waiting_rows(job)]
    gated = [pod for pod in pods if pod.gates and pod.gates != (QUEUE_GATE,)]  # that one the scheduler takes away
    if not gated or len(pods) - len(gated) >= view.needed(job):
        return ""
    gates = sorted({gate for pod in gated for gate in pod.gates})
    which = f"{'gate' if len(gates) == 1 else 'gates'} {names(gates)}"
    return f"{len(gated)} of {counted(len(pods), 'pod')} {verb(len(gated), 'is', 'are')} held back by the {which}"


def reserved(view: View, job: int) -> str:
    """Nodes that others are leaving are reserved for its pods."""
    tables, rows = view.tables, view.tables.jobs.tasks[job]
    mine = rows[tables.tasks.status[rows] == TaskStatus.PIPELINED]
    if not len(mine):
        return ""
    nodes = distinct(tables.tasks.node[mine])
    leaving = (tables.tasks.status == TaskStatus.RELEASING) & np.isin(tables.tasks.node, nodes)
    asked = sum((view.request(row) for row in mine.tolist()), start=np.zeros(len(view.axis)))
    dims = [d for d in view.asked_in(asked) if tables.nodes.books[nodes, RELEASED, d].sum() >= EPS]
    where = names([view.facts.names[node] for node in nodes.tolist()], 2)
    pods = [tables.tasks.pods[row] for row in leaving.nonzero()[0].tolist()]
    keys = sorted({pod.group_key or pod.key for pod in pods})
    if not keys or not dims:
        return f"reserved on {where}"
    d, who = dims[0], names(keys, 2)
    name, freed = view.axis.names[d], float(tables.nodes.books[nodes, RELEASED, dims[0]].sum())
    needs = f"the {amount(name, asked[d])} it needs"
    if asked[d] - freed >= EPS:
        needs = f"{amount(name, freed)} of {number(name, asked[d])} that it needs"
    return f"reserved on {where}: starts when {who} {verb(len(keys), 'has', 'have')} freed {needs}"
