"""Evict pods: write a condition, emit an event, and delete the pod.

Source: Volcano, which deletes without regard to disruption budgets. With ``use_eviction`` the eviction API is used,
which respects them; what a budget forbids is given back.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from pumice.kube.api.client import FOR_REPEATABLE, ONCE, STRATEGIC_PATCH, Client
from pumice.kube.api.errors import ApiError, KubeError
from pumice.kube.api.kinds import PODS
from pumice.kube.informers.informer_cache import InformerCache
from pumice.kube.writers.event_recorder import EventRecorder, about_group, about_pod
from pumice.model.decisions import Evict
from pumice.model.instants import stamp
from pumice.model.pod import ENDED, Pod
from pumice.runtime.in_flight import InFlightDecision, InFlightDecisions, has_come_true

_log = logging.getLogger("pumice.kube")


class Evictor:
    """Carries out evictions, each as often as necessary: every step can be repeated."""

    def __init__(
        self,
        client: Client,
        cache: InformerCache,
        in_flight: InFlightDecisions,
        recorder: EventRecorder,
        scheduler: str,
        *,
        use_eviction: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._client, self._cache, self._in_flight, self._recorder = client, cache, in_flight, recorder
        self._scheduler, self._use_eviction, self._now = scheduler, use_eviction, now

    async def send(self, entry: InFlightDecision) -> bool:
        """Evict. Return False if it failed, or if that is unknown; then read the pod and ``settle``."""
        evict = _evict_of(entry)
        if not self._in_flight.has(entry):
            return True
        try:
            if not self._use_eviction:
                await self._mark(evict)
            await self._remove(evict)
        except ApiError as error:
            if error.status == 404:
                self._cache.apply_end(evict.pod, evict.uid)
                return True
            entry.why = str(error)
        except KubeError as error:
            entry.why = str(error)
        else:
            self._in_flight.accept(entry)
            self._say(evict)
            return True
        _log.warning("pod %s: not evicted: %s", evict.pod, entry.why)
        return False

    async def settle(self, entry: InFlightDecision, pod: Pod | None) -> bool:
        """Handle a decision with an unknown outcome. ``pod``: its present state, None if gone or replaced.

        Return True if the task must be given back.
        """
        evict, flew = _evict_of(entry), self._in_flight.end(entry)
        if pod is None:
            self._cache.apply_end(evict.pod, evict.uid)
        elif has_come_true(evict, pod):
            self._cache.apply_read(pod)
        else:
            return flew
        return False

    def _say(self, evict: Evict) -> None:
        self._recorder.record(about_pod(evict), "Warning", "Evict", f"Pod is evicted, because of {evict.reason}")
        group = self._cache.groups.get(evict.job)
        if group is not None:
            self._recorder.record(about_group(group), "Normal", "Evict", evict.reason)

    async def _mark(self, evict: Evict) -> None:
        """Write on the pod why it is evicted: its owner may then not count it as a failure."""
        at = stamp(self._now())
        why = f"{self._scheduler}: preempting to accommodate a higher priority pod"
        conditions = [
            {"type": "Ready", "status": "False", "reason": "Evict", "lastTransitionTime": at},
            {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "PreemptionByScheduler",
                "message": why,
                "lastTransitionTime": at,
            },
        ]
        body = {"metadata": {"uid": evict.uid}, "status": {"conditions": conditions}}
        path = PODS.path(evict.pod, "status")
        await self._client.patch(path, body, content_type=STRATEGIC_PATCH, retries=FOR_REPEATABLE)

    async def _remove(self, evict: Evict) -> None:
        if not self._use_eviction:
            await self._client.delete(PODS.path(evict.pod), uid=evict.uid)
            return
        namespace, _, name = evict.pod.partition("/")
        body: dict[str, Any] = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": namespace, "name": name},
            "deleteOptions": {"preconditions": {"uid": evict.uid}},
        }
        await self._client.post(PODS.path(evict.pod, "eviction"), body, retries=ONCE)


def eviction_of_group(cache: InformerCache, in_flight: InFlightDecisions, job: str) -> str:
    """Return why all pods of a PodGroup of Kubernetes' own that hold nodes are evicted, "" if one stays, or if the
    PodGroup has no status."""
    group = cache.groups.get(job)
    if group is None or group.native is None or not group.native.has_object or in_flight.binds_of(job):
        return ""
    found = ""
    for key in sorted(cache.placed_of(job)):
        pod, entry = cache.pods.get(key), in_flight.of(key)
        if pod is None or pod.phase in ENDED:
            continue
        if entry is None or not isinstance(entry.decision, Evict):
            return ""
        found = entry.decision.reason
    return found


def _evict_of(entry: InFlightDecision) -> Evict:
    assert isinstance(entry.decision, Evict)
    return entry.decision
