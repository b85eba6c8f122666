"""If the outcome of a decision is unknown, the pod is read again, as often as necessary, and its state decides.

Source: Volcano's resync queue of failed tasks.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from pumice.kube.api.client import Client
from pumice.kube.api.codec import BadObject, Codec
from pumice.kube.api.errors import ApiError, KubeError
from pumice.kube.api.kinds import PODS
from pumice.kube.api.rate_limit import RateLimit
from pumice.kube.writers.work_queue import WorkQueue
from pumice.model.pod import Pod
from pumice.runtime.in_flight import InFlightDecision

_log = logging.getLogger("pumice.kube")

#: Handles a decision in flight, given the present pod; None: it is gone, or has been replaced.
Decide = Callable[[InFlightDecision, Pod | None], Awaitable[None]]


class Resync:
    """Reads the pods of decisions that failed, or whose outcome is unknown. ``rate_limit`` limits the rate of reads."""

    def __init__(self, client: Client, codec: Codec, decide: Decide, rate_limit: RateLimit, workers: int = 4) -> None:
        self._rate_limit = rate_limit
        self._client, self._codec, self._decide = client, codec, decide
        self.work_queue: WorkQueue[InFlightDecision] = WorkQueue(
            "resync", self._settle, workers=workers, waiting_max=1 << 30
        )

    def put(self, entry: InFlightDecision) -> None:
        """Add a decision. On the event loop only. There are never more than accepted decisions."""
        self.work_queue.put_later(entry.key, entry, self._rate_limit.delay(entry.decision.pod))

    async def _settle(self, entry: InFlightDecision) -> None:
        try:
            pod = await self._read(entry.decision.pod)
        except (KubeError, BadObject) as error:
            level = logging.DEBUG if entry.is_reported else logging.WARNING
            _log.log(level, "pod %s: the result of a decision is not known yet: %s", entry.decision.pod, error)
            entry.is_reported = True
            self.put(entry)
            return
        self._rate_limit.forget(entry.decision.pod)
        try:
            await self._decide(entry, pod if pod is not None and pod.uid == entry.decision.uid else None)
        except Exception:  # the task must be given back in any case
            _log.exception("pod %s: a fault of this program", entry.decision.pod)
            self.put(entry)

    async def _read(self, key: str) -> Pod | None:
        try:
            raw = await self._client.request("GET", PODS.path(key))
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        pod = self._codec.read(raw).value
        assert isinstance(pod, Pod)
        return pod
