"""How a cluster goes on from one moment: when its jobs start and end, by their estimates.

A job that runs ends when its estimate says; one that waits runs for its estimate once it starts. Without an estimate it
stays until the end. A job that is evicted and starts again needs only what was left of its estimate. Pods of a job that
waits for admission are equal parts of what its PodGroup asks for at least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from pumice.framework.plugin.policy_file import Policy
from pumice.model.events import Object
from pumice.model.pod import ENDED, GROUP_NAME_ANNOTATION, TASK_SPEC_KEY, Pod, PodSpec
from pumice.model.status import PodGroupPhase
from pumice.model.workloads.estimate import expected_end_s, job_estimate_s
from pumice.model.workloads.podgroup import PodGroup
from pumice.sim.run import simulate
from pumice.sim.scenes.scene import Scene
from pumice.sim.settings import NO_OBSERVERS, Observers, SimSettings
from pumice.sim.workloads.spans import ARRIVAL_ANNOTATION, DURATION_ANNOTATION
from pumice.sim.workloads.work import LooseGang, Work

#: Pods of one group that is waiting for admission at most: a tenant writes the number.
_PODS_MAX = 100_000

#: Returns for how many seconds more a gang runs, from now or from its start; None: until the end.
Lasts = Callable[[LooseGang], float | None]


class JobForecast(Struct, frozen=True):
    """Seconds from the beginning until a job starts (0: it runs already) and ends, None for not within the time."""

    queue: str
    starts_s: float | None
    ends_s: float | None


class Forecast(Struct, frozen=True):
    """``jobs``: by ``namespace/name``. ``stay``: those of which no estimate says when they end. ``bound``, ``evicted``:
    pods."""

    jobs: dict[str, JobForecast]
    stay: tuple[str, ...]
    bound: int
    evicted: int


def forecast(
    objects: Iterable[Object],
    policy: Policy,
    now: float,
    until_s: float,
    *,
    lasts: Lasts | None = None,
    arriving: Sequence[Work] = (),
    awaited: frozenset[str] = frozenset(),
    observers: Observers = NO_OBSERVERS,
) -> Forecast:
    """Simulate a cluster from ``now`` (seconds since the epoch) for ``until_s`` seconds.

    ``lasts``: run times in place of estimates. ``arriving``: jobs that come later. ``awaited``: end as soon as all of
    these have started.
    """
    gangs, others = _apart(objects)
    works, stay = list[Work](), list[str]()
    for gang in gangs:
        lasts_s = by_estimate(gang, now) if lasts is None else lasts(gang)
        if lasts_s is None:
            stay.append(gang.key)
        works.append(_lasting(gang, lasts_s))
    settings = SimSettings(start=now, until=until_s, try_alone=False, awaited=awaited, asks_why=False)
    run = simulate(Scene(tuple(others), (*works, *arriving)), policy, settings, observers)
    jobs = {
        each.key: JobForecast(each.queue, _since(each.started, now), _since(each.ended, now))
        for each in run.history.jobs
    }
    return Forecast(dict(sorted(jobs.items())), tuple(sorted(stay)), run.result.binds, run.result.evictions)


def gangs_of(objects: Iterable[Object]) -> list[LooseGang]:
    """Return the jobs that run or wait."""
    return _apart(objects)[0]


def started_at(gang: LooseGang) -> float | None:
    """Return when a gang began to run, None if it does not run as a whole."""
    started = [pod.start_time for pod in gang.pods if pod.start_time is not None]
    return min(started) if len(started) >= max(gang.group.min_member, 1) else None


def by_estimate(gang: LooseGang, now: float) -> float | None:
    """Return how long a gang runs, or goes on running, None if nothing says."""
    estimate_s = job_estimate_s(gang.group, gang.pods)
    started = started_at(gang)
    if not estimate_s or started is None:
        return estimate_s or None
    return max(expected_end_s(started, estimate_s, now) - now, 0.0)


def _since(moment: float | None, now: float) -> float | None:
    return None if moment is None else moment - now


def _apart(objects: Iterable[Object]) -> tuple[list[LooseGang], list[Object]]:
    """Return the gangs that wait or run, and all other objects."""
    found = list(objects)
    groups = {obj.key: obj for obj in found if isinstance(obj, PodGroup)}
    members: dict[str, list[Pod]] = {}
    for obj in found:
        if isinstance(obj, Pod) and obj.phase not in ENDED and obj.group_key in groups:
            members.setdefault(obj.group_key, []).append(obj)
    # A gang with fewer pods than its minimum, because some have ended or do not exist, stays as it is.
    gangs = {
        key: LooseGang(groups[key], tuple(pods))
        for key, pods in members.items()
        if len(pods) >= max(groups[key].min_member, 1)
    }
    for key, group in groups.items():
        if key not in members and (pods := _to_be_created(group)):
            gangs[key] = LooseGang(group, pods, is_admitted=False)
    others = [
        obj
        for obj in found
        if not (isinstance(obj, PodGroup) and obj.key in gangs)
        and not (isinstance(obj, Pod) and obj.group_key in gangs and obj.phase not in ENDED)
    ]
    return list(gangs.values()), others


def _to_be_created(group: PodGroup) -> tuple[Pod, ...]:
    """Return the pods that the controller of a job will create after its admission, none if it does not wait for that.

    Source: Volcano's job controller, which gives a PodGroup the requests of its minimum.
    """
    count = min(group.min_member, _PODS_MAX)
    if group.min_resources is None or group.status.phase not in ("", PodGroupPhase.PENDING) or count < 1:
        return ()
    spec = PodSpec(request=group.min_resources.multi(1.0 / group.min_member))
    one = Pod(
        group.namespace,
        name="",
        uid="",
        spec=spec,
        creation=group.creation,
        annotations={GROUP_NAME_ANNOTATION: group.name},
        owner=("Job", group.name, group.key),
    )
    roles = list(islice((role for role, least in group.min_task_member.items() for _ in range(least)), count))
    pods = []
    for i in range(count):
        # A gang is not valid without the pods of each role that it must have.
        role = {TASK_SPEC_KEY: roles[i]} if i < len(roles) else {}
        name = f"{group.name}-{i}"
        pods.append(
            replace(
                one, name=name, uid=f"{group.namespace}/{name}", labels=role, annotations={**one.annotations, **role}
            )
        )
    return tuple(pods)


def _lasting(gang: LooseGang, lasts_s: float | None) -> LooseGang:
    """Return a gang that exists from the beginning and lasts so long. What its objects say of the true run time is for
    simulations, and no forecast may know it."""
    annotations = _without_spans(gang.group.annotations)
    if lasts_s is not None:
        annotations[DURATION_ANNOTATION] = f"{lasts_s:.3f}s"
    pods = tuple(
        replace(pod, annotations=_without_spans(pod.annotations)) if DURATION_ANNOTATION in pod.annotations else pod
        for pod in gang.pods
    )
    return replace(gang, group=replace(gang.group, annotations=annotations), pods=pods)


def _without_spans(annotations: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in annotations.items() if key not in (ARRIVAL_ANNOTATION, DURATION_ANNOTATION)}
