"""S15: a job for which room is reserved starts no later than its reservation begins, as long as estimates hold.

Checked against each start that ``ours/reserve`` names. It holds only if each job ends by its estimate, nothing fails,
and no other plugin holds the job back, so a simulation asks for it (``SimSettings.estimates_hold``). The pods of the
gang ask for the same, or the policy packs unlike ones: pod by pod, a gang may find no place although it fits. Source:
EASY backfilling (Lifka, The ANL/IBM SP Scheduling System, 1995), and conservative backfilling (Mu'alem and Feitelson,
2001) where several jobs have reservations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from pumice.framework.cycle.outcome import Outcome
from pumice.sim.controller import Controller, JobRun


class ReservationLaws:
    """``last``: returns the outcome of the last cycle. ``packs_unlike``: the policy packs gangs of unlike pods.
    ``named``: by job, the earliest start that was named."""

    def __init__(self, controller: Controller, last: Callable[[], Outcome | None], *, packs_unlike: bool) -> None:
        self.named: dict[str, float] = {}
        self._last, self._packs_unlike, self._broken = last, packs_unlike, ""
        self._live: Mapping[str, JobRun] = controller.live
        controller.hooks.started.append(self._started)

    def check(self) -> str:
        """Note what the last cycle named. Return what was broken since the last call, "" for nothing."""
        outcome = self._last()
        if outcome is not None:
            self._note(outcome)
            for job, start in self.named.items():
                run = self._live.get(job)
                if start < outcome.now and run is not None and run.started is None:
                    self._late(job, start, f"still waits at {outcome.now:g}")
        broken, self._broken = self._broken, ""
        return broken

    def _note(self, outcome: Outcome) -> None:
        starts, jobs = (outcome.figures.get(f"reserve.{name}", np.empty(0)).tolist() for name in ("start", "job"))
        for start, row in zip(starts, jobs, strict=True):
            if not np.isfinite(start):
                continue
            job = outcome.tables.jobs.uids[row]
            if self._packs_unlike or len(self._live[job].kinds) <= 1:
                self.named[job] = min(start, self.named.get(job, np.inf))

    def _started(self, run: JobRun) -> None:
        start = self.named.get(run.key)
        if start is not None and run.started is not None and run.started > start:
            self._late(run.key, start, f"started at {run.started:g}")

    def _late(self, job: str, start: float, when: str) -> None:
        self._broken = self._broken or f"S15: {job} was to start by {start:g}, by its reservation, and {when}"
