"""How right predicted starts were, and intervals that follow from it.

A prediction is a few quantiles of a job's remaining wait. What became of the latest ones corrects the next: each
quantile is moved by so much, on a logarithmic scale, that it would have been right so often. Jobs that still wait
count as censored. Source: Romano, Patterson and Candes, Conformalized Quantile Regression, 2019, with the quantiles of
the errors after Kaplan and Meier.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from pumice.algorithms.intervals import next_quantiles
from pumice.columns.dtypes import F64

#: The quantiles of a prediction: the bounds of 95 and of 80 %, and the middle.
LEVELS = (0.025, 0.1, 0.5, 0.9, 0.975)
#: Predictions that are remembered, and from how many known ones on they correct others.
PREDICTIONS_MAX, _KNOWN_MIN = 2048, 30
#: Errors are relative to the wait plus this, because a minute more or less is no error in either direction.
_BASE_S = 300.0
#: Waits beyond this and below it are corrected apart, as far as there are enough of each.
_BANDS_S = (3_600.0, 12 * 3_600.0, 48 * 3_600.0)
_BAND_MIN = 60


def simulated_quantiles(waits_s: F64) -> F64:
    """Return quantiles of a wait, given that of each simulation, in seconds. Shapes (samples,) -> (LEVELS,)."""
    # Logarithms, because waits are skewed: twice as long is as likely as half as long.
    quantiles = np.exp(next_quantiles(np.log(waits_s + _BASE_S), LEVELS)) - _BASE_S
    # To a thousandth, so that equal waits have that wait as quantiles.
    found: F64 = np.maximum(quantiles, 0.0).round(3)
    return found


class PastPrediction(Struct):
    """One prediction: when, for which job, quantiles of its wait from then on (LEVELS) before and after correction.
    ``waited_s``: from then until it started, None as long as it has not."""

    job: str
    at: float
    raw_s: F64
    quantiles_s: F64
    waited_s: float | None = None


class Record(Struct, frozen=True):
    """How often the start was within the predicted intervals, of so many that are known."""

    known: int
    within_80: int
    within_95: int


#: Logarithms of factors beyond this would be read from no honest record, and overflow.
_MOVE_MAX = 20.0
_NOTES = "starts."


class StartCorrection(Struct, frozen=True):
    """What became of earlier predictions. ``moves``: for waits of each band, by how much each quantile is moved (the
    logarithm of a factor, shape (bands, LEVELS)); () for a band of which too little is known."""

    record: Record
    moves: tuple[tuple[float, ...], ...] = ((),) * (len(_BANDS_S) + 1)

    def corrected(self, raw_s: F64) -> F64:
        """Return quantiles of a wait, ascending. Shape (LEVELS,)."""
        moves = self.moves[_band_of(raw_s)]
        if not moves:
            return raw_s
        found = (raw_s + _BASE_S) * np.exp(moves) - _BASE_S
        # Each is moved by itself, so they may cross where there are few.
        return np.maximum.accumulate(np.maximum(found, 0.0))

    def to_notes(self) -> dict[str, float]:
        """Return it as notes of a snapshot, from which ``correction_in`` reads it."""
        record = self.record
        notes = {"known": record.known, "within_80": record.within_80, "within_95": record.within_95}
        found = {f"{_NOTES}{name}": float(value) for name, value in notes.items()}
        for band, moves in enumerate(self.moves):
            found |= {f"{_NOTES}moved.{band}.{i}": move for i, move in enumerate(moves)}
        return found


def correction_in(notes: Mapping[str, float]) -> StartCorrection | None:
    """Return what ``StartCorrection.to_notes`` wrote, None if nothing usable is there: a file may say anything."""
    counts = [notes.get(f"{_NOTES}{name}", -1.0) for name in ("known", "within_80", "within_95")]
    if not all(0 <= count <= PREDICTIONS_MAX and count == int(count) for count in counts):
        return None
    # A band of which one number is missing or absurd moves nothing, and the others still count.
    moves = []
    for band in range(len(_BANDS_S) + 1):
        found = tuple(notes.get(f"{_NOTES}moved.{band}.{i}", np.nan) for i in range(len(LEVELS)))
        moves.append(found if all(abs(move) <= _MOVE_MAX for move in found) else ())
    return StartCorrection(Record(*map(int, counts)), tuple(moves))


class StartScores:
    """The latest predictions and what became of them, in bounded memory."""

    def __init__(self, most: int = PREDICTIONS_MAX) -> None:
        self._past: deque[PastPrediction] = deque(maxlen=most)
        self._open: dict[str, list[PastPrediction]] = {}

    def add(self, job: str, now: float, raw_s: F64) -> PastPrediction:
        """Return a prediction, corrected by what became of earlier ones, and remember it."""
        one = PastPrediction(job, now, raw_s, self.corrected(raw_s, now))
        # The oldest is about to fall out of memory, and must not be judged later.
        if len(self._past) == self._past.maxlen:
            self._close(self._past[0])
        self._past.append(one)
        self._open.setdefault(job, []).append(one)
        return one

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

    def correction(self, now: float) -> StartCorrection:
        """Return what is known by a moment, for predictions that are made elsewhere."""
        return StartCorrection(self.record(), tuple(self._moves(band, now) for band in range(len(_BANDS_S) + 1)))

    def corrected(self, raw_s: F64, now: float) -> F64:
        """Return quantiles of a wait, ascending. Shape (LEVELS,)."""
        band = _band_of(raw_s)
        # Only its own band: the moves of all are as many times as slow.
        moves = tuple(self._moves(band, now) if each == band else () for each in range(len(_BANDS_S) + 1))
        return StartCorrection(Record(0, 0, 0), moves).corrected(raw_s)

    def _moves(self, band: int, now: float) -> tuple[float, ...]:
        """Return by how much quantiles of such waits are to be moved, () if too little is known."""
        judged = self._comparable(band)
        if sum(one.waited_s is not None for one in judged) < _KNOWN_MIN:
            return ()
        # Jobs that still wait are the long waits: without them every prediction would be moved too early.
        known = np.array([one.waited_s is not None for one in judged])
        waits = np.array([now - one.at if one.waited_s is None else one.waited_s for one in judged])
        raws = np.array([one.raw_s for one in judged])
        # By factors: an hour is much for a wait of minutes, and nothing for one of days.
        errors = np.log(waits[:, None] + _BASE_S) - np.log(raws + _BASE_S)
        moved = (_quantile(errors[:, i], known, level) for i, level in enumerate(LEVELS))
        return tuple(min(max(move, -_MOVE_MAX), _MOVE_MAX) for move in moved)

    def _comparable(self, band: int) -> Sequence[PastPrediction]:
        """Return predictions of similar waits, or all of them if there are few."""
        same = [one for one in self._past if _band_of(one.raw_s) == band]
        return same if sum(one.waited_s is not None for one in same) >= _BAND_MIN else list(self._past)

    def _close(self, one: PastPrediction) -> None:
        still = [each for each in self._open.get(one.job, ()) if each is not one]
        if still:
            self._open[one.job] = still
        else:
            self._open.pop(one.job, None)


def _band_of(raw_s: F64) -> int:
    return int(np.searchsorted(_BANDS_S, float(raw_s[2])))


def _within(quantiles_s: F64, waited_s: float) -> tuple[bool, bool]:
    low95, low80, _, high80, high95 = quantiles_s.tolist()
    return low80 <= waited_s <= high80, low95 <= waited_s <= high95


def _quantile(errors: F64, known: np.ndarray, level: float) -> float:
    """Return the quantile of errors of which some are known to be at least so large only (Kaplan and Meier)."""
    count = len(errors)
    order = np.lexsort((~known, errors))
    survival = np.cumprod(np.where(known[order], 1 - 1 / np.arange(count, 0, -1), 1.0))
    # The next error is one of count + 1, so bounds are a little further out than those of the past.
    least = (level * (count + 1) - (level < 0.5)) / count
    reached = np.flatnonzero((1 - survival >= least - 1e-12) & known[order])
    # The largest known error, if so many still wait that the level is beyond it.
    at = reached[0] if len(reached) else np.flatnonzero(known[order])[-1]
    return float(errors[order][at])
