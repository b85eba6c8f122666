"""Conditions that a scheduler writes on pods, as differences from the present ones.

Source: Volcano, pod conditions: when they are written, and that nominations are not removed here.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from pumice.kube.api.backoff import TokenBucket
from pumice.kube.api.client import ONCE, STRATEGIC_PATCH, Client
from pumice.kube.api.errors import ApiError, KubeError
from pumice.kube.api.kinds import PODS
from pumice.kube.informers.informer_cache import InformerCache
from pumice.kube.writers.event_recorder import EventRecorder, about_pod
from pumice.kube.writers.pending_writes import PendingWrites, version_of
from pumice.kube.writers.refused_writes import RefusedWrites
from pumice.model.decisions import PodNotice
from pumice.model.instants import stamp
from pumice.model.pod import Pod, PodCondition

SCHEDULED, SCHEDULER_ERROR = "PodScheduled", "SchedulerError"


def difference(pod: Pod, notice: PodNotice) -> dict[str, Any]:
    """Return what to merge into a waiting pod's status (strategic merge), empty if it has everything.

    ``lastTransitionTime`` is absent if the condition keeps its status, and None if it has to be the present time.
    """
    status: dict[str, Any] = {}
    present = next((c for c in pod.conditions if c.type == SCHEDULED), None)
    wanted: dict[str, Any] = {"type": SCHEDULED, "status": "False", "reason": notice.reason, "message": notice.message}
    if present is None or _words(present) != ("False", notice.reason, notice.message):
        if present is None or present.status != "False":
            wanted["lastTransitionTime"] = None
        status["conditions"] = [wanted]
    if notice.nominated_node not in ("", pod.nominated_node):
        status["nominatedNodeName"] = notice.nominated_node
    return status


def _words(condition: PodCondition) -> tuple[str, str, str]:
    return condition.status, condition.reason, condition.message


class PodStatuses:
    """Writes on pods why they wait. A pod that has changed meanwhile is skipped: the next cycle looks at it again.

    ``room``: awaited before each write of a notice, because binds go first.
    """

    def __init__(
        self,
        client: Client,
        cache: InformerCache,
        recorder: EventRecorder,
        sent: PendingWrites,
        room: Callable[[], Awaitable[None]],
        *,
        now: Callable[[], float] = time.time,
        rate: float = 200.0,
    ) -> None:
        self._client, self._cache, self._recorder, self._sent, self._room, self._now = (
            client,
            cache,
            recorder,
            sent,
            room,
            now,
        )
        self._bucket = TokenBucket(rate, rate)
        self._refusals = RefusedWrites("condition of pod")

    def begin(self, notice: PodNotice) -> bool:
        """Return True if the notice must be written: it says something new, and is not under way."""
        pod = self._cache.pods.get(notice.pod)
        if pod is None or pod.uid != notice.uid or pod.node_name or self._refusals.holds_back(notice.pod):
            return False
        return bool(difference(pod, notice)) and self._sent.begin(notice.pod, notice)

    def gone(self, pod: str) -> None:
        """Note that a pod no longer exists."""
        self._sent.gone(pod)
        self._refusals.gone(pod)

    def nominates(self, notice: PodNotice) -> bool:
        """Return True if the notice nominates the pod to a node to which it is not nominated yet."""
        pod = self._cache.pods.get(notice.pod)
        return pod is not None and notice.nominated_node not in ("", pod.nominated_node)

    async def write(self, notice: PodNotice) -> None:
        """Write a notice and emit an event, unless the pod has changed, or another notice was written."""
        await self._room()
        await self._bucket.take()
        await self.write_at_once(notice)

    async def write_at_once(self, notice: PodNotice) -> None:
        """Write a notice without waiting."""
        if not self._sent.is_newest(notice.pod, notice):
            return
        pod = self._cache.pods.get(notice.pod)
        if pod is None or pod.uid != notice.uid or pod.node_name or not await self.say(pod, notice):
            self._sent.failed(notice.pod, notice)

    async def say(self, pod: Pod, notice: PodNotice) -> bool:
        """Write what the pod, as it was read, does not say yet. Return False if it was not written."""
        status = difference(pod, notice)
        if not status:
            return True
        for condition in status.get("conditions", ()):
            if "lastTransitionTime" in condition:
                condition["lastTransitionTime"] = stamp(self._now())
        self._recorder.record(about_pod(pod), "Warning", "FailedScheduling", notice.message)
        body = {"metadata": {"uid": pod.uid, "resourceVersion": pod.resource_version}, "status": status}
        return await self._patch(pod, body, notice)

    async def _patch(self, pod: Pod, body: dict[str, Any], notice: PodNotice) -> bool:
        path = PODS.path(pod.key, "status")
        try:
            raw = await self._client.patch(path, body, content_type=STRATEGIC_PATCH, retries=ONCE)
        except KubeError as error:
            if not (isinstance(error, ApiError) and error.status in (404, 409)):
                self._refusals.refused(pod.key, error)
            return False
        self._refusals.written(pod.key)
        known = self._cache.pods.get(pod.key)
        self._sent.done(pod.key, notice, version_of(raw), known.resource_version if known is not None else "")
        return True
