"""The scheduler of ``pumice serve --schedule``: that of ``pumice run``, in the server's process, over its HTTP API."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pumice.kube.access import Access
    from pumice.kube.live import Live
    from pumice.kube.reload import ConfFile
    from pumice.runtime.metrics import Metrics

LEASE = ("volcano-system", "volcano")  # of ``pumice run`` too: of several schedulers only one works
_IDENTITY = "pumice-serve"  # one a server, and it dies with it: the next one need not wait for a Lease of this name
_PERIOD_S, _PERIOD_MIN_S = 1.0, 0.1


async def schedule(access: Access, conf: ConfFile, metrics: Metrics, speed: float, stop: asyncio.Event) -> None:
    """Schedule until ``stop``: then the cycle is finished, what was decided is written, the Lease given back.

    ``speed``: cycles come as much closer together as pods are faster, at most ten a second. Leadership that is lost,
    as after a machine has slept, is stood for again. Raises: KubeError.
    """
    from pumice.kube.client import Client
    from pumice.kube.controlling import Controllers
    from pumice.kube.lease import Election
    from pumice.kube.live import Live, Settings

    period_s = min(max(_PERIOD_S / speed, _PERIOD_MIN_S), _PERIOD_S)
    async with Client(access) as client, Client(access) as aside:
        live = Live(
            client,
            conf,
            Settings(period_s=period_s, lease_namespace=LEASE[0]),
            metrics,
            election=Election(aside, *LEASE, _IDENTITY),
            beside=Controllers(client, metrics=metrics).run,
        )
        stopping = asyncio.create_task(_stopped(stop, live))
        try:
            await live.run()
        finally:
            stopping.cancel()


async def _stopped(stop: asyncio.Event, live: Live) -> None:
    await stop.wait()
    live.stop()
