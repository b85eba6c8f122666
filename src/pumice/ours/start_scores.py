"""How right predicted starts were: a record that is printed beside each prediction.

The record corrects nothing. Predictions of one moment are right or wrong together, so even a thousand of them are few
observations: moved by the errors of earlier ones, intervals of 80 % held 65 % of the starts on Philly, 81 % unmoved.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from pumice.algorithms.intervals import next_quantiles
from pumice.columns.dtypes import F64

#: The quantiles of a prediction: the bounds of 95 and of 80 %, and the middle.
LEVELS = (0.025, 0.1, 0.5, 0.9, 0.975)
#: Predictions that are remembered.
PREDICTIONS_MAX = 2048
#: Added to waits before logarithms are taken, because a minute more or less is no difference.
_BASE_S = 300.0


def simulated_quantiles(waits_s: F64) -> F64:
    """Return quantiles of a wait, given that of each simulation, in seconds. Shapes (samples,) -> (LEVELS,)."""
    # Logarithms, because waits are skewed: twice as long is as likely as half as long.
    quantiles = np.exp(next_quantiles(np.log(waits_s + _BASE_S), LEVELS)) - _BASE_S
    # To a thousandth, so that equal waits have that wait as quantiles.
    found: F64 = np.maximum(quantiles, 0.0).round(3)
    return found


class PastPrediction(Struct):
    """One prediction: when, for which job, quantiles of its wait from then on (LEVELS). ``waited_s``: from then until
    it started, None as long as it has not."""

    job: str
    at: float
    quantiles_s: F64
    waited_s: float | None = None


_NOTES = "starts."


class Record(Struct, frozen=True):
    """How often the start was within the predicted intervals, of so many that are known."""

    known: int
    within_80: int
    within_95: int

    def to_notes(self) -> dict[str, float]:
        """Return it as notes of a snapshot, from which ``record_in`` reads it."""
        notes = {"known": self.known, "within_80": self.within_80, "within_95": self.within_95}
        return {f"{_NOTES}{name}": float(count) for name, count in notes.items()}


def record_in(notes: Mapping[str, float]) -> Record | None:
    """Return what ``Record.to_notes`` wrote, None if nothing usable is there: a file may say anything."""
    # A count that is no whole number, or beyond all that are known, is a mistake in the file.
    known, within_80, within_95 = (notes.get(f"{_NOTES}{name}", -1.0) for name in ("known", "within_80", "within_95"))
    if not (all(count == count // 1 for count in (known, within_80, within_95)) and known < np.inf):
        return None
    if not (0 <= within_80 <= known and 0 <= within_95 <= known):
        return None
    return Record(int(known), int(within_80), int(within_95))


class StartScores:
    """The latest predictions and what became of them, in bounded memory."""

    def __init__(self, most: int = PREDICTIONS_MAX) -> None:
        self._past: deque[PastPrediction] = deque(maxlen=most)
        self._open: dict[str, list[PastPrediction]] = {}

    def add(self, job: str, now: float, quantiles_s: F64) -> None:
        """Remember a prediction: quantiles of the wait from now on. Shape (LEVELS,)."""
        # The oldest is about to fall out of memory, and must not be judged later.
        if len(self._past) == self._past.maxlen:
            self._close(self._past[0])
        one = PastPrediction(job, now, quantiles_s)
        self._past.append(one)
        self._open.setdefault(job, []).append(one)

    def started(self, job: str, when: float) -> None:
        """Take in that a job has started."""
        # Once: a job that is evicted and starts again had started as was asked.
        for one in self._open.pop(job, ()):
            one.waited_s = when - one.at

    def gone(self, job: str) -> None:
        """Take in that a job will never start, because it was deleted: its predictions count for nothing."""
        gone = {id(one) for one in self._open.pop(job, ())}
        self._past = deque((one for one in self._past if id(one) not in gone), maxlen=self._past.maxlen)

    @property
    def waiting(self) -> list[str]:
        """Jobs whose start was predicted and is not known yet."""
        return list(self._open)

    def record(self) -> Record:
        known = [one for one in self._past if one.waited_s is not None]
        inside = [_within(one.quantiles_s, one.waited_s or 0.0) for one in known]
        return Record(len(known), sum(each[0] for each in inside), sum(each[1] for each in inside))

    def _close(self, one: PastPrediction) -> None:
        still = [each for each in self._open.get(one.job, ()) if each is not one]
        if still:
            self._open[one.job] = still
        else:
            self._open.pop(one.job, None)


def _within(quantiles_s: F64, waited_s: float) -> tuple[bool, bool]:
    low95, low80, _, high80, high95 = quantiles_s.tolist()
    return low80 <= waited_s <= high80, low95 <= waited_s <= high95
