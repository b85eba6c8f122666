"""Jobs of traces in the language that schedules them.

A trace says what was requested, but not from which scheduler. Its jobs become Volcano's Jobs, whose pods are created
once their PodGroup is admitted, or pods with a PodGroup of KAI, in queues without limits. Only KAI's language allocates
parts of GPUs itself; in Volcano's, jobs that request them are left out.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from pumice.framework.plugin.registry import Dialect
from pumice.model.events import Object
from pumice.model.queue import Queue, QueueSharing, Quota
from pumice.model.workloads.gang import Gang
from pumice.runtime.problems.problem import Problem, Severity
from pumice.sim.scenes.scene import Scene
from pumice.sim.workloads.work import SimJob, Work

_SHARES_GPUS = "kai"
_NO_LIMIT = Quota(None, None, 1.0)
_UNLIMITED = QueueSharing(_NO_LIMIT, _NO_LIMIT, _NO_LIMIT)


def in_language(scene: Scene, dialect: Dialect) -> tuple[Scene, str]:
    """Return the scene with jobs of traces in the language, and what was left out of it, "" for nothing."""
    if dialect.name == _SHARES_GPUS:
        named = {work.queue for work in scene.works if isinstance(work, SimJob)}
        objects = tuple(_without_limits(obj, named) for obj in scene.objects)
        works = tuple(_job_in(work, dialect) for work in scene.works)
        return replace(scene, objects=objects, works=works), ""
    kept = tuple(work for work in scene.works if not _asks_for_part(work))
    left_out = len(scene.works) - len(kept)
    if not left_out:
        return scene, ""
    said = f"{left_out:,} jobs ask for a part of a GPU and are left out: use a policy with `dialect: {_SHARES_GPUS}`"
    return replace(scene, works=kept), said


def objects_at(scene: Scene, now: float, dialect: Dialect) -> tuple[list[Object], list[Problem]]:
    """Return everything at once, as if all works arrived at ``now``, with jobs of traces in the language, and what was
    left out."""
    found, left_out = in_language(scene, dialect)
    problems = [Problem("traces", left_out, Severity.WARNING)] if left_out else []
    return found.all_objects(now), problems


def _job_in(work: Work, dialect: Dialect) -> Work:
    if not isinstance(work, SimJob):
        return work
    return replace(work, scheduler=dialect.scheduler, gang=Gang(), waits_for_admission=False)


def _without_limits(obj: Object, named: Collection[str]) -> Object:
    """Return a queue of these names without limits: one without amounts in KAI's terms could hold nothing."""
    if isinstance(obj, Queue) and obj.name in named and obj.sharing is None:
        return replace(obj, sharing=_UNLIMITED)
    return obj


def _asks_for_part(work: Work) -> bool:
    return isinstance(work, SimJob) and any(task.spec.gpu_share is not None for task in work.tasks)
