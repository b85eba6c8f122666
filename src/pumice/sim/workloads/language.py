"""Jobs of traces in the language that schedules them.

A trace says what was requested, but not from which scheduler. Its jobs become Volcano's Jobs, whose pods are created
once their PodGroup is admitted, or pods with a PodGroup of KAI, in queues without limits. Only KAI's language allocates
parts of GPUs itself; in Volcano's, jobs that request them are left out.
"""

from __future__ import annotations

from msgspec.structs import replace

from pumice.framework.plugin.registry import Dialect
from pumice.model.queue import Queue, QueueSharing, Quota
from pumice.model.workloads.gang import Gang
from pumice.sim.scenes.scene import Scene
from pumice.sim.workloads.work import SimJob, Work

_SHARERS = "kai"
_ANY = Quota(None, None, 1.0)


def spoken(scene: Scene, dialect: Dialect) -> tuple[Scene, str]:
    """Return the scene with jobs of traces in the language, and what was left out of it, "" for nothing."""
    if dialect.name == _SHARERS:
        named = {work.queue for work in scene.works if isinstance(work, SimJob)}
        objects = tuple(_free(obj) if isinstance(obj, Queue) and obj.name in named else obj for obj in scene.objects)
        works = tuple(_as_of(work, dialect) for work in scene.works)
        return replace(scene, objects=objects, works=works), ""
    kept = tuple(work for work in scene.works if not _shares(work))
    gone = len(scene.works) - len(kept)
    if not gone:
        return scene, ""
    said = f"{gone:,} jobs ask for a part of a GPU and are left out: use a policy with `dialect: {_SHARERS}`"
    return replace(scene, works=kept), said


def _as_of(work: Work, dialect: Dialect) -> Work:
    if not isinstance(work, SimJob):
        return work
    return replace(work, scheduler=dialect.scheduler, gang=Gang(), waits_for_admission=False)


def _free(queue: Queue) -> Queue:
    """Return a queue without limits in place of one without amounts in KAI's terms, which could hold nothing."""
    return queue if queue.sharing is not None else replace(queue, sharing=QueueSharing(_ANY, _ANY, _ANY))


def _shares(work: Work) -> bool:
    return isinstance(work, SimJob) and any(task.spec.gpu_share is not None for task in work.tasks)
