"""Remove Volcano's queue gate, and no other gate, from pods."""

from __future__ import annotations

import time
from collections.abc import Callable

from pumice.kube.api.client import FOR_REPEATABLE, STRATEGIC_PATCH, Client
from pumice.kube.api.errors import ApiError, KubeError
from pumice.kube.api.kinds import PODS
from pumice.kube.informers.informer_cache import InformerCache
from pumice.kube.writers.pending_writes import PendingWrites
from pumice.kube.writers.refused_writes import RefusedWrites
from pumice.kube.writers.work_queue import WorkQueue
from pumice.model.decisions import GateRemoval
from pumice.model.pod import QUEUE_GATE


class Gates:
    """Removes gates, each once. ``keep_s``: when to try again if no event showed the pod without its gate.

    Source: Volcano, which deletes the one gate by a strategic merge patch.
    """

    def __init__(
        self,
        client: Client,
        cache: InformerCache,
        keep_s: float,
        workers: int,
        waiting_max: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._cache = client, cache
        self.work_queue: WorkQueue[GateRemoval] = WorkQueue(
            "gates", self._take_off, workers=workers, waiting_max=waiting_max
        )
        self._sent = PendingWrites(keep_s, clock)
        self._refusals = RefusedWrites("scheduling gate of pod", clock)

    def put(self, removal: GateRemoval) -> None:
        """Remove a gate, from any thread. If the queue is full, a later cycle requests it again. A pod without its gate
        is news, although it is our own doing."""
        if self._begin(removal) and not self.work_queue.put(removal.pod, removal):
            self._sent.failed(removal.pod, removal)

    def _begin(self, removal: GateRemoval) -> bool:
        """Return True if the gate must be removed: the pod has it, and it is not under way."""
        pod = self._cache.pods.get(removal.pod)
        if pod is None or pod.uid != removal.uid or QUEUE_GATE not in pod.gates:
            return False
        return not self._refusals.holds_back(removal.pod) and self._sent.begin(removal.pod, removal)

    def gone(self, pod: str) -> None:
        """Note that a pod no longer exists."""
        self._sent.gone(pod)
        self._refusals.gone(pod)

    async def _take_off(self, removal: GateRemoval) -> None:
        """Write the removal. If it fails, a later cycle requests it again."""
        gates = [{"$patch": "delete", "name": QUEUE_GATE}]
        body = {"metadata": {"uid": removal.uid}, "spec": {"schedulingGates": gates}}
        try:
            await self._client.patch(PODS.path(removal.pod), body, content_type=STRATEGIC_PATCH, retries=FOR_REPEATABLE)
        except KubeError as error:
            self._sent.failed(removal.pod, removal)
            if not (isinstance(error, ApiError) and error.status in (404, 409)):
                self._refusals.refused(removal.pod, error)
            return
        self._refusals.written(removal.pod)
