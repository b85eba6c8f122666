"""Run the controllers while no other ones do the same work. Volcano's and KAI's own have precedence.

Whether Volcano's run is seen from the Lease by which its controller manager elects a leader; whether KAI's pod-grouper
does, from its Deployment, because it usually elects none.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from pumice.kube.api.client import Client
from pumice.kube.api.errors import ApiError, KubeError, clean
from pumice.kube.api.kinds import LEASES
from pumice.kube.api.retry_policy import RetryPolicy
from pumice.kube.controllers.kai_grouping import GroupingLoop
from pumice.kube.controllers.loop import ControlLoop, ControlSettings
from pumice.kube.controllers.owner_kinds import DEPLOYMENTS
from pumice.kube.informers.watch_failures import WatchFailures
from pumice.model.instants import epoch_of
from pumice.model.manifest.reading.fields import Obj
from pumice.runtime.controllers.kai.groups import GroupingSettings
from pumice.runtime.controllers.writes import part
from pumice.runtime.telemetry.metrics import Metrics

VOLCANO_LEASE = "volcano-system/vc-controller-manager"

_log = logging.getLogger("pumice.controllers")


class Deference(Struct, frozen=True):
    """When to give way. ``lease``: namespace/name; "": give way to no lease. ``slack_s``: how far clocks may differ.
    ``deployments``: namespace/name of those to which to give way while any of their pods is ready.

    ``again_s``: time until the next check if nothing could be seen. Our controllers go on without for ``blind_s``,
    because a server that was just started refuses at first what it allows later.
    """

    lease: str = VOLCANO_LEASE
    deployments: tuple[str, ...] = ()
    check_s: float = 15.0
    slack_s: float = 30.0
    again_s: float = 2.0
    blind_s: float = 60.0


#: The Deployment had another name before KAI had an operator.
FOR_KAI = Deference(lease="", deployments=("kai-scheduler/pod-grouper", "kai-scheduler/podgrouper"))
NEVER = Deference(lease="")


class _Unseen(Exception):
    """It is unknown whether other controllers run."""


class Controllers:
    """Runs the controllers. To be run on the leader only; cancel ``run`` to stop them. ``loop`` exists while they are
    on."""

    def __init__(
        self,
        client: Client,
        settings: ControlSettings | None = None,
        *,
        deference: Deference | None = None,
        metrics: Metrics | None = None,
        retry_policy: RetryPolicy | None = None,
        clock: Callable[[], float] = time.time,
        troubles: WatchFailures | None = None,
        grouping: GroupingSettings | None = None,
    ) -> None:
        """``grouping``: give KAI's pods their groups, instead of the work of Volcano's controllers."""
        self.loop: ControlLoop | GroupingLoop | None = None
        self._grouping = grouping
        self._client, self._metrics, self._retry_policy, self._clock = client, metrics, retry_policy, clock
        self._settings = settings or ControlSettings()
        self._deference = deference or Deference()
        self._logged = ""
        self._troubles = troubles or WatchFailures()

    async def run(self) -> None:
        """Run until cancelled."""
        if not self._settings.controllers:
            return
        names = ", ".join(self._settings.controllers)
        while True:
            pause = self._deference.check_s
            try:
                why = await self._why_not()
            except _Unseen as error:
                why, pause = f"cannot find out whether other controllers run: {error}", self._deference.again_s
            if why:
                self._say(f"controllers {names}: off: {why}")
                await asyncio.sleep(pause)
            else:
                self._say(f"controllers {names}: on")
                await self._run_until_another()

    async def _run_until_another(self) -> None:
        self.loop = self._new_loop()
        task = asyncio.create_task(self.loop.run())
        seen = time.monotonic()
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=self._deference.check_s)
                try:
                    if await self._why_not():
                        break
                    seen = time.monotonic()
                except _Unseen:
                    if time.monotonic() - seen > self._deference.blind_s:
                        break
        finally:
            self.loop = None
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def _new_loop(self) -> ControlLoop | GroupingLoop:
        if self._grouping is not None:
            return GroupingLoop(self._client, self._grouping, self._clock, self._retry_policy, self._troubles)
        return ControlLoop(self._client, self._settings, self._clock, self._metrics, self._retry_policy, self._troubles)

    async def _why_not(self) -> str:
        """Return why our controllers must be off, "" if they need not. Raises: _Unseen."""
        for key in self._deference.deployments:
            ready = part(await self._found(DEPLOYMENTS.path(key)), "status").get("readyReplicas")
            if isinstance(ready, int) and ready > 0:
                return f"KAI's own run (Deployment {key})"
        return self._held(await self._found(LEASES.path(self._deference.lease))) if self._deference.lease else ""

    async def _found(self, path: str) -> Obj:
        """Return an object, empty if it does not exist. Raises: _Unseen."""
        try:
            found: Obj = await self._client.get(path)
        except KubeError as error:
            if isinstance(error, ApiError) and error.status == 404:
                return {}
            raise _Unseen(str(error)) from None
        return found

    def _held(self, lease: Obj) -> str:
        """Return why a Lease keeps our controllers off, "" if it is not held."""
        spec = part(lease, "spec")
        renewed = epoch_of(str(spec.get("renewTime", "")))
        valid_s = spec.get("leaseDurationSeconds")
        if not spec.get("holderIdentity") or renewed is None:
            return ""
        ends = renewed + (valid_s if isinstance(valid_s, int) else 15) + self._deference.slack_s
        if self._clock() > ends:
            return ""
        return f"Volcano's own run (Lease {self._deference.lease}, held by {clean(str(spec['holderIdentity']), 100)})"

    def _say(self, text: str) -> None:
        """Log a change in one line."""
        if text != self._logged:
            _log.info("%s", text)
        self._logged = text
