"""Which nodes are left to choose from: for equal tasks of which filters look at each, and for a share of a GPU under
a quota."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.dtypes import F64, Bool
from pumice.columns.gpus.devices import DeviceLedger, charge_of_memory
from pumice.columns.rows import NodeRows, TaskRows
from pumice.columns.views import Queue
from pumice.framework.cycle.session import Session
from pumice.kai.engine.points import may_take
from pumice.model.devices.gpu import GPU_RESOURCE, GpuShare
from pumice.placing.feasibility import Feasibility
from pumice.placing.fill_state import said_of


def nodes_in_turn(
    ssn: Session,
    feasible: Feasibility,
    rows: Sequence[int],
    cls: int,
    key: F64,
    on_top: F64 | None,
    best: Callable[[F64], int],
) -> list[int]:
    """Return nodes for the first of equal tasks, as if each were placed before the next, or [] if a hook must be asked
    about each of them.

    ``key`` (N,): the score of each node for the class, -inf where it does not fit; it is changed. ``on_top`` (N,): what
    is added to scores. ``best``: returns the node with the highest score.
    """
    tables = ssn.tables
    said = said_of(ssn.hooks, TaskRows(tables, np.array(rows)), feasible.all_nodes)
    # Scores of single tasks would have to be added in the order of their hooks; none of KAI's plugins has one that
    # follows placements.
    if said is None or said.scores:
        return []
    filters = [each for _, each in said.filters]
    picked: list[int] = []
    count = said.count(len(rows))
    #: By node that was picked: its score with one more task on it, and one more, and so on.
    scores: dict[int, list[float]] = {}
    current, differs = key, True
    for step in range(count):
        # Most placements change nothing but the node itself.
        if differs:
            current = key
            for each in filters:
                current = np.where(each.open_to(step), current, -np.inf)
        node = best(current)
        if not isfinite(current[node]):
            break
        picked.append(node)
        # All of them before any, which would stop at the first, and the others would miss the placement.
        changes = [each.placed(step, node) for each in filters]
        differs = any(changes)
        # Only this node is another one for the class than before.
        if node not in scores:
            # For all that may follow at once, because a hook costs about the same for several rows.
            after = np.arange(1.0, count - step + 1)
            look = feasible.look(cls, NodeRows(tables, np.full(len(after), node), after=after, cls=cls))
            score = look.score if on_top is None else look.score + on_top[node]
            scores[node] = np.where(look.allowed & look.future_fits, score, -np.inf).tolist()
        key[node] = current[node] = scores[node].pop(0)
    return picked


def within_quota(ssn: Session, row: int, share: GpuShare, devices: DeviceLedger) -> Bool:
    """Return the nodes on which the queue of a task may take the part of a GPU that its memory request amounts to.
    Shape (N,).

    Source: KAI, which asks again for every node.
    """
    tables = ssn.tables
    found = np.ones(len(devices.mib), dtype=bool)
    if share.memory_mib:
        job = int(tables.tasks.job[row])
        queue, preemptible = Queue(tables, int(tables.jobs.queue[job])), bool(tables.jobs.preemptible[job])
        # The charge depends on the GPU memory of the node only, so plugins are asked once per size.
        for mib in distinct(devices.mib).tolist():
            amount = tables.classes.charge[tables.tasks.cls[row]].copy()
            amount[tables.axis.column[GPU_RESOURCE]] += share.devices * charge_of_memory(share.memory_mib, mib)
            found[devices.mib == mib] = not ssn.ask(may_take, queue, amount, preemptible)
    return found
