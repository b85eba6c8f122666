"""Run the controllers: watch, ask the functions of ``runtime.controllers`` what to write, and write it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from msgspec import Struct, field

from pumice.kube.api.client import Client
from pumice.kube.api.kinds import POD_GROUPS, PODS, QUEUES, Kind
from pumice.kube.api.retry_policy import RetryPolicy
from pumice.kube.controllers.kinds import (
    CRON_JOBS,
    JOB_FLOWS,
    JOB_TEMPLATES,
    JOBS,
    LOOKED_UP,
    WATCHED_BY,
    PlainCodec,
    kind_of,
)
from pumice.kube.controllers.reconcile import Part, Reconciler
from pumice.kube.controllers.ssh_keys import PreparedKeys
from pumice.kube.controllers.view import CONTROLLER_OF, Task, View
from pumice.kube.informers.watch_failures import WatchFailures
from pumice.kube.writers.reminders import AGAIN_S
from pumice.model.manifest.pod_spec import SpecCache
from pumice.model.manifest.reading.fields import Obj
from pumice.runtime.controllers.cron_jobs import reconcile_cron_job
from pumice.runtime.controllers.job_flows import reconcile_job_flow, reconcile_job_template
from pumice.runtime.controllers.job_policies import Request
from pumice.runtime.controllers.job_ssh import NewKeys
from pumice.runtime.controllers.jobs import JobView, reconcile_job
from pumice.runtime.controllers.podgroups import GroupSettings, group_name_for, reconcile_pod, reconcile_set
from pumice.runtime.controllers.queues import (
    QueueAction,
    consume_command,
    counts_by_phase,
    missing_queues,
    reconcile_queue,
)
from pumice.runtime.controllers.writes import Emit, Patch, Wake, Write, meta, part
from pumice.runtime.telemetry.metrics import Metrics

# times as long as a look took: a job of very many pods, which change one by one, takes a tenth of a processor
_RESTS = 9
_RESTS_FROM_S = 0.005
#: The kind without which each controller does nothing.
_NEEDS = {"podgroup": POD_GROUPS, "job": POD_GROUPS, "queue": QUEUES, "cronjob": JOBS, "jobflow": JOBS}


class ControlSettings(Struct, frozen=True):
    """``controllers``: names of those that run."""

    controllers: tuple[str, ...] = tuple(WATCHED_BY)
    groups: GroupSettings = field(default_factory=GroupSettings)
    default_queue: str = "default"


class ControlLoop:
    """A run of the controllers, from an empty view. ``clock``: seconds since the epoch."""

    def __init__(
        self,
        client: Client,
        settings: ControlSettings,
        clock: Callable[[], float],
        metrics: Metrics | None = None,
        retry_policy: RetryPolicy | None = None,
        troubles: WatchFailures | None = None,
    ) -> None:
        self._client, self._settings, self._clock, self._metrics = client, settings, clock, metrics
        self._parts = {name: Part(_NEEDS[name], WATCHED_BY[name]) for name in settings.controllers}
        self.reconciling = Reconciler[Task](
            client, clock, " ".join, self._parts.values(), self._part_of, retry_policy, troubles
        )
        self.view = View(settings.controllers, settings.default_queue, self.reconciling.add)
        for kind in self.view.kinds:
            self.reconciling.follow(PlainCodec(kind), partial(self.view.put, kind), partial(self._drop, kind))
        self._specs, self._ssh_keys = SpecCache(), PreparedKeys()
        self._rest_s: dict[Task, float] = {}

    async def run(self) -> None:
        """Run until cancelled. No controller writes anything before everything that it watches was listed."""
        first = [Task("queues", "")] if "queue" in self._settings.controllers else []
        await self.reconciling.run(self._look_at, first)

    def _part_of(self, task: Task) -> Part:
        return self._parts[CONTROLLER_OF[task.what]]

    def _drop(self, kind: Kind, key: str) -> None:
        self.view.drop(kind, key, self._clock())

    async def _look_at(self, task: Task) -> float:
        """Handle a task. Return in how many seconds it may be handled again. Raises: KubeError."""
        loop = self.reconciling
        requests = self.view.take_requests(task.key) if task.what == "job" else ()
        try:
            writes = await self._wanted(task, requests)
            await loop.writing.carry_out(writes)
        except BaseException:
            self.view.keep(task.key, requests)
            raise
        for write in writes:
            if isinstance(write, Wake):
                self.view.keep(task.key, write.requests)
                loop.queue.later(task, write.after_s)
            elif isinstance(write, Patch) and write.ref.kind == "Pod" and not write.subresource:
                self.view.assume(write.ref, write.merge)
            elif isinstance(write, Emit) and write.type == "Warning":
                loop.queue.later(task, AGAIN_S)  # if it still holds then, it is reported again
        return self._rest_s.pop(task, 0.0)

    async def _wanted(self, task: Task, requests: tuple[Request, ...]) -> list[Write]:
        match task.what:
            case "pod":
                return await self._for_pod(task.key)
            case "set":
                return self._for_set(task.key)
            case "job":
                return await self._ssh_keys.with_keys(partial(self._for_job, task.key, requests))
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
        owner = await self._owner_of(pod) if group is None else None  # its owner only says what to create
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
        """Return a pod's controlling owner, which says how large its gang is, if readable. Raises: KubeError."""
        for ref in meta(pod).get("ownerReferences") or ():
            kind = kind_of(str(ref.get("apiVersion")), str(ref.get("kind"))) if ref.get("controller") else None
            if kind is None:
                continue
            key = f"{meta(pod)['namespace']}/{ref['name']}"
            if kind not in LOOKED_UP:
                return self.view.find(kind, key)
            return await self.reconciling.read(kind, key)
        return None

    # -- jobs

    def _for_job(self, key: str, requests: tuple[Request, ...], new_keys: NewKeys) -> list[Write]:
        job = self.view.find(JOBS, key)
        if job is None:
            return []
        uid, namespace, name = meta(job).get("uid", ""), meta(job)["namespace"], meta(job)["name"]
        group = self.view.find(POD_GROUPS, f"{namespace}/{name}-{uid}") or self.view.find(POD_GROUPS, key)
        view = JobView(
            job,
            list(self.view.pods_of.get(uid, {}).values()),
            group,
            self.view.commands_to("Job", job),
            requests,
            self.view.namespace_queue(namespace),
        )
        names = self._settings.groups.scheduler_names
        began = time.perf_counter()
        writes = reconcile_job(view, self._clock(), self._specs, self.view.priorities(), names, new_keys=new_keys)
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
        for command in self.view.commands_to("Queue", queue):
            consumed, ordered = consume_command(command)
            writes += consumed
            action = ordered or action
        parent = self.view.find(QUEUES, str(part(queue, "spec").get("parent") or ""))
        return [*reconcile_queue(queue, len(groups), parent, action), *writes]

    def _count_groups(self, name: str, queue: Obj | None, groups: dict[str, Obj]) -> None:
        """Count PodGroups by phase, for metrics."""
        if self._metrics is None:
            return
        for phase, count in counts_by_phase(groups.values()).items():
            metric = f"queue_pod_group_{phase.lower()}_count"
            if queue is None:
                self._metrics.forget(metric, name)
            else:
                self._metrics.put(metric, count, name)
