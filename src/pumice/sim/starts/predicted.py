"""When waiting jobs are expected to start, with intervals, or why nothing can be said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from pumice.columns.dtypes import F64
from pumice.framework.plugin.policy_file import Policy
from pumice.model.events import Object
from pumice.model.pod import ENDED, Pod
from pumice.model.workloads.past_job import PastJob
from pumice.model.workloads.podgroup import PodGroup
from pumice.ours.predictor import Predictor
from pumice.ours.start_scores import Record, StartScores, simulated_quantiles
from pumice.sim.starts.samples import WEEK, Horizon, Starts, as_past_job, sampled_starts
from pumice.sim.workloads.work import LooseGang

#: Times that differ by less are the same.
_EQUAL_S = 1e-3


class StartPrediction(Struct, frozen=True):
    """Seconds from now until a job is expected to start; inf for not within the horizon.

    ``middle_s``: half of the simulations are earlier. ``low_80_s``, ``high_80_s``, ``low_95_s``, ``high_95_s``: the
    start is between them with that probability. ``why_not``: why nothing can be said, "" if something can.
    ``simulated_s``: quantiles of the simulations (LEVELS), at most the time that is simulated; () if there are none.
    """

    middle_s: float
    low_80_s: float
    high_80_s: float
    low_95_s: float
    high_95_s: float
    why_not: str = ""
    simulated_s: tuple[float, ...] = ()


class Predictions(Struct, frozen=True):
    """By ``namespace/name``. ``samples`` simulations over ``until_s`` seconds, with what ``learnt`` ended jobs say.
    ``by_age``: running jobs of which only the age says when they end. ``record``: how often earlier predictions were
    right, None if there were none."""

    by_job: Mapping[str, StartPrediction]
    samples: int
    until_s: float
    learnt: int
    by_age: tuple[str, ...] = ()
    record: Record | None = None


def predicted_starts(
    objects: Iterable[Object],
    policy: Policy,
    now: float,
    horizon: Horizon = WEEK,
    *,
    past: Sequence[PastJob] | None = None,
    predictor: Predictor | None = None,
    scores: StartScores | None = None,
    record: Record | None = None,
) -> Predictions:
    """Return when each waiting job starts, by simulating on from ``now`` (seconds since the epoch).

    ``past``: jobs that came, by their arrival; without them those among the objects. ``predictor``: of run times;
    without one it learns from the jobs of ``past`` that have ended. ``scores``: of earlier predictions, to which these
    are added. ``record``: how right earlier ones were, by scores that are kept elsewhere.
    """
    found = list(objects)
    past = past_jobs(found) if past is None else past
    if predictor is None:
        predictor = Predictor()
        for job in past:
            predictor.learn(job)
    starts = sampled_starts(found, policy, now, predictor, past, horizon)

    by_job = {key: _prediction(each, starts, horizon) for key, each in starts.by_job.items()}
    if scores is not None:
        for key, each in by_job.items():
            if each.simulated_s:
                scores.add(key, now, np.array(each.simulated_s))
        record = scores.record()
    return Predictions(by_job, starts.samples, starts.until_s, len(predictor), starts.by_age, record)


def past_jobs(objects: Iterable[Object]) -> list[PastJob]:
    """Return the jobs that came, by their arrival. Those whose pods have all ended, and say when, have a run time."""
    groups: dict[str, PodGroup] = {}
    members: dict[str, list[Pod]] = {}
    for obj in objects:
        if isinstance(obj, PodGroup):
            groups[obj.key] = obj
        elif isinstance(obj, Pod) and obj.group_key:
            members.setdefault(obj.group_key, []).append(obj)
    found = []
    for key, pods in members.items():
        if key not in groups:
            continue
        job = as_past_job(LooseGang(groups[key], tuple(pods)))
        began = [pod.start_time for pod in pods if pod.start_time is not None]
        ended = [pod.finish_time for pod in pods if pod.finish_time is not None and pod.phase in ENDED]
        if began and len(ended) == len(pods):
            job = replace(job, ran_s=max(max(ended) - min(began), 0.0))
        found.append(job)
    return sorted(found, key=lambda job: (job.arrived, job.key))


def _prediction(starts_s: F64, starts: Starts, horizon: Horizon) -> StartPrediction:
    if not len(starts_s):
        why_not = f"no simulation ended within {horizon.steps_max:,} steps"
        return StartPrediction(np.inf, np.inf, np.inf, np.inf, np.inf, why_not)
    # Waits beyond the time that is simulated are unknown: that time is what is known of them.
    raw = np.minimum(simulated_quantiles(np.minimum(starts_s, starts.until_s)), starts.until_s)
    is_beyond = raw >= starts.until_s - _EQUAL_S
    low_95, low_80, middle, high_80, high_95 = np.where(is_beyond, np.inf, raw).tolist()
    why_not = _why_not(starts_s, starts) if np.isinf(middle) else ""
    return StartPrediction(middle, low_80, high_80, low_95, high_95, why_not, tuple(raw.tolist()))


def _why_not(starts_s: F64, starts: Starts) -> str:
    count = int(np.isinf(starts_s).sum())
    text = f"in {count} of {len(starts_s)} simulations it does not start within the time that is simulated"
    # Names of others are not for everyone who may see this job.
    return text if not starts.by_age else f"{text}; without an estimate, so by age alone: {len(starts.by_age)} running"
