"""reclaim: jobs that starve take back from other queues what these have beyond their share. Source: Volcano reclaim
(spec 03 §5)."""

from __future__ import annotations

import numpy as np

from pumice.columns.rows import TaskRows
from pumice.columns.views import Queue, Task
from pumice.framework.ordering import Heap
from pumice.framework.session import Session
from pumice.framework.statement import Statement
from pumice.volcano import points
from pumice.volcano.attempts import discarded, promised
from pumice.volcano.candidates import evictable
from pumice.volcano.eviction_failures import alike_failures, note_failure
from pumice.volcano.nominations import never_preempts
from pumice.volcano.readiness import job_pipelined
from pumice.volcano.search import Found, NodeSearch, Victims, waiting_tasks
from pumice.volcano.starving import is_starving, starving_jobs
from pumice.volcano.victims import eviction_order

REASON = "reclaim"


def reclaim(ssn: Session, *, predicateErrorCacheEnable: bool = True) -> None:
    """Best queue first, best starving job first: room is made for its tasks one after the other, all or nothing.

    ``predicateErrorCacheEnable`` changes nothing: every task asks for itself.
    """
    starving = starving_jobs(ssn, with_topology=True)
    if starving:
        _Reclaiming(ssn).run(starving)


class _Reclaiming:
    def __init__(self, ssn: Session) -> None:
        self.ssn, self.search = ssn, NodeSearch(ssn, cached=False, by_score=False)
        self.alike = alike_failures(ssn, REASON, points.reclaimable)

    def run(self, starving: dict[int, list[int]]) -> None:
        ssn = self.ssn
        queues = Heap(ssn.order.queue_keys(), list(starving))
        while queues:
            queue = queues.pop()
            if ssn.ask(points.overused, Queue(ssn.tables, queue)):
                ssn.story.tell(ssn.tables.queues.names[queue], "queue overused")
                continue
            jobs = Heap(ssn.order.job_keys(), starving[queue])
            while jobs:
                if self._for_job(queue, jobs.pop()):
                    self.alike.go_on(jobs)

    def _for_job(self, queue: int, job: int) -> bool:
        """Whether it failed and changed nothing."""
        ssn, failed = self.ssn, False
        if self.alike.fails(job):
            return True
        with ssn.turn(ssn.tables.jobs.uids[job]), ssn.statement() as stmt:
            fresh, tasks = self.alike.is_fresh(job), waiting_tasks(ssn, job)
            while tasks and is_starving(ssn, job):
                self._for_task(stmt, queue, tasks.pop(0))
            if job_pipelined(ssn, job):
                promised(ssn, job, stmt)
            else:
                failed = True
                note_failure(ssn, self.alike, job, discarded(ssn, job, stmt), fresh=fresh)
        return failed

    def _for_task(self, stmt: Statement, queue: int, row: int) -> bool:
        """Make room for one task on the first node where that can be done. Whether it was promised that."""
        ssn, search, task = self.ssn, self.search, Task(self.ssn.tables, row)
        alone = TaskRows(ssn.tables, np.array([row]))
        if never_preempts(task) or not ssn.ask(points.preemptive, Queue(ssn.tables, queue), alone):
            return False
        if ssn.ask(points.task_refused, task) is not None:
            return False
        supply = evictable(ssn).of_other_queues(queue)
        victims = Victims(ssn, task, supply, points.reclaimable_victims, somebody=True)
        nodes = search.in_row_order(search.reachable(task) & victims.nodes())
        return any(self._on_node(stmt, task, each) for each in victims.on(nodes))

    def _on_node(self, stmt: Statement, task: Task, found: Found) -> bool:
        """Evict until there is room for the task, and promise it the node; all of that or nothing."""
        with stmt.trial() as trial:
            evicted = False
            for row in eviction_order(self.ssn, found.victims, task.row):
                if self.search.has_room(task, found.node):
                    break
                stmt.evict([row], REASON)
                evicted = True
            if self.search.has_room(task, found.node):
                if stmt.pipeline([task.row], [found.node], evicted=evicted) is None:
                    trial.keep()
        return trial.kept
