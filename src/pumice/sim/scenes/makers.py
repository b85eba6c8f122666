"""CronJobs and JobFlows in a simulation. The functions of the live controllers decide which Jobs to create.

A Job takes as long as its template says, by ``runningEstimate`` or an annotation ``pumice.dev/duration``. No Job fails
here, so none is retried.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pumice.model.instants import stamp
from pumice.model.manifest.defaults.priorities import Priorities
from pumice.model.manifest.job_fields import read_volcano_job
from pumice.model.manifest.pod_spec import SpecCache
from pumice.model.manifest.reading.fields import FieldError, Obj
from pumice.model.workloads.job_makers import CRON_JOB, JOB_FLOW, JOB_TEMPLATE, JobMaker
from pumice.runtime.controllers.cron_jobs import reconcile_cron_job
from pumice.runtime.controllers.job_flows import TEMPLATE_KEY, reconcile_job_flow
from pumice.runtime.controllers.writes import Create, Delete, Emit, Patch, Wake, annotations_of, merged, meta, part
from pumice.sim.controller import Controller, JobRun
from pumice.sim.engine import EventId
from pumice.sim.scenes.manifests import MADE_PODS_MAX, ManifestJob
from pumice.sim.workloads.spans import DURATION_ANNOTATION
from pumice.sim.workloads.work import Work, arriving

_Which = tuple[str, str]  # kind, and namespace/name


class Makers:
    """The CronJobs and JobFlows, asked whenever one of their Jobs changes. ``made``: Jobs that they created, by the key
    of their PodGroup. ``until``: seconds from the start to the end, without which a CronJob would never stop."""

    def __init__(
        self,
        controller: Controller,
        makers: Sequence[JobMaker],
        priorities: Priorities,
        until: float | None,
    ) -> None:
        self.made: dict[str, Work] = {}
        self._controller, self._engine, self._priorities = controller, controller.engine, priorities
        self._objects: dict[_Which, Obj] = {(each.kind, each.key): self._placed(each) for each in makers}
        self._jobs: dict[_Which, dict[str, Obj]] = {which: {} for which in self._objects}
        self._of: dict[str, tuple[_Which, str]] = {}  # by the key of a PodGroup
        self._wakes: dict[_Which, EventId] = {}
        self._due: set[_Which] = set()
        self._specs = SpecCache()
        self._pods = 0
        for hook, phase in (
            (controller.hooks.arrived, "Pending"),
            (controller.hooks.started, "Running"),
            (controller.hooks.broken, "Pending"),
            (controller.hooks.ended, "Completed"),
        ):
            hook.append(partial(self._comes_to, phase))
        for kind, key in sorted(self._objects):
            if kind == CRON_JOB and until is None:
                self._say(f"CronJob {key}: creates no jobs without --until, because it would never stop")
            elif kind != JOB_TEMPLATE:
                self._look_soon((kind, key))

    def _placed(self, maker: JobMaker) -> Obj:
        """Return the object as an API server would have it. A run that should be replaced is waited for instead."""
        spec = part(dict(maker.obj), "spec")
        if maker.kind == CRON_JOB and spec.get("concurrencyPolicy") == "Replace":
            self._say(f"CronJob {maker.key}: concurrencyPolicy Replace is simulated as Forbid")
            spec = {**spec, "concurrencyPolicy": "Forbid"}
        made = {"uid": f"{maker.kind}/{maker.key}", "creationTimestamp": stamp(self._engine.now)}
        metadata = {**made, **meta(dict(maker.obj)), "namespace": maker.namespace}
        return {**maker.obj, "metadata": metadata, "spec": spec}

    def _say(self, text: str) -> None:
        if text not in self._controller.problems:
            self._controller.problems.append(text)

    # -- when they are asked

    def _look_soon(self, which: _Which) -> None:
        if which not in self._due:
            self._due.add(which)
            self._engine.at(self._engine.now, self._look, which)

    def _comes_to(self, phase: str, run: JobRun) -> None:
        """Note that a simulated Job is in another phase."""
        which, name = self._of.get(run.key, (("", ""), ""))
        job = self._jobs.get(which, {}).get(name)
        if job is None:
            return
        counts = {each["name"]: {"phase": {phase: each.get("replicas", 1)}} for each in part(job, "spec")["tasks"]}
        state = {"phase": phase, "lastTransitionTime": stamp(self._engine.now)}
        self._jobs[which][name] = {**job, "status": {"state": state, "taskStatusCount": counts}}
        self._look_soon(which)

    def _look(self, which: _Which) -> None:
        self._due.discard(which)
        if (wake := self._wakes.pop(which, None)) is not None:
            self._engine.cancel(wake)
        for write in self._wanted(which):
            match write:
                case Create(obj):
                    self._make(which, obj)
                case Patch(_, merge):
                    self._objects[which] = merged(self._objects[which], merge)
                case Delete(ref):
                    self._jobs[which].pop(ref.name, None)
                case Emit(_, "Warning", reason, message):
                    self._say(f"{which[0]} {which[1]}: {reason}: {message}")
                case Wake(_, after_s):
                    self._wakes[which] = self._engine.after(after_s, self._look_soon, which)

    def _wanted(self, which: _Which) -> list[Any]:
        obj, jobs, now = self._objects[which], list(self._jobs[which].values()), self._engine.now
        if which[0] == CRON_JOB:
            return [*reconcile_cron_job(obj, jobs, now)]
        namespace = meta(obj)["namespace"]
        found = [each for (kind, _), each in self._objects.items() if kind == JOB_TEMPLATE]
        templates = {meta(each)["name"]: each for each in found if meta(each)["namespace"] == namespace}
        return [*reconcile_job_flow(obj, jobs, templates, now)]

    # -- what they make

    def _make(self, which: _Which, obj: Obj) -> None:
        name = meta(obj)["name"]
        obj = {**obj, "metadata": {**meta(obj), "annotations": self._annotations(which, obj)}}
        try:
            job = read_volcano_job(obj, self._specs, "default", "volcano")
            self._pods += max(job.replicas, 1)
            if self._pods > MADE_PODS_MAX:
                self._say(
                    f"{which[0]} {which[1]}: creates no more jobs: those created so far have {MADE_PODS_MAX:,} pods"
                )
                return
            work = ManifestJob(job, self._priorities)
            self._controller.submit(arriving(work, self._now_s()))
        except (FieldError, ValueError) as error:
            self._say(f"{which[0]} {which[1]}: {error}")
            return
        self._of[work.key] = which, name
        self.made[work.key] = work
        seen = {"uid": work.key, "creationTimestamp": stamp(self._engine.now)}
        self._jobs[which][name] = {**obj, "metadata": {**meta(obj), **seen}}

    def _now_s(self) -> float:
        """Return seconds since the start, such that start plus seconds is now and not slightly before."""
        found = self._engine.now - self._controller.start
        while self._controller.start + found < self._engine.now:
            found = math.nextafter(found, math.inf)
        return found

    def _annotations(self, which: _Which, obj: Obj) -> Mapping[str, str]:
        """Return annotations with the duration of a template's Jobs. On a cluster it is not copied to them, but here it
        counts."""
        found = annotations_of(obj)
        if which[0] != JOB_FLOW:
            return found
        template = self._objects.get((JOB_TEMPLATE, found.get(TEMPLATE_KEY, "").replace(".", "/", 1)), {})
        said = annotations_of(template).get(DURATION_ANNOTATION)
        return {**found, DURATION_ANNOTATION: said} if said else found
