"""Run ``batch/v1`` CronJobs: carry out what ``runtime.controllers.cron_jobs`` wants written."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from pumice.apiserver.actors.controlled import Controlled, carry_out, named
from pumice.apiserver.actors.loop import work_for_ever
from pumice.apiserver.actors.wakes import Wakes
from pumice.apiserver.kinds.resources import Resource
from pumice.apiserver.objects import Objects, Options, Target
from pumice.apiserver.refusals import Refusal
from pumice.apiserver.store import Change, Stored
from pumice.model.instants import stamp
from pumice.model.manifest.reading.fields import Obj
from pumice.runtime.controllers.cron_jobs import BATCH_FORM, reconcile_cron_job
from pumice.runtime.controllers.writes import Create, Delete, Emit, Patch, Wake, Write
from pumice.runtime.serving.supervision import SkippedObjects

_log = logging.getLogger("pumice.apiserver")
_CRON_JOBS, _JOBS = "cronjobs.batch", "jobs.batch"
_AGAIN_S = 5.0  # after a write was refused, such as a Job beyond a quota


class CronJobs:
    """``clock``: seconds since the epoch. ``skipped``: objects that it skipped because of faults."""

    def __init__(self, objects: Objects, clock: Callable[[], float]) -> None:
        self._objects, self._clock = objects, clock
        self.skipped = SkippedObjects(_log, "cron-jobs")
        found = [objects.registry.find(*each) for each in (("batch", "v1", "cronjobs"), ("batch", "v1", "jobs"))]
        events = objects.registry.find("", "v1", "events")
        assert found[0] is not None and found[1] is not None and events is not None
        self._kinds: dict[str, Resource] = {"CronJob": found[0], "Job": found[1]}
        self._events: Resource = events
        self._jobs_of = Controlled("CronJob", BATCH_FORM.api_version)
        self._todo: dict[str, None] = {}
        self._wakes = Wakes[str]()
        self._work = asyncio.Event()
        for row in objects.store.rows(_CRON_JOBS):
            self._add(row.key)
        for row in objects.store.rows(_JOBS):
            with self.skipped.guard(f"{_JOBS} {row.key}"):
                self._note_job(row, deleted=False)
        objects.store.sinks.append(self._on_change)

    async def run(self) -> None:
        """Run until cancelled."""
        await work_for_ever(self.step, self._todo, self._work, self._clock)

    def step(self, count_max: int = 20) -> float | None:
        """Examine what is due, at most ``count_max`` CronJobs. Return when the next one is due, None for none."""
        self._todo.update(dict.fromkeys(self._wakes.take(self._clock())))
        for key in list(self._todo)[:count_max]:
            del self._todo[key]
            with self.skipped.guard(f"{_CRON_JOBS} {key}"):
                self._look_at(key)
        return self._wakes.next_at

    def _on_change(self, change: Change) -> None:
        if change.table == _CRON_JOBS:
            self._add(change.now.key)
        elif change.table == _JOBS:
            with self.skipped.guard(f"{_JOBS} {change.now.key}"):
                self._note_job(change.now, change.deleted)

    def _note_job(self, job: Stored, deleted: bool) -> None:
        owner = self._jobs_of.note(job, deleted=deleted)
        if owner is not None:
            self._add(self._kinds["CronJob"].key(owner.namespace, owner.name))

    def _add(self, key: str) -> None:
        self._todo[key] = None
        self._work.set()

    def _look_at(self, key: str) -> None:
        row = self._objects.store.find(_CRON_JOBS, key)
        if row is None:
            self._wakes.drop(key)
            return
        keys, now = self._jobs_of.of(row.obj["metadata"]["uid"]), self._clock()
        jobs = [
            named(self._kinds["Job"], job)
            for each in keys
            if (job := self._objects.store.find(_JOBS, each)) is not None
        ]
        try:
            for write in reconcile_cron_job(named(self._kinds["CronJob"], row), jobs, now, BATCH_FORM):
                self._carry_out(write, key, now)
        except Refusal as refusal:
            _log.warning("%s %s: %s", _CRON_JOBS, key, refusal)
            self._wakes.add(key, now + _AGAIN_S)

    def _carry_out(self, write: Write, key: str, now: float) -> None:
        match write:
            case Create(obj=obj):
                self._create(self._kinds["Job"], obj)
            case Patch() | Delete():
                carry_out(self._objects, self._kinds, write)
            case Emit():
                self._emit(write, now)
            case Wake(after_s=after_s):
                self._wakes.add(key, now + after_s)

    def _create(self, resource: Resource, obj: Obj) -> None:
        try:
            self._objects.create(Target(resource, obj["metadata"]["namespace"]), obj, Options())
        except Refusal as refusal:
            if refusal.reason != "AlreadyExists":
                raise

    def _emit(self, emit: Emit, now: float) -> None:
        """Create an event, one at most for each CronJob, reason and minute."""
        ref, at = emit.ref, stamp(now)
        name = f"{ref.name[:200]}.{emit.reason.lower()}.{int(now) // 60:x}"
        about = {"apiVersion": ref.api_version, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name}
        event: Obj = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": ref.namespace},
            "involvedObject": {**about, "uid": ref.uid},
            "type": emit.type,
            "reason": emit.reason,
            "message": emit.message,
            "source": {"component": "cronjob-controller"},
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
        self._create(self._events, event)
