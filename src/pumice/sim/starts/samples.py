"""Simulate a cluster on from one moment several times, with run times and arrivals drawn at random.

Each sample is a whole simulation under the policy, so the starts are what the scheduler would decide. Jobs that come
later are drawn from those that came: stretches of six hours in a random order, so that busy hours stay together, and
all of one sample out of the same few days, so that busy days do too. Source: Paparoditis and Politis, Local Block
Bootstrap, 2002.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np
from msgspec import Struct

from pumice.columns.dtypes import F64
from pumice.framework.plugin.policy_file import Policy
from pumice.model.events import Object
from pumice.model.pod import PodSpec
from pumice.model.resources import Resource
from pumice.model.workloads.estimate import job_estimate_s
from pumice.model.workloads.past_job import PastJob, stem_of
from pumice.ours.predictor import Levels, Predictor, drawn_by_age
from pumice.runtime.memory import old_objects_left_alone
from pumice.sim.forecast import by_estimate, forecast, gangs_of, started_at
from pumice.sim.settings import Observers
from pumice.sim.workloads.work import USER_LABEL, LooseGang, SimJob, SimTask, Work
from pumice.sim.world import Progress

BLOCK_S = 6 * 3_600.0
#: All blocks of one sample are from within so long. Drawn from two weeks, as if each stretch were busy by itself, the
#: work that came in the next 2 days was within 80 and 95 % of the draws at 69 and 85 of 100 moments of Theta's 2022;
#: with this at 74 and 90. Source: bench.arrivals.
_NEAR_S = 3 * 86_400.0
#: Jobs of one sample that come later, at most.
ARRIVALS_MAX = 2_000


class Horizon(Struct, frozen=True):
    """How far and how often it is simulated: ``until_s`` seconds, ``samples`` times, with a ``seed``.

    ``steps_max``: a bound on the jobs that wait or run, summed over all cycles of all samples, which look only as far
    as that allows. 0: no bound.
    """

    until_s: float = 7 * 86_400.0
    samples: int = 8
    seed: int = 0
    steps_max: int = 0


WEEK = Horizon()


class Starts(Struct, frozen=True):
    """Seconds until jobs start, by ``namespace/name``. Shape (samples,), inf for not within ``until_s``. ``by_age``:
    running jobs without an estimate or similar jobs that have ended. ``samples``: those that ended within the steps of
    the horizon."""

    by_job: dict[str, F64]
    by_age: tuple[str, ...]
    samples: int
    until_s: float


class _StepsSpent(Exception):
    """The steps are spent."""


class _Steps:
    """Counts the jobs of each cycle, which are what its time depends on. ``reached``: the time of the last cycle."""

    def __init__(self, most: float) -> None:
        self.left, self.reached = most, 0.0

    def take(self, progress: Progress) -> None:
        """Take a cycle. Raises: _StepsSpent."""
        self.left -= 1 + progress.waiting + progress.running
        if self.left < 0:
            raise _StepsSpent
        self.reached = progress.now


class _Present(Struct, frozen=True):
    """What all samples begin with. ``ages``: for how many seconds jobs have been running."""

    objects: Sequence[Object]
    policy: Policy
    now: float
    gangs: Sequence[LooseGang]
    about: dict[str, PastJob]
    ages: dict[str, float]
    past: Sequence[PastJob]
    predictor: Predictor

    @property
    def waiting(self) -> frozenset[str]:
        return frozenset(self.about.keys() - self.ages.keys())


def sampled_starts(
    objects: Iterable[Object],
    policy: Policy,
    now: float,
    predictor: Predictor,
    past: Sequence[PastJob] = (),
    horizon: Horizon = WEEK,
) -> Starts:
    """Return when each waiting job starts, in each sample.

    ``past``: jobs that came before, in this order; without them none comes later. The same arguments give the same
    starts.
    """
    found = list(objects)
    gangs = gangs_of(found)
    about = {gang.key: as_past_job(gang) for gang in gangs}
    ages = {gang.key: now - since for gang in gangs if (since := started_at(gang)) is not None}
    present = _Present(found, policy, now, gangs, about, ages, past, predictor)
    if not present.waiting:
        return Starts({}, (), horizon.samples, horizon.until_s)
    predictor.watch((about[key], age_s) for key, age_s in ages.items())
    with old_objects_left_alone():
        until_s, left = _reach(present, horizon)
        starts, by_age = list[dict[str, float]](), frozenset[str]()
        steps = _Steps(left)
        with suppress(_StepsSpent):
            for number in range(horizon.samples):
                sample, by_age = _sample(present, horizon.seed, number, until_s, steps)
                starts.append(sample)
    by_job = {key: np.array([sample[key] for sample in starts]) for key in sorted(present.waiting)}
    return Starts(by_job, tuple(sorted(by_age)), len(starts), until_s)


def _reach(present: _Present, horizon: Horizon) -> tuple[float, float]:
    """Return how far samples can look within the steps, by the first of them, and the steps that are left then."""
    if not horizon.steps_max:
        return horizon.until_s, float("inf")
    # One part more than there are samples: this one is run again.
    part = horizon.steps_max // (horizon.samples + 1)
    steps = _Steps(part)
    try:
        _sample(present, horizon.seed, 0, horizon.until_s, steps)
    except _StepsSpent:
        return max(steps.reached - present.now, 0.0), horizon.steps_max - part
    return horizon.until_s, horizon.steps_max - part + steps.left


def _sample(
    present: _Present, seed: int, number: int, until_s: float, steps: _Steps
) -> tuple[dict[str, float], frozenset[str]]:
    """Return the seconds until each waiting job starts, in one simulation, and the running jobs whose end was drawn by
    their age. Raises: _StepsSpent."""
    now, predictor, drawn, by_age = present.now, present.predictor, dict[str, float | None](), list[str]()
    dice = np.random.Generator(np.random.PCG64([seed, number]))
    levels = Levels(dice)
    # In the order of the objects, so that the same input draws the same numbers.
    for gang in present.gangs:
        age_s = present.ages.get(gang.key, 0.0)
        runs_s = predictor.draw(present.about[gang.key], levels, age_s)
        lasts_s = by_estimate(gang, now) if runs_s is None else max(runs_s - age_s, 1.0)
        if lasts_s is None and age_s > 0:
            by_age.append(gang.key)
            lasts_s = max(drawn_by_age(age_s, dice) - age_s, 1.0)
        drawn[gang.key] = lasts_s
    ahead = forecast(
        present.objects,
        present.policy,
        now,
        until_s,
        lasts=lambda gang: drawn[gang.key],
        arriving=later_jobs(present.past, now, until_s, predictor, dice),
        awaited=present.waiting,
        observers=Observers(progress=steps.take),
    )
    found = {key: ahead.jobs[key].starts_s if key in ahead.jobs else None for key in present.waiting}
    starts = {key: float("inf") if start is None else start for key, start in found.items()}
    return starts, frozenset(by_age)


def as_past_job(gang: LooseGang) -> PastJob:
    """Return what is remembered of a job."""
    group, first = gang.group, gang.pods[0]
    user = group.labels.get(USER_LABEL, "") or first.labels.get(USER_LABEL, "")
    estimate_s = job_estimate_s(group, gang.pods)
    count, request = len(gang.pods), first.spec.request
    return PastJob(gang.key, group.queue, user, stem_of(group.name), count, request, estimate_s, group.creation)


def later_jobs(
    past: Sequence[PastJob], now: float, until_s: float, predictor: Predictor, dice: np.random.Generator
) -> list[Work]:
    """Return jobs that come later, as they came before."""
    if not past:
        return []
    began = past[0].arrived
    if now - began < BLOCK_S:
        return []
    near_s = min(_NEAR_S, now - began)
    # Around any moment, as far as the past goes: so its ends, of which one is now, count as much as the rest.
    first = min(max(began + (now - began) * float(dice.random()) - near_s / 2, began), now - near_s)
    times = np.array([job.arrived for job in past])
    specs: dict[Resource, PodSpec] = {}
    found: list[Work] = []
    for i in range(int(np.ceil(until_s / BLOCK_S))):
        at = first + (near_s - BLOCK_S) * float(dice.random())
        low, high = np.searchsorted(times, (at, at + BLOCK_S))
        levels = Levels(dice)  # jobs of one batch come together, and so within one block
        for j in range(int(low), int(high)):
            if len(found) >= ARRIVALS_MAX:
                return found
            job = past[j]
            runs_s = predictor.draw(job, levels) or job.ran_s or job.estimate_s
            spec = specs.setdefault(job.request, PodSpec(job.request))
            arrival_s = job.arrived - at + i * BLOCK_S
            found.append(_again(job, spec, f"later-{len(found)}", arrival_s, runs_s))
    return found


def _again(job: PastJob, spec: PodSpec, name: str, arrival_s: float, runs_s: float) -> SimJob:
    """Return a job like one that came before."""
    return SimJob(
        namespace=job.key.partition("/")[0],
        name=name,
        queue=job.queue,
        tasks=(SimTask("worker", job.pods, spec),),
        min_available=job.pods,
        duration_s=runs_s or float("inf"),
        arrival_s=arrival_s,
        estimate_s=job.estimate_s or None,
        user=job.user,
    )
