"""predictor: how long a job will run, from jobs of the same user, name and shape that have ended.

Of jobs with an estimate the ratio of run time to estimate is learnt, of the others the run time itself. Jobs that
still run count as censored observations: they will end later than now. Source: Kaplan and Meier, Nonparametric
Estimation from Incomplete Observations, 1958; groups of similar jobs after Smith, Foster and Taylor, Predicting
Application Run Times Using Historical Information, 1998.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from math import sqrt
from statistics import NormalDist

import numpy as np

from pumice.columns.dtypes import F64
from pumice.model.workloads.estimate import ESTIMATE_MAX_S, ESTIMATE_MIN_S
from pumice.model.workloads.past_job import PastJob

#: Ended jobs that are remembered. Each is in one list for each kind of similarity, so this bounds the memory.
JOBS_MAX = 4096
#: A group of similar jobs says something from so many ended ones on.
_GROUP_MIN = 8
#: The latest of a group that count: habits change. Long run times are rare, and need many.
_GROUP_MAX = 1024
#: Factors of the age of a job that has outlived all ended ones, which give equally likely run times: 1 / (1 - u) for u
#: evenly from 0 to 1, as drawn_by_age draws it.
_TAIL = 1.0 / (1.0 - (np.arange(16) + 0.5) / 16)

#: Correlation of the run times of similar jobs that come within 12 hours, each by its level in what was predicted: 0.49
#: for jobs that follow each other, 0.42 and 0.31 for the second and the fifth after one, on Theta's trace of 2022.
_CORRELATION = 0.4

_Group = tuple[object, ...]


class Predictor:
    """Learns from ended jobs, in bounded memory. The same jobs in the same order give the same answers."""

    def __init__(self, most: int = JOBS_MAX) -> None:
        self._most = most
        self._jobs: deque[PastJob] = deque()
        self._values: dict[_Group, deque[float]] = {}
        self._running: dict[_Group, list[float]] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def learn(self, job: PastJob) -> None:
        """Take in a job that has ended."""
        if job.ran_s is None:
            return
        # A user who submits very many jobs pushes out old ones, and costs no memory.
        if len(self._jobs) >= self._most:
            self._forget(self._jobs.popleft())
        self._jobs.append(job)
        for group in _groups(job):
            self._values.setdefault(group, deque()).append(_value(job, job.ran_s))

    def watch(self, running: Iterable[tuple[PastJob, float]]) -> None:
        """Take in how long jobs have been running by now, in place of what was said before."""
        self._running = {}
        for job, age_s in running:
            for group in _groups(job):
                self._running.setdefault(group, []).append(_value(job, age_s))

    def knows(self, job: PastJob) -> bool:
        """Return True if enough similar jobs have ended."""
        return any(len(self._values.get(group, ())) >= _GROUP_MIN for group in _groups(job))

    def quantiles(self, job: PastJob, levels: Sequence[float], age_s: float = 0.0) -> F64:
        """Return run times in seconds, from start to end, below which a job ends with these probabilities.

        ``age_s``: for how long it has been running. Shape (levels,), NaN if nothing similar has ended.
        """
        values, weights = self._distribution(job, age_s)
        if not len(values):
            return np.full(len(levels), np.nan)
        total = np.cumsum(weights)
        at = np.searchsorted(total, np.asarray(levels) * total[-1] - 1e-12)
        found: F64 = values[np.minimum(at, len(values) - 1)] * (job.estimate_s or 1.0)
        return np.maximum(found, age_s)

    def draw(self, job: PastJob, levels: Levels, age_s: float = 0.0) -> float | None:
        """Return a run time in seconds, from start to end, drawn at random; None if nothing similar has ended."""
        found = float(self.quantiles(job, [levels.of(job)], age_s)[0])
        return None if np.isnan(found) else found

    def _distribution(self, job: PastJob, age_s: float) -> tuple[F64, F64]:
        """Return the values of similar jobs that go beyond an age, ascending, and weights; none if too few do."""
        for group in _groups(job):
            seen = self._values.get(group, ())
            if len(seen) < _GROUP_MIN:
                continue
            # Sorted, so that the draw of a number gives the same run time whatever the order in which jobs ended.
            ended = np.sort(np.array(list(seen)[-_GROUP_MAX:]))
            values, weights = _survival(ended, np.sort(np.array(self._running.get(group, ()))))
            if age_s <= 0:
                return values, weights
            least = _value(job, age_s)
            # A few that ran for a little longer would let a job that has outlived most of its group end at once. Wider
            # groups are no help: they hold more short ones.
            if np.count_nonzero(ended > least) < _GROUP_MIN:
                break
            return values[values > least], weights[values > least]
        return np.empty(0), np.empty(0)

    def _forget(self, job: PastJob) -> None:
        for group in _groups(job):
            values = self._values[group]
            values.popleft()  # jobs leave in the order in which they came
            if not values:
                del self._values[group]


class Levels:
    """Random levels from 0 to 1 at which run times of jobs are drawn. Each level is as likely as any other, and those
    of similar jobs are correlated: jobs of one batch run the same program on similar input, and mostly all end early
    or all run long. With independent levels the end of a batch would be said with too much certainty.

    Source: a Gaussian copula with one factor (Li, On Default Correlation, 2000).
    """

    def __init__(self, dice: np.random.Generator) -> None:
        self._dice = dice
        self._common: dict[_Group, float] = {}

    def of(self, job: PastJob) -> float:
        """Return a level for a job."""
        kind = next(_groups(job))
        if kind not in self._common:
            self._common[kind] = float(self._dice.standard_normal())
        own = float(self._dice.standard_normal())
        return NormalDist().cdf(sqrt(_CORRELATION) * self._common[kind] + sqrt(1.0 - _CORRELATION) * own)


def drawn_by_age(age_s: float, dice: np.random.Generator) -> float:
    """Return a run time in seconds, from start to end, of a job of which only its age is known.

    With a probability of one half it is twice its age, or more. Source: Harchol-Balter and Downey, Exploiting Process
    Lifetime Distributions for Dynamic Load Balancing, 1997: of processes of age a the part a / t reaches the age t.
    """
    # 1 - u is never 0. What is left is bounded as an estimate is, also of a job that is older than that bound.
    return age_s + min(age_s / (1.0 - float(dice.random())) - age_s, ESTIMATE_MAX_S)


def _value(job: PastJob, seconds: float) -> float:
    return seconds / job.estimate_s if job.estimate_s else seconds


def _groups(job: PastJob) -> Iterator[_Group]:
    """Yield the groups that a job belongs to, the most similar jobs first."""
    # Ratios and run times are different things, and are never in one group.
    about = ("of", job.estimate_s > 0)
    if job.user or job.name:
        yield (*about, job.user, job.name, job.pods, job.estimate_s)
        yield (*about, job.user, job.name)
    if job.user:
        yield (*about, job.user, job.pods)
        yield (*about, job.user)
    # Traces often name no user: equal sizes with equal limits are then mostly runs of the same programs.
    yield (*about, "shape", job.pods, round(job.estimate_s))
    yield (*about, "estimate", int(np.log2(max(job.estimate_s, ESTIMATE_MIN_S)) * 2))
    yield about


def _survival(ended: F64, running: F64) -> tuple[F64, F64]:
    """Return values, ascending, and their weights, from those that have ended and those that still run, both ascending.

    By the product limit. The weight that remains belongs to running jobs that have outlived all ended ones, and is
    spread over _TAIL: without it the longest jobs, which are the last to end, would be missing.
    """
    # A job that runs is at risk at each value that it has reached, also at its own age.
    at_risk = np.arange(len(ended), 0, -1) + len(running) - np.searchsorted(running, ended)
    survive = np.cumprod(1.0 - 1.0 / at_risk)
    weights = np.concatenate(([1.0], survive[:-1])) / at_risk
    longest = running[np.searchsorted(running, ended[-1]) :]
    if not len(longest):
        return ended, weights
    tail = np.sort(np.outer(longest, _TAIL).ravel())
    return np.concatenate((ended, tail)), np.concatenate((weights, np.full(len(tail), survive[-1] / len(tail))))
