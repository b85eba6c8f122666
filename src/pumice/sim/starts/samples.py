"""Simulate a cluster on from one moment several times, with run times and arrivals drawn at random.

Each sample is a whole simulation under the policy, so the starts are what the scheduler would decide. Jobs that come
later are drawn from those that came: whole stretches of the past in a random order, so that busy hours stay together.
Source: Politis and Romano, The Stationary Bootstrap, 1994, with blocks of equal length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from pumice.columns.dtypes import F64
from pumice.framework.plugin.policy_file import Policy
from pumice.model.events import Object
from pumice.model.pod import PodSpec
from pumice.model.resources import Resource
from pumice.model.workloads.estimate import job_estimate_s
from pumice.model.workloads.past_job import PastJob, stem_of
from pumice.ours.predictor import Predictor
from pumice.runtime.memory import old_objects_left_alone
from pumice.sim.forecast import by_estimate, forecast, gangs_of, started_at
from pumice.sim.workloads.work import USER_LABEL, LooseGang, SimJob, SimTask, Work

BLOCK_S = 6 * 3_600.0
#: Jobs of one sample that come later, at most.
ARRIVALS_MAX = 2_000


class Horizon(Struct, frozen=True):
    """How far and how often it is simulated: ``until_s`` seconds, ``samples`` times, with a ``seed``."""

    until_s: float = 7 * 86_400.0
    samples: int = 8
    seed: int = 0


WEEK = Horizon()


class Starts(Struct, frozen=True):
    """Seconds until jobs start, by ``namespace/name``. Shape (samples,), inf for not within the time. ``stay``: running
    jobs of which nothing says when they end."""

    by_job: dict[str, F64]
    stay: tuple[str, ...] = ()


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
    waiting = frozenset(about.keys() - ages.keys())
    if not waiting:
        return Starts({})
    predictor.watch((about[key], age_s) for key, age_s in ages.items())
    starts: dict[str, list[float]] = {key: [] for key in sorted(waiting)}
    drawn: dict[str, float | None] = {}
    with old_objects_left_alone():
        for number in range(horizon.samples):
            dice = np.random.Generator(np.random.PCG64([horizon.seed, number]))
            # In the order of the objects, so that the same input draws the same numbers.
            for gang in gangs:
                age_s = ages.get(gang.key, 0.0)
                runs_s = predictor.draw(about[gang.key], dice, age_s)
                drawn[gang.key] = by_estimate(gang, now) if runs_s is None else max(runs_s - age_s, 1.0)
            ahead = forecast(
                found,
                policy,
                now,
                horizon.until_s,
                lasts=lambda gang: drawn[gang.key],
                arriving=_arrivals(past, now, horizon.until_s, predictor, dice),
                awaited=waiting,
            )
            for key, times in starts.items():
                start = ahead.jobs[key].starts_s if key in ahead.jobs else None
                times.append(float("inf") if start is None else start)
    stay = (gang.key for gang in gangs if gang.key in ages and drawn[gang.key] is None)
    return Starts({key: np.array(times) for key, times in starts.items()}, tuple(sorted(stay)))


def as_past_job(gang: LooseGang) -> PastJob:
    """Return what is remembered of a job."""
    group, first = gang.group, gang.pods[0]
    user = group.labels.get(USER_LABEL, "") or first.labels.get(USER_LABEL, "")
    estimate_s = job_estimate_s(group, gang.pods)
    count, request = len(gang.pods), first.spec.request
    return PastJob(gang.key, group.queue, user, stem_of(group.name), count, request, estimate_s, group.creation)


def _arrivals(
    past: Sequence[PastJob], now: float, until_s: float, predictor: Predictor, dice: np.random.Generator
) -> list[Work]:
    """Return jobs that come later, as they came before."""
    if not past:
        return []
    began = past[0].arrived
    blocks = int((now - began) // BLOCK_S)
    if blocks < 1:
        return []
    times = np.array([job.arrived for job in past])
    specs: dict[Resource, PodSpec] = {}
    found: list[Work] = []
    for i in range(int(np.ceil(until_s / BLOCK_S))):
        at = began + BLOCK_S * int(dice.integers(blocks))
        low, high = np.searchsorted(times, (at, at + BLOCK_S))
        for j in range(int(low), int(high)):
            if len(found) >= ARRIVALS_MAX:
                return found
            job = past[j]
            runs_s = predictor.draw(job, dice) or job.ran_s or job.estimate_s
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
