"""Metrics of what jobs wait for, by the codes of reasons, which are few and do not change."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pumice.answers.requests import waiting_amounts
from pumice.answers.waiting_codes import waiting_codes
from pumice.columns.counting import PENDING
from pumice.framework.cycle.outcome import Outcome
from pumice.model.devices.gpu import is_gpu
from pumice.runtime.cycle_end import state_of
from pumice.runtime.job_states import CODES, NUMBER_OF
from pumice.runtime.serving.time_share import TimeShare
from pumice.runtime.telemetry.metrics import Labels, Metrics

#: Reading the reasons of thousands of jobs takes longer than a cycle that changes little: at most 1/100 of the time.
_SHARE = 100.0
#: Jobs that wait, their pods that wait, and the GPUs that these ask for.
_NAMES = ("waiting_jobs", "waiting_pods", "waiting_gpus")


class WaitingMetrics:
    """Counts what waits by code after cycles. ``clock``: seconds that never go back."""

    def __init__(self, metrics: Metrics, clock: Callable[[], float]) -> None:
        self._metrics, self._clock = metrics, clock
        self._share = TimeShare(clock, _SHARE)
        self._reported: object = None

    def take(self, outcome: Outcome) -> None:
        """Take a cycle that ended. What it changed may be reported with a later one."""
        state = state_of(outcome)
        if state == self._reported or not self._share.is_due:
            return
        began = self._clock()
        self._report(outcome)
        self._reported = state
        self._share.took(began)

    def forget(self) -> None:
        """Remove all series: a process that decides no longer does not know what waits."""
        self._reported = None
        for name in _NAMES:
            self._metrics.replace(name, {})

    def _report(self, outcome: Outcome) -> None:
        found = [(row, NUMBER_OF[code]) for row, code in waiting_codes(outcome)]
        rows, numbers = np.array(found, dtype=np.int64).reshape(-1, 2).T
        tables = outcome.tables
        gpus = [column for column, name in enumerate(tables.axis.names) if is_gpu(name)]
        pods = tables.jobs.counts[rows, PENDING]
        asked = waiting_amounts(tables)[rows][:, gpus].sum(axis=1) / 1000.0
        for name, amounts in zip(_NAMES, (np.ones(len(rows)), pods, asked), strict=True):
            sums = np.bincount(numbers, weights=amounts, minlength=len(CODES)).tolist()
            series: dict[Labels, float] = {(code.value,): sums[number] for number, code in enumerate(CODES)}
            self._metrics.replace(name, series)
