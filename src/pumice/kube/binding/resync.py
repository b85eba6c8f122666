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
from pumice.kube.binding.in_flight import InFlightDecision
from pumice.kube.writers.work_queue import WorkQueue
from pumice.model.pod import Pod

_log = logging.getLogger("pumice.kube")

#: Handles a flight, given the present pod; None: it is gone, or has been replaced.
Decide = Callable[[InFlightDecision, Pod | None], Awaitable[None]]


class Resync:
    """Flights that failed, or whose outcome is unknown. ``pace`` limits the rate of reads."""

    def __init__(self, client: Client, codec: Codec, decide: Decide, pace: RateLimit, workers: int = 4) -> None:
        self._pace = pace
        self._client, self._codec, self._decide = client, codec, decide
        self.lane: WorkQueue[InFlightDecision] = WorkQueue("resync", self._settle, workers=workers, waiting_max=1 << 30)

    def put(self, flight: InFlightDecision) -> None:
        """Add a flight. On the event loop only. There are never more than accepted decisions."""
        self.lane.put_later(flight.key, flight, self._pace.delay(flight.decision.pod))

    async def _settle(self, flight: InFlightDecision) -> None:
        try:
            pod = await self._read(flight.decision.pod)
        except (KubeError, BadObject) as error:
            level = logging.DEBUG if flight.said else logging.WARNING
            _log.log(level, "pod %s: the result of a decision is not known yet: %s", flight.decision.pod, error)
            flight.said = True
            self.put(flight)
            return
        self._pace.forget(flight.decision.pod)
        try:
            await self._decide(flight, pod if pod is not None and pod.uid == flight.decision.uid else None)
        except Exception:  # the task must be given back in any case
            _log.exception("pod %s: a fault of this program", flight.decision.pod)
            self.put(flight)

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
