"""A job that makes room for its only task as the one before it did, without a search.

After a task took the node of the one task that left for it, and where no node has room for either kind of task, the
next task of its class finds what that one found: the first who would leave is all of its job, like the one that left;
nobody is on another node that could be of use; the task fits where that one was, and nowhere else; and who left fits
nowhere. What the search proved of all nodes is carried on by looking again at the one node that changed. What plugins
say of shares, turns, limits and whether it is right changes with each job, and is asked for each.

Where any of this is not so, what was done is taken back and the job is searched for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.framework.memo import Ground
from pumice.kai.engine.counters import Tally, tally
from pumice.kai.engine.job_order import Standing
from pumice.kai.engine.parts import Part, Scenario
from pumice.kai.engine.place_part import placer
from pumice.kai.engine.points import Turn, solution_start
from pumice.kai.engine.replacement import Waiting
from pumice.kai.engine.solve import Refuted, Rules, Solution, solve
from pumice.kai.engine.tree_order import best_leaf
from pumice.model.status import TaskStatus

_PROMISED = int(TaskStatus.PIPELINED)


class Lead(NamedTuple):
    """A task of class ``cls`` of a job of ``queue`` took the place of one of class ``left``. ``rests_on``: what filters
    said of both then, beside the rows of nodes."""

    queue: int
    cls: int
    left: int
    rests_on: Ground


class Following:
    """Of one action. ``solve`` answers as ``scenario.solve`` does, for jobs that come one after the other: what it
    found for one is committed before the next. An eviction that is refused then leaves no room either."""

    def __init__(self, ssn: Session, rules: Rules, waiting: Waiting, standing: Standing) -> None:
        self._ssn, self._rules, self._waiting, self._standing = ssn, rules, waiting, standing
        self._placer = placer(ssn)
        self._lead: Lead | None = None
        self._usable = self._placer.is_by_class and not rules.every_victim_placed

    def solve(self, stmt: Statement, part: Part) -> Solution | Refuted:
        """Make room for a part of a job, in the statement; Refuted: that cannot be done, and nothing is left of it."""
        if self._is_led(part):
            mark = stmt.mark()
            gone = self._follow(stmt, part)
            if gone >= 0:
                tally(self._ssn, Tally.SIMULATED)
                return Solution((gone,))
            stmt.rollback(mark, remember=False)
        found = solve(self._ssn, stmt, part, self._rules, self._waiting, self._standing)
        if isinstance(found, Solution):
            self._lead = self._lead_of(part, found.evicted) if self._usable else None
        return found

    def _lead_of(self, part: Part, evicted: Sequence[int]) -> Lead | None:
        """What the next job may follow in: one task left for one, on its node, and no node has room for more."""
        tables = self._ssn.tables
        tasks = tables.tasks
        if len(part.rows) != 1 or len(evicted) != 1 or tasks.node[part.rows[0]] != tasks.node[evicted[0]]:
            return None
        feasible, cls = self._placer.feasible, (int(tasks.cls[part.rows[0]]), int(tasks.cls[evicted[0]]))
        if tasks.leaving[evicted[0]] >= 0 or any(feasible.capacity(each).max() > 0 for each in set(cls)):
            return None
        return Lead(int(tables.jobs.queue[part.job]), *cls, feasible.beside_rows())

    def _is_led(self, part: Part) -> bool:
        """Whether a part is like the one that was placed last."""
        lead, tables = self._lead, self._ssn.tables
        return (
            lead is not None
            and len(part.rows) == 1
            and tables.tasks.cls[part.rows[0]] == lead.cls
            and tables.jobs.queue[part.job] == lead.queue
            and not self._placer.is_grouped(part.job)
        )

    def _follow(self, stmt: Statement, part: Part) -> int:
        """The row of the one task that left for the part; -1: it has to be searched for."""
        ssn = self._ssn
        leaf, gone = self._first_to_leave(part)
        if gone < 0:
            return -1
        ssn.ask(solution_start)
        part, node = Part(part.job, part.tasks, alone=True), int(ssn.tables.tasks.node[gone])
        stmt.evict([gone], self._rules.reason)
        if not self._goes_first(part, leaf, gone) or not self._placer.place_at(stmt, part, node):
            return -1
        return gone if self._is_full(node) and ssn.ask(self._rules.valid, Scenario(part, [gone])) else -1

    def _is_full(self, node: int) -> bool:
        """Whether no node has room for either kind of task, as before only this one changed."""
        lead, feasible = self._lead, self._placer.feasible
        assert lead is not None
        if feasible.beside_rows() != lead.rests_on:
            return False
        return not any(feasible.has_room(cls, node) for cls in {lead.cls, lead.left})

    def _first_to_leave(self, part: Part) -> tuple[int, int]:
        """Who would leave first, if all is as it was for the one before: its queue, the only one with any who might,
        and its row. -1: it is not."""
        ssn, tables, standing = self._ssn, self._ssn.tables, self._standing
        leaves = [each for each in standing.leaves if self._rules.of_queue(ssn, part.job, each) and standing.line(each)]
        if len(leaves) != 1:
            return -1, -1
        may_leave = self._rules.may_leave(ssn, part.job)
        job = next((job for _, job in reversed(standing.line(leaves[0])) if may_leave(job)), -1)
        if job < 0 or tables.jobs.size[job] != 1:
            return -1, -1
        row = int(tables.jobs.tasks[job][0])
        assert self._lead is not None
        alike = tables.tasks.cls[row] == self._lead.left and tables.tasks.status[row] != _PROMISED
        return leaves[0], row if alike and tables.tasks.leaving[row] < 0 else -1

    def _goes_first(self, part: Part, leaf: int, gone: int) -> bool:
        """Whether the part would be placed before who left for it, and nobody else takes part in turns."""
        ssn, tables, waiting = self._ssn, self._ssn.tables, self._waiting
        own, job = int(tables.jobs.queue[part.job]), int(tables.tasks.job[gone])
        if leaf == own:
            return (waiting.key_of(part.job), part.job) < (ssn.order.job_keys()([job])[0], job)
        if waiting.line(own)[:1] != [(waiting.key_of(part.job), part.job)]:
            return False
        if any(waiting.line(other) for other in waiting.leaves if other != own):
            return False
        left = Part(job, {int(tables.tasks.sub[gone]): [gone]})
        turns = {leaf: Turn(leaf, left.amount(tables)), own: Turn(own, part.amount(tables))}
        in_order = {each: turns[each] for each in (*waiting.leaves, leaf, own) if each in turns}
        return best_leaf(ssn, in_order) == own
