"""Place tasks of which some were evicted for the same job: these stay where they are, or are moved. Source: KAI
statement (Pipeline of a task that is on the node).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from pumice.columns.counting import RELEASING
from pumice.columns.views import Node, Task
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.kai.engine.points import keeps_placement


def place_again(ssn: Session, stmt: Statement, rows: Sequence[int], nodes: Sequence[int]) -> None:
    """Place tasks of one pod set. Evicted tasks keep their place or are moved; the others wait for theirs."""
    if len(rows) > 1 and ssn.has(keeps_placement):
        # What one task takes decides what the next one would hold.
        for row, node in zip(rows, nodes, strict=True):
            place_again(ssn, stmt, (row,), (node,))
        return
    tasks = ssn.tables.tasks
    evicted = (tasks.status[list(rows)] == RELEASING).tolist()
    new, moved, stays = [], [], []
    for row, node, was_evicted in zip(rows, nodes, evicted, strict=True):
        if not was_evicted:
            new.append((row, node))
        elif tasks.node[row] == node and ssn.ask(keeps_placement, Task(ssn.tables, row), Node(ssn.tables, node)):
            stays.append((int(tasks.was[row]), row))
        else:
            moved.append((row, node))
    if new:
        stmt.pipeline([row for row, _ in new], [node for _, node in new])
    if moved:
        stmt.promise_another([row for row, _ in moved], [node for _, node in moved])
    # Tasks return to the status they had before the eviction, so one operation takes tasks of one former status.
    for _, group in groupby(sorted(stays), key=itemgetter(0)):
        stmt.stay([row for _, row in group])
