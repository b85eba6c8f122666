"""The controllers at work: watch, ask the functions of ``runtime.controllers`` what to write, write it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from pumice.kube.client import Client
from pumice.kube.control_kinds import (
    CRON_JOBS,
    JOB_FLOWS,
    JOB_TEMPLATES,
    JOBS,
    LOOKED_UP,
    NATIVE_POD_GROUPS,
    WATCHED_BY,
    PlainCodec,
    kind_of,
)
from pumice.kube.control_view import CONTROLLER_OF, Task, View
from pumice.kube.control_writes import Writing
from pumice.kube.errors import ApiError, KubeError
from pumice.kube.events_out import Teller
from pumice.kube.kinds import POD_GROUPS, PODS, QUEUES, Kind
from pumice.kube.patience import Patience
from pumice.kube.reminders import AGAIN_S
from pumice.kube.troubles import Troubles
from pumice.kube.watch import Reflector
from pumice.kube.work_queue import WorkQueue
from pumice.model.events import Event, Seen
from pumice.model.manifest.fields import Obj
from pumice.model.manifest.pod_spec import SpecCache
from pumice.model.pod import Pod
from pumice.runtime.controllers.cron_jobs import reconcile_cron_job
from pumice.runtime.controllers.gang_owners import native_group_of
from pumice.runtime.controllers.job_flows import reconcile_job_flow, reconcile_job_template
from pumice.runtime.controllers.job_policies import Request
from pumice.runtime.controllers.jobs import JobView, reconcile_job
from pumice.runtime.controllers.podgroups import GroupSettings, group_name_for, reconcile_pod, reconcile_set
from pumice.runtime.controllers.queues import (
    QueueAction,
    consume_command,
    counts_by_phase,
    missing_queues,
    reconcile_queue,
)
from pumice.runtime.controllers.writes import Patch, Tell, Wake, Write, meta, part
from pumice.runtime.metrics import Metrics

_WORKERS = 5  # as many as Volcano's podgroup controller has
_RESTS = (
    9  # times as long as a look took: a job of very many pods, which change one by one, takes a tenth of a processor
)
_RESTS_FROM_S = 0.005
_SAID_MAX = 10_000
#: By controller: what it does nothing without.
_NEEDS = {"podgroup": POD_GROUPS, "job": POD_GROUPS, "queue": QUEUES, "cronjob": JOBS, "jobflow": JOBS}
_log = logging.getLogger("pumice.controllers")


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """``controllers``: which of those that there are run."""

    controllers: tuple[str, ...] = tuple(WATCHED_BY)
    groups: GroupSettings = field(default_factory=GroupSettings)
    default_queue: str = "default"


class ControlLoop:
    """One run of the controllers, from an empty view. ``clock``: seconds since the epoch."""

    def __init__(
        self,
        client: Client,
        settings: ControlSettings,
        clock: Callable[[], float],
        metrics: Metrics | None = None,
        patience: Patience | None = None,
        troubles: Troubles | None = None,
    ) -> None:
        self._client, self._settings, self._clock, self._metrics = client, settings, clock, metrics
        self._patience, self._troubles = patience or Patience(), troubles or Troubles()
        self._queue: WorkQueue[Task] = WorkQueue()
        self._held: dict[str, dict[Task, None]] = {name: {} for name in settings.controllers}  # until these begin
        self.view = View(settings.controllers, settings.default_queue, self._note)
        self._reflectors = {
            kind: Reflector(
                client, kind, PlainCodec(kind), partial(self._take, kind), Pod, self._patience, self._troubles
            )
            for kind in self.view.kinds
        }
        self._teller = Teller(client, "pumice", now=clock)
        self._writing = Writing(client, self._teller.tell)
        self._said: dict[Task, None] = {}  # what fails, and was said to
        self._specs = SpecCache()
        self._rest_s: dict[Task, float] = {}

    async def run(self) -> None:
        """For ever, until cancelled. No controller writes anything before everything that it watches was listed."""
        try:
            async with asyncio.TaskGroup() as group:
                for reflector in self._reflectors.values():
                    group.create_task(reflector.run())
                for name in self._settings.controllers:
                    group.create_task(self._begin(name))
                group.create_task(self._teller.lane.run())
                for _ in range(_WORKERS):
                    group.create_task(self._work())
        finally:
            self._queue.close()
            self._troubles.forget()

    async def _begin(self, controller: str) -> None:
        """Let a controller look at things once it knows them all."""
        for kind in WATCHED_BY[controller]:
            await self._reflectors[kind].synced.wait()
        if controller == "queue":
            self._note(Task("queues", ""))
        for task in self._held.pop(controller):
            self._queue.add(task)

    def _note(self, task: Task) -> None:
        """A thing has to be looked at, now or when its controller begins."""
        held = self._held.get(CONTROLLER_OF[task.what])
        if held is None:
            self._queue.add(task)
        else:
            held[task] = None

    def _take(self, kind: Kind, events: list[Event]) -> None:
        """What a reflector tells; its objects are dictionaries here."""
        for event in events:
            if isinstance(event, Seen):
                self.view.put(kind, event.obj)  # type: ignore[arg-type]  # PlainCodec reads dictionaries
            else:
                self.view.drop(kind, event.key, self._clock())  # type: ignore[union-attr]  # a reflector undoes nothing

    async def _work(self) -> None:
        while True:
            task = await self._queue.take()
            try:
                await self._look_at(task)
            except KubeError as error:
                self._say(task, error, self._queue.failed(task))
            except Exception:
                delay = self._queue.failed(task)
                _log.exception("%s %s: a fault of this program; again in %.1f s", *task, delay)
            else:
                self._queue.done(task, self._rest_s.pop(task, 0.0))
                if task in self._said:
                    del self._said[task]
                    _log.info("%s %s: goes on", *task)

    def _say(self, task: Task, error: KubeError, delay: float) -> None:
        """Once until it goes on. Not what comes of somebody else's change, nor of a namespace that is deleted."""
        expected = isinstance(error, ApiError) and (error.status == 409 or error.namespace_goes)
        level = logging.DEBUG if expected or task in self._said else logging.WARNING
        _log.log(level, "%s %s: %s; again in %.1f s, then later and later", *task, error, delay)
        if not expected:
            if len(self._said) >= _SAID_MAX:
                self._said.clear()
            self._said[task] = None

    async def _look_at(self, task: Task) -> None:
        """Raises: KubeError."""
        if self._reflectors[_NEEDS[CONTROLLER_OF[task.what]]].trouble:  # it has said so itself
            self._queue.later(task, self._patience.soon_last_s)
            return
        requests = self.view.take_requests(task.key) if task.what == "job" else ()
        try:
            writes = await self._wanted(task, requests)
            await self._writing.carry_out(writes)
        except BaseException:
            self.view.keep(task.key, requests)
            raise
        for write in writes:
            if isinstance(write, Wake):
                self.view.keep(task.key, write.requests)
                self._queue.later(task, write.after_s)
            elif isinstance(write, Patch) and write.ref.kind == "Pod" and not write.subresource:
                self.view.assume(write.ref, write.merge)
            elif isinstance(write, Tell) and write.type == "Warning":
                self._queue.later(task, AGAIN_S)  # where it still holds then, it is told again

    async def _wanted(self, task: Task, requests: tuple[Request, ...]) -> list[Write]:
        match task.what:
            case "pod":
                return await self._for_pod(task.key)
            case "set":
                return self._for_set(task.key)
            case "job":
                return self._for_job(task.key, requests)
            case "cronjob":
                return self._for_cron_job(task.key)
            case "flow":
                return self._for_flow(task.key)
            case "template":
                return self._for_template(task.key)
            case "queue":
                return self._for_queue(task.key)
        return missing_queues(self.view.objects[QUEUES], self._settings.default_queue)

    # -- podgroups

    async def _for_pod(self, key: str) -> list[Write]:
        pod = self.view.find(PODS, key)
        if pod is None:
            return []
        group = self.view.find(POD_GROUPS, f"{meta(pod)['namespace']}/{group_name_for(pod)}")
        owner = await self._owner_of(pod) if group is None else None  # it is only asked what to make
        queue = self.view.namespace_queue(meta(pod)["namespace"])
        return reconcile_pod(pod, owner, group, self._settings.groups, self._specs, queue)

    def _for_set(self, key: str) -> list[Write]:
        plural, _, rest = key.partition("/")
        kind = next(kind for kind in self.view.kinds if kind.plural == plural)
        owner = self.view.find(kind, rest)
        if owner is None:
            return []
        uid = meta(owner).get("uid", "")
        group = self.view.find(POD_GROUPS, f"{meta(owner)['namespace']}/podgroup-{uid}")
        pods = list(self.view.pods_of.get(uid, {}).values())
        queue = self.view.namespace_queue(meta(owner)["namespace"])
        return reconcile_set(owner, pods, group, self._settings.groups, self._specs, queue)

    async def _owner_of(self, pod: Obj) -> Obj | None:
        """What says how large a pod's gang is: its native group, else its controlling owner, if that can be read.

        Raises: KubeError; for a native group that is not there (yet) as well.
        """
        native = native_group_of(pod)
        if native:
            group: Obj = await self._client.get(NATIVE_POD_GROUPS.path(f"{meta(pod)['namespace']}/{native}"))
            return group
        for ref in meta(pod).get("ownerReferences") or ():
            kind = kind_of(str(ref.get("apiVersion")), str(ref.get("kind"))) if ref.get("controller") else None
            if kind is None:
                continue
            key = f"{meta(pod)['namespace']}/{ref['name']}"
            if kind not in LOOKED_UP:
                return self.view.find(kind, key)
            try:
                found: Obj = await self._client.get(kind.path(key))
            except ApiError as error:
                if error.status not in (403, 404):
                    raise
                return None
            return found
        return None

    # -- jobs

    def _for_job(self, key: str, requests: tuple[Request, ...]) -> list[Write]:
        job = self.view.find(JOBS, key)
        if job is None:
            return []
        uid, namespace, name = meta(job).get("uid", ""), meta(job)["namespace"], meta(job)["name"]
        group = self.view.find(POD_GROUPS, f"{namespace}/{name}-{uid}") or self.view.find(POD_GROUPS, key)
        view = JobView(
            job,
            list(self.view.pods_of.get(uid, {}).values()),
            group,
            list(self.view.commands_for.get(uid, {}).values()),
            requests,
            self.view.namespace_queue(namespace),
        )
        names = self._settings.groups.scheduler_names
        began = time.perf_counter()
        writes = reconcile_job(view, self._clock(), self._specs, self.view.priorities(), names)
        took_s = time.perf_counter() - began
        if took_s > _RESTS_FROM_S:
            self._rest_s[Task("job", key)] = _RESTS * took_s
        return writes

    # -- what makes jobs

    def _for_cron_job(self, key: str) -> list[Write]:
        found = self.view.find(CRON_JOBS, key)
        return [] if found is None else reconcile_cron_job(found, self._jobs_of(found), self._clock())

    def _for_flow(self, key: str) -> list[Write]:
        found = self.view.find(JOB_FLOWS, key)
        if found is None:
            return []
        templates = self.view.templates_in(meta(found)["namespace"])
        return reconcile_job_flow(found, self._jobs_of(found), templates, self._clock())

    def _for_template(self, key: str) -> list[Write]:
        found = self.view.find(JOB_TEMPLATES, key)
        return [] if found is None else reconcile_job_template(found, list(self.view.made_of.get(key, {}).values()))

    def _jobs_of(self, owner: Obj) -> list[Obj]:
        return list(self.view.jobs_of.get(meta(owner).get("uid", ""), {}).values())

    # -- queues

    def _for_queue(self, name: str) -> list[Write]:
        queue = self.view.find(QUEUES, name)
        groups = self.view.groups_in.get(name, {})
        self._count_groups(name, queue, groups)
        if queue is None:
            return []
        writes: list[Write] = []
        action = QueueAction.SYNC
        for command in self.view.commands_for.get(meta(queue).get("uid", ""), {}).values():
            consumed, ordered = consume_command(command)
            writes += consumed
            action = ordered or action
        parent = self.view.find(QUEUES, str(part(queue, "spec").get("parent") or ""))
        return [*reconcile_queue(queue, len(groups), parent, action), *writes]

    def _count_groups(self, name: str, queue: Obj | None, groups: dict[str, Obj]) -> None:
        """How many PodGroups are in which phase, for who reads metrics."""
        if self._metrics is None:
            return
        for phase, count in counts_by_phase(groups.values()).items():
            metric = f"queue_pod_group_{phase.lower()}_count"
            if queue is None:
                self._metrics.forget(metric, name)
            else:
                self._metrics.put(metric, count, name)
