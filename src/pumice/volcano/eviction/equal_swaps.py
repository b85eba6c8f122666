"""Equal tasks that take the places of equal victims on one node, several at once.

When one task was promised the first node that was asked about, for one victim, and the node offers, filters and scores
as before, then the next task, which is equal, would find the same node first; and the next victim there, as long as
plugins say of the others what they said. That they do is known where they judge each job by itself (``BY_JOB``), or
equal tasks of a queue one after the other (``COUNTS_DOWN``), and the jobs of victims have nobody else there. So the
next tasks are promised the node together, for a victim each, exactly as they would be one after the other; where any of
this is not so, nothing is done, and they are tried one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pumice.columns.dtypes import I64, Bool
from pumice.columns.nodes import FUTURE, IDLE, USED
from pumice.columns.rows import Candidates
from pumice.columns.views import Task
from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Mark, Statement
from pumice.framework.cycle.trace import Kind
from pumice.framework.plugin.point import Asked
from pumice.placing.choose import placing_of
from pumice.volcano import points
from pumice.volcano.eviction.node_search import Found, Victims
from pumice.volcano.eviction.stable_votes import Ballot
from pumice.volcano.eviction.victim_order import eviction_order
from pumice.volcano.gangs.starving import is_starving


class Before(NamedTuple):
    """How things stood before a task was promised a node, the first one that has victims enough: who was ``found``
    there, in the ``order`` in which they go, what hooks see of the node, the stamps of all nodes, and which were passed
    over because their victims are known not to be enough."""

    mark: Mark
    found: Found
    order: Sequence[int]
    seen: bytes
    stamps: I64
    passed_over: I64


class EqualSwaps:
    """Of one action, which asks for ``votes`` about victims and evicts for ``reason``."""

    def __init__(self, ssn: Session, reason: str, votes: Asked[[Task, Candidates], Bool]) -> None:
        self._ssn, self._tables, self._reason = ssn, ssn.tables, reason
        self._ballot = Ballot(ssn, votes)
        self._usable: bool = (
            placing_of(ssn).feasible.at_once
            and not ssn.has(points.node_reduce)
            and ssn.ledger.devices is None
            and self._ballot.can_tell
            and ssn.order.rests_on_rows()
        )

    @property
    def ballot(self) -> Ballot | None:
        """To ask with about the first node; None where tasks have to be tried one by one."""
        return self._ballot if self._usable else None

    def before(
        self, stmt: Statement, found: Found, order: Sequence[int], victims: Victims, reachable: Bool
    ) -> Before | None:
        """To be asked for before the first eviction for a task that others like it follow; None where they would have
        to be tried one by one."""
        if not self._usable:
            return None
        stamps = self._tables.nodes.stamps
        assert stamps is not None
        return Before(stmt.mark(), found, order, self._seen(found.node), stamps.copy(), victims.passed_over(reachable))

    def _seen(self, node: int) -> bytes:
        """What hooks about classes see of a node, but for what does not change in a session."""
        nodes = self._tables.nodes
        moving = [nodes.books[node, [IDLE, USED, FUTURE]], nodes.view[node]]
        moving += [column.array[node] for column in self._ssn.world.columns_on("node")]
        return b"".join([each.tobytes() for each in moving])

    def follow(
        self,
        stmt: Statement,
        rows: Sequence[int],
        victims: Victims,
        before: Before,
        allowed: Callable[[Sequence[int]], bool] = lambda rows: True,
    ) -> list[int]:
        """After a task was promised a node: for each of the first of ``rows``, which are tasks like it and come next,
        that were promised the same, how many might have left for it. ``allowed``: whether their queue takes on all of
        some tasks once their victims have left."""
        first = self._victim(stmt, before)
        if first < 0 or not rows or not self._is_as_before(before):
            return []
        task = Task(self._tables, rows[0])
        if not placing_of(self._ssn).is_plain(task, placing_of(self._ssn).feasible.all_nodes):
            return []
        leaving, named = self._next(task, victims, before, first, len(rows))
        if not leaving:
            return []
        mark, evicted = stmt.mark(), stmt.operations[-1].evicted
        stmt.evict(leaving, self._reason)
        coming = rows[: len(leaving)]
        if not allowed(coming) or not self._promise(stmt, coming, before.found.node, evicted):
            stmt.rollback(mark, remember=False)
            return []
        return list(range(named, named - len(leaving), -1))

    def _victim(self, stmt: Statement, before: Before) -> int:
        """The one victim of the task that was just promised a node; -1 where there was none, or several."""
        done = stmt.operations[before.mark.operations :]
        if [op.kind for op in done] != [Kind.EVICT, Kind.PIPELINE] or len(done[0].placement.rows) != 1:
            return -1
        return done[0].placement.rows[0]

    def _is_as_before(self, before: Before) -> bool:
        stamps = self._tables.nodes.stamps
        assert stamps is not None
        changed = (stamps != before.stamps).nonzero()[0].tolist()
        node = before.found.node
        return changed == [node] and self._seen(node) == before.seen

    def _next(self, task: Task, victims: Victims, before: Before, like: int, most: int) -> tuple[list[int], int]:
        """Up to so many victims that would go next, one for each task, all of the class of ``like``; and how many are
        named in all."""
        tasks = self._tables.tasks
        there, order = self._left(task, victims, before, like)
        leaving = list[int]()
        for row in order[:most]:
            job = int(tasks.job[row])
            if tasks.cls[row] != tasks.cls[like]:
                break
            if not victims.are_hopeless(before.passed_over, len(leaving), self._ballot):
                break
            leaving.append(row)
            if there[job] > 1 or victims.touch(job, before.passed_over):
                break
        return leaving, len(order)

    def _left(self, task: Task, victims: Victims, before: Before, gone: int) -> tuple[Counter[int], list[int]]:
        """How many candidates of each job there are still on the node, and who of them is named, in the order in which
        they go; nobody where that is not known."""
        jobs, found = self._tables.tasks.job, before.found
        if found.sure is not None:
            there = Counter(found.sure.job.tolist())
            if there[int(jobs[gone])] == 1:
                return there, [row for row in before.order if row != gone] if self._is_one_queue(before.order) else []
        candidates = victims.candidates(np.array([found.node]))
        mask, there = self._ballot.named(task, candidates), Counter(candidates.job.tolist())
        named = [] if mask is None else candidates.rows[mask].tolist()
        return there, self._in_order(task, before.order, named, gone, there) if self._is_one_queue(named) else []

    def _is_one_queue(self, rows: Sequence[int]) -> bool:
        """Whether some tasks are of one queue: whose turn it is among queues depends on what they hold."""
        return len(set(self._tables.jobs.queue[self._tables.tasks.job[rows]].tolist())) < 2

    def _in_order(
        self, task: Task, before: Sequence[int], named: list[int], gone: int, there: Counter[int]
    ) -> list[int]:
        """The order in which those that are named would go: that of before, unless the first of them has left others
        of its job behind."""
        if there[int(self._tables.tasks.job[gone])]:
            return eviction_order(self._ssn, named, task.row)
        still = set(named)
        found = [row for row in before if row in still]
        return found if len(found) == len(named) else eviction_order(self._ssn, named, task.row)

    def _promise(self, stmt: Statement, rows: Sequence[int], node: int, evicted: bool) -> bool:
        """Whether all of the tasks were promised the node, each while its job starved: before the last one it still
        did."""
        job = int(self._tables.tasks.job[rows[0]])
        *most, last = rows
        if most and stmt.pipeline(most, [node] * len(most), evicted=evicted) is not None:
            return False
        return is_starving(self._ssn, job) and stmt.pipeline([last], [node], evicted=evicted) is None
