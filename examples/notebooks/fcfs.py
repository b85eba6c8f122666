"""First come, first served, and EASY backfilling: the yardsticks of every study of batch schedulers."""

from __future__ import annotations

import pumice
from pumice.api import Queue, Session


@pumice.plugin("fcfs")
class Fcfs:
    """End the queue's turn at the first job that does not fit, so that no later one overtakes it."""

    def __init__(self, ssn: Session) -> None:
        self.ssn = ssn
        self.waiting = -1

    @pumice.points.overused
    def overused(self, queue: Queue) -> bool:
        # A turn that placed nothing leaves as many waiting jobs as the one before it.
        waiting = int(self.ssn.tables.jobs.waits.sum())
        was_in_vain, self.waiting = waiting == self.waiting, waiting
        return was_in_vain


CONF = 'actions: "enqueue, allocate"\ntiers: [{plugins: [{name: fcfs}, {name: gang}]}]\n'
FCFS: list[str | type] = [CONF, Fcfs]
#: EASY backfilling: the oldest job that does not fit keeps its place, and none that starts before it delays it.
EASY = (
    'actions: "enqueue, allocate"\ntiers: [{plugins: [{name: ours/reserve, arguments: {after: 0s}}, {name: gang}]}]\n'
)
#: Theta's 4,392 nodes of 64 cores as one.
MACHINE = "1:cpu=281088,memory=1024Ti,pods=1000000"
