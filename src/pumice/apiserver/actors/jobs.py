"""Run ``batch/v1`` Jobs: carry out what ``runtime.controllers.batch_jobs`` wants written.

The API server of a real cluster leaves this to kube-controller-manager, which this server has none of.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from pumice.apiserver.actors.controlled import Controlled, carry_out, named
from pumice.apiserver.actors.loop import work_for_ever
from pumice.apiserver.actors.wakes import Wakes
from pumice.apiserver.kinds.resources import Resource
from pumice.apiserver.objects import Objects
from pumice.apiserver.refusals import Refusal
from pumice.apiserver.store import Change, Stored
from pumice.model.manifest.reading.fields import Obj
from pumice.runtime.controllers.batch_jobs import FINALIZER, reconcile_batch_job
from pumice.runtime.controllers.writes import Create, Delete, Patch, Wake, Write, part
from pumice.runtime.serving.supervision import SkippedObjects

_log = logging.getLogger("pumice.apiserver")
_JOBS = "jobs.batch"
_Place = tuple[str, str]  # table, key
_AGAIN_S = 5.0  # after a write was refused, such as a pod beyond a quota


class Jobs:
    """``clock``: seconds since the epoch. ``skipped``: objects that it skipped because of faults."""

    def __init__(self, objects: Objects, clock: Callable[[], float]) -> None:
        self._objects, self._clock = objects, clock
        self.skipped = SkippedObjects(_log, "jobs")
        pods, jobs = objects.registry.find("", "v1", "pods"), objects.registry.find("batch", "v1", "jobs")
        assert pods is not None and jobs is not None
        self._pods: Resource = pods
        self._jobs: Resource = jobs
        self._pods_of = Controlled("Job", "batch/v1")
        self._todo: dict[_Place, None] = {}  # a job, or a pod whose job is gone
        self._wakes = Wakes[str]()
        self._work = asyncio.Event()
        for row in objects.store.rows(_JOBS):
            self._add(_JOBS, row.key)
        for row in objects.store.rows("pods"):
            with self.skipped.guard(f"pods {row.key}"):
                self._note_pod(row, deleted=False)
        objects.store.sinks.append(self._on_change)

    async def run(self) -> None:
        """Run until cancelled."""
        await work_for_ever(self.step, self._todo, self._work, self._clock)

    def step(self, count_max: int = 20) -> float | None:
        """Examine what is due, at most ``count_max`` objects. Return when the next one is due, None for none."""
        for key in self._wakes.take(self._clock()):
            self._todo[_JOBS, key] = None
        for table, key in list(self._todo)[:count_max]:
            del self._todo[table, key]
            with self.skipped.guard(f"{table} {key}"):
                if table == _JOBS:
                    self._look_at(key)
                else:
                    self._release(key)
        return self._wakes.next_at

    # -- changes -------------------------------------------------------------------------------------------------------

    def _on_change(self, change: Change) -> None:
        if change.table == _JOBS:
            with self.skipped.guard(f"{_JOBS} {change.now.key}"):
                self._add(_JOBS, change.now.key)
                for key in self._pods_of.of(change.now.obj["metadata"]["uid"]) if change.deleted else ():
                    self._add("pods", key)
        elif change.table == "pods":
            with self.skipped.guard(f"pods {change.now.key}"):
                self._note_pod(change.now, change.deleted)

    def _note_pod(self, pod: Stored, deleted: bool) -> None:
        owner = self._pods_of.note(pod, deleted=deleted)
        if owner is None:
            return
        key = self._jobs.key(owner.namespace, owner.name)
        job = self._objects.store.find(_JOBS, key)
        if job is not None and job.obj["metadata"]["uid"] == owner.uid:
            self._add(_JOBS, key)
        elif not deleted:
            self._add("pods", pod.key)

    def _add(self, table: str, key: str) -> None:
        self._todo[table, key] = None
        self._work.set()

    # -- what is done --------------------------------------------------------------------------------------------------

    def _look_at(self, key: str) -> None:
        job = self._objects.store.find(_JOBS, key)
        if job is None or not _can_be_run(job.obj):
            self._wakes.drop(key)
            return
        keys = self._pods_of.of(job.obj["metadata"]["uid"])
        rows = [row for each in keys if (row := self._objects.store.find("pods", each)) is not None]
        now = self._clock()
        try:
            for write in reconcile_batch_job(named(self._jobs, job), [named(self._pods, row) for row in rows], now):
                self._carry_out(write, key, now)
        except Refusal as refusal:
            _log.warning("%s %s: %s", _JOBS, key, refusal)
            self._wakes.add(key, now + _AGAIN_S)

    def _carry_out(self, write: Write, key: str, now: float) -> None:
        match write:
            case Create() | Patch() | Delete():
                carry_out(self._objects, {"Pod": self._pods, "Job": self._jobs}, write)
            case Wake(after_s=after_s):
                self._wakes.add(key, now + after_s)

    def _release(self, key: str) -> None:
        """Remove the finalizer of a pod whose job is gone."""
        row = self._objects.store.find("pods", key)
        finalizers = [] if row is None else row.obj["metadata"].get("finalizers") or []
        if row is not None and FINALIZER in finalizers:
            metadata = {**row.obj["metadata"], "finalizers": [each for each in finalizers if each != FINALIZER]}
            self._objects.write(self._pods, row, {**row.obj, "metadata": metadata})


def _can_be_run(job: Obj) -> bool:
    """Return True if pods can be made of a job's template. One that no pod can be made of is only stored."""
    containers = part(job, "spec", "template", "spec").get("containers") or []
    return bool(containers) and all(each.get("image") for each in containers)
