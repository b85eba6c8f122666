"""Values over time in bounded memory: step functions and a heat map. Both keep their means when they become coarser."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np

from pumice.columns.dtypes import F64

POINTS_MAX = 4096
BUCKETS = 512
ROWS_MAX = 256


class StepSeries:
    """A value that changes at moments and holds in between.

    Above ``points_max`` points, neighbours are merged into their mean over time: the integral stays exact, the shape
    becomes coarser. ``peak``: the largest value that was set.
    """

    def __init__(self, start: float, value: float = 0.0, points_max: int = POINTS_MAX) -> None:
        self._times = array("d", (start,))
        self._values = array("d", (value,))
        self._points_max = points_max
        self.start = start
        self.value = value
        self.peak = value
        self._area = 0.0
        self._since = start

    def __len__(self) -> int:
        return len(self._times)

    def set(self, time: float, value: float) -> None:
        """Set the value from ``time`` on. Times must not decrease."""
        if value == self.value:
            return
        self._area += self.value * (time - self._since)
        self._since, self.value = time, value
        self.peak = max(self.peak, value)
        if time == self._times[-1]:
            self._values[-1] = value
            return
        self._times.append(time)
        self._values.append(value)
        if len(self._times) > self._points_max:
            self._thin()

    def area(self, until: float) -> float:
        """Return the exact integral from the start."""
        return self._area + self.value * max(until - self._since, 0.0)

    def mean(self, until: float) -> float:
        """Return the mean over time from the start."""
        span = until - self.start
        return self.area(until) / span if span > 0 else self.value

    def arrays(self) -> tuple[F64, F64]:
        """Return (times, values): ``values[i]`` holds from ``times[i]`` on. Shapes (points,)."""
        return np.array(self._times, dtype=np.float64), np.array(self._values, dtype=np.float64)

    def _thin(self) -> None:
        """Merge points 0 and 1, 2 and 3, and so on. The last one stays, because its end is not known."""
        times, values = self.arrays()
        pairs = (len(times) - 1) // 2
        spans = np.diff(times)[: 2 * pairs].reshape(pairs, 2)
        means = (values[: 2 * pairs].reshape(pairs, 2) * spans).sum(axis=1) / spans.sum(axis=1)
        self._times = array("d", [*times[0 : 2 * pairs : 2].tolist(), *times[2 * pairs :].tolist()])
        self._values = array("d", [*means.tolist(), *values[2 * pairs :].tolist()])


class HeatMap:
    """Mean values of rows over time in at most ``buckets`` columns. When these are used up, their width doubles.

    A change costs the same however long the value held: it is recorded as a step, and steps are summed up at the end.
    """

    def __init__(self, rows: int, start: float, *, width_s: float = 60.0, buckets: int = BUCKETS) -> None:
        self.start, self.width_s = start, width_s
        self._buckets = buckets
        rows = max(rows, 1)
        self._part: F64 = np.zeros((buckets, rows))  # what each bucket has beyond the steps before it
        self._step: F64 = np.zeros((buckets + 1, rows))
        self._now = [0.0] * rows  # the value of each row at the moment
        self._open(0)

    def add(self, time: float, deltas: Iterable[tuple[int, float]]) -> None:
        """Change the values of rows from ``time`` on. A row may appear several times. Times must not decrease."""
        place = (time - self.start) / self.width_s
        while place >= self._buckets:
            self._widen()
            place = (time - self.start) / self.width_s
        bucket = int(place)
        if bucket != self._bucket:
            self._close()
            self._open(bucket)
        rest, here, beyond, now = bucket + 1 - place, self._here, self._beyond, self._now
        for row, delta in deltas:
            here[row] += delta * rest
            beyond[row] += delta
            now[row] += delta

    def grid(self, until: float) -> F64:
        """Return means by row and bucket up to ``until``. The last bucket's mean is over its past part.

        Shape (rows, buckets that have begun).
        """
        while until - self.start > self.width_s * self._buckets:
            self._widen()
        place = (until - self.start) / self.width_s
        begun = min(int(np.ceil(place)), self._buckets)
        means = self._means()[:begun]
        if begun and place < begun:
            rest = begun - place
            means[-1] = (means[-1] - np.array(self._now) * rest) / (1 - rest)
        return means.T

    def _open(self, bucket: int) -> None:
        """Open a bucket for changes. Its numbers are lists, because they are added to one by one."""
        self._bucket = bucket
        self._here: list[float] = self._part[bucket].tolist()
        self._beyond: list[float] = self._step[bucket + 1].tolist()

    def _close(self) -> None:
        """Store the changes of the open bucket."""
        self._part[self._bucket], self._step[self._bucket + 1] = self._here, self._beyond

    def _means(self) -> F64:
        self._close()
        means: F64 = self._part + np.cumsum(self._step[:-1], axis=0)
        return means

    def _widen(self) -> None:
        """Double the width of every bucket. The past is kept as means, and steps begin again from the present value."""
        means, half = self._means(), self._buckets // 2
        self._part, self._step = np.zeros_like(self._part), np.zeros_like(self._step)
        self._part[:half] = (means[0::2] + means[1::2]) / 2
        self._step[half] = self._now
        self.width_s *= 2
        self._open(half)
