"""Evict one task for one task like the search before did, without a new search.

Suppose that a task took the node of the only task that was evicted for it, and that no node has room for tasks of
either class. The next task of the same class then finds an equal solution, if the first candidate for eviction is
again a whole job with one task of the same class: tasks on other nodes cannot help, the new task fits on the vacated
node only, and the victim fits nowhere. All of this is asked anew for each job, as are the answers of plugins about
shares, order, limits and validity. What is remembered of the last solution only tells when it is worth trying.

If any condition fails, the eviction is rolled back and the job is searched for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from pumice.framework.cycle.session import Session
from pumice.framework.cycle.statement import Statement
from pumice.kai.engine.budget import steps_of
from pumice.kai.engine.counters import SearchResult, Tally, TriedSets, tally
from pumice.kai.engine.job_order import SortedJobs
from pumice.kai.engine.next_queue import Waiting
from pumice.kai.engine.parts import Part, Scenario
from pumice.kai.engine.placement.place_part import placer
from pumice.kai.engine.points import QueueRequest, solution_start
from pumice.kai.engine.solve import NoSolution, Rules, Solution, solve
from pumice.kai.engine.tree_order import best_leaf
from pumice.kai.engine.victims.sets import generators
from pumice.model.status import TaskStatus

_PROMISED = int(TaskStatus.PIPELINED)


class Lead(NamedTuple):
    """A task of class ``cls`` in a job of ``queue`` replaced a task of class ``left``."""

    queue: int
    cls: int
    left: int


class Following:
    """Solve jobs of one action by repeating the previous solution where it applies.

    ``solve`` answers like the function of that name in ``solve.py``, for jobs one after the other, each committed
    before the next.
    """

    def __init__(self, ssn: Session, rules: Rules, waiting: Waiting, sorted_jobs: SortedJobs) -> None:
        self._ssn, self._rules, self._waiting, self._sorted = ssn, rules, waiting, sorted_jobs
        self._placer = placer(ssn)
        self._lead: Lead | None = None
        # Hooks that read single tasks may answer differently for an equal task, and consolidation must place the
        # victim too.
        self._usable = self._placer.is_by_class and not rules.every_victim_placed

    @cached_property
    def _first_generator(self) -> str:
        """The name of the first generator. Asked for a job, so that a plugin that fails there costs that job alone."""
        return generators(self._ssn)[0].name

    def solve(self, stmt: Statement, part: Part) -> Solution | NoSolution:
        """Place a part of a job by evictions, in the statement. Return NoSolution, with nothing changed, if that is
        impossible."""
        if self._is_led(part):
            mark = stmt.mark()
            gone = self._follow(stmt, part)
            if gone >= 0:
                tally(self._ssn, Tally.SIMULATED)
                # KAI has no such short cut: its first generator would find the same set.
                action, taken = self._ssn.trace.action, steps_of(self._ssn).taken
                key = TriedSets(action, self._first_generator, SearchResult.SOLVED, taken)
                self._ssn.trace.counts[key] += 1
                return Solution((gone,))
            # Not remembered: the search that follows decides what is reported as undone.
            stmt.rollback(mark, remember=False)
        found = solve(self._ssn, stmt, part, self._rules, self._waiting, self._sorted)
        if isinstance(found, Solution):
            self._lead = self._lead_of(part, found.evicted) if self._usable else None
        return found

    def _lead_of(self, part: Part, evicted: Sequence[int]) -> Lead | None:
        """Return what the next job may repeat: one task replaced one task on its node, and no node has room for
        another one of either."""
        tables = self._ssn.tables
        tasks = tables.tasks
        if len(part.rows) != 1 or len(evicted) != 1 or tasks.node[part.rows[0]] != tasks.node[evicted[0]]:
            return None
        if tasks.leaving[evicted[0]] >= 0:
            return None
        lead = Lead(int(tables.jobs.queue[part.job]), int(tasks.cls[part.rows[0]]), int(tasks.cls[evicted[0]]))
        # If another node had room, the next task would go there without an eviction, and the repeated solution would be
        # wrong.
        return lead if self._is_full(lead) else None

    def _is_led(self, part: Part) -> bool:
        """Return True if a part equals the one that was placed last."""
        lead, tables = self._lead, self._ssn.tables
        return (
            lead is not None
            and len(part.rows) == 1
            and tables.tasks.cls[part.rows[0]] == lead.cls
            and tables.jobs.queue[part.job] == lead.queue
            # A topology or nested sub-groups limit the nodes, which the last solution did not know.
            and not self._placer.is_grouped(part.job)
        )

    def _follow(self, stmt: Statement, part: Part) -> int:
        """Repeat the solution for a part. Return the row of the evicted task, or -1 if a search is needed."""
        ssn, lead = self._ssn, self._lead
        assert lead is not None
        leaf, gone = self._first_to_leave(part, lead.left)
        # Asked anew, because a commit since the last solution may have made room.
        if gone < 0 or not self._is_full(lead):
            return -1
        ssn.ask(solution_start)
        node = int(ssn.tables.tasks.node[gone])
        stmt.evict([gone], self._rules.reason)
        if not self._goes_first(part, leaf, gone) or not self._placer.place_at(stmt, part, node):
            return -1
        return gone if self._is_full(lead) and ssn.ask(self._rules.valid, Scenario(part, [gone])) else -1

    def _is_full(self, lead: Lead) -> bool:
        """Return True if no node has room for tasks of either class."""
        capacity = self._placer.feasible.capacity
        return not any(capacity(cls).max() > 0 for cls in {lead.cls, lead.left})

    def _first_to_leave(self, part: Part, left: int) -> tuple[int, int]:
        """Return the queue and the row of the task that is evicted first, or -1 if it is not a job of one task of class
        ``left``."""
        ssn, tables, sorted_jobs = self._ssn, self._ssn.tables, self._sorted
        leaves = [
            each for each in sorted_jobs.leaves if self._rules.of_queue(ssn, part.job, each) and sorted_jobs.line(each)
        ]
        # With several queues, their comparison decides who is first, and it changes with every eviction.
        if len(leaves) != 1:
            return -1, -1
        may_leave = self._rules.may_leave(ssn, part.job)
        job = next((job for _, job in reversed(sorted_jobs.line(leaves[0])) if may_leave(job)), -1)
        if job < 0 or tables.jobs.size[job] != 1:
            return -1, -1
        row = int(tables.jobs.tasks[job][0])
        equal = tables.tasks.cls[row] == left and tables.tasks.status[row] != _PROMISED
        equal &= tables.tasks.node[row] >= 0  # a pod may name a node that does not exist
        return leaves[0], row if equal and tables.tasks.leaving[row] < 0 else -1

    def _goes_first(self, part: Part, leaf: int, gone: int) -> bool:
        """Return True if the part is placed before its victim, and no other job takes part in the order."""
        ssn, tables, waiting = self._ssn, self._ssn.tables, self._waiting
        own, job = int(tables.jobs.queue[part.job]), int(tables.tasks.job[gone])
        # In one queue, jobs are compared by their keys alone.
        if leaf == own:
            return (waiting.key_of(part.job), part.job) < (ssn.order.job_keys()([job])[0], job)
        if waiting.line(own)[:1] != [(waiting.key_of(part.job), part.job)]:
            return False
        if any(waiting.line(other) for other in waiting.leaves if other != own):
            return False
        left = Part(job, {int(tables.tasks.sub[gone]): [gone]})
        requests = {leaf: QueueRequest(leaf, left.amount(tables)), own: QueueRequest(own, part.amount(tables))}
        in_order = {each: requests[each] for each in (*waiting.leaves, leaf, own) if each in requests}
        return best_leaf(ssn, in_order) == own
