"""Plugins that several properties are checked under."""

from __future__ import annotations

from pumice.columns.runs import TaskRun
from pumice.columns.views import Queue, Task
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import points
from pumice.framework.plugin.plugin import plugin


@plugin("few-each")
class FewEach:
    """Queue ``b`` takes three tasks in all: a limit that is asked for one task at a time."""

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn
        self.taken = ssn.column("few-each.taken", "queue")

    @points.allocatable
    def allocatable(self, queue: Queue, task: Task) -> bool:
        return queue.name != "b" or bool(self.taken.array[queue.row] < 3)

    @points.on_allocate
    def on_allocate(self, run: TaskRun) -> None:
        self.ssn.journal.add(self.taken, run.queue, len(run))

    @points.on_deallocate
    def on_deallocate(self, run: TaskRun) -> None:
        self.ssn.journal.add(self.taken, run.queue, -len(run))
