"""Leader election by a Lease: of all candidates, at most one leads.

No wall clock is trusted: a candidate measures, on its own monotonic clock, how long the record has not changed. A
leader counts from the time *before* it sent its last successful renewal, and stops before a candidate can begin.
Source: protocol and record of client-go's leader election, so that both can compete for the same Lease.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil
from typing import Any

from pumice.kube.api.client import ONCE, Client, decoded
from pumice.kube.api.errors import ApiError, KubeError
from pumice.kube.api.kinds import LEASES

_log = logging.getLogger("pumice.kube")
_LEASE_S_MAX = 3600.0  # a longer time in a record is not believed


@dataclass(slots=True)
class LeaseObservation:
    """The record as last read, and since when it has been the same. ``lease`` is empty if there is none."""

    clock: Callable[[], float]
    lease: dict[str, Any] = field(default_factory=dict)
    since: float = 0.0

    def see(self, lease: dict[str, Any]) -> None:
        """Note the record. Any change is a sign of life, whatever times it contains."""
        if not self.lease or _record(lease) != _record(self.lease):
            self.since = self.clock()
        self.lease = lease

    @property
    def holder(self) -> str:
        return str(_record(self.lease).get("holderIdentity") or "")

    def left_s(self, otherwise_s: float) -> float:
        """Return the seconds until the holder's time is over, 0 if the Lease is not held. ``otherwise_s``: if it does
        not say."""
        if not self.holder:
            return 0.0
        said = _record(self.lease).get("leaseDurationSeconds")
        believed = isinstance(said, int) and 0 < said <= _LEASE_S_MAX
        return max(0.0, self.since + (float(said) if believed else otherwise_s) - self.clock())  # type: ignore[arg-type]


class Election:
    """A candidate for the Lease ``namespace/name`` as ``identity``, which must be unique among candidates.

    ``lease_s``: how long others wait for a silent leader. ``renew_s``: how long a leader tries to renew before it gives
    up, less than ``lease_s``. ``retry_s``: between renewals; a candidate looks four times as often. ``leads`` and
    ``leader``: the present state. Its requests do not wait for the client's rate limit; it should have a client,
    preferably an event loop, that nothing large keeps busy.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        lease_s: float = 15.0,
        renew_s: float = 10.0,
        retry_s: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not 0 < retry_s < renew_s < lease_s:
            raise ValueError(
                f"wanted 0 < retry < renew < lease, found {retry_s:g}, {renew_s:g} and {lease_s:g} seconds"
            )
        self.identity = identity
        self.leads = False
        self._client, self._namespace, self._name = client, namespace, name
        self._lease_s, self._renew_s, self._retry_s, self._clock = lease_s, renew_s, retry_s, clock
        self._seen = LeaseObservation(clock)
        self._held = clock()  # time before the last successful renewal was sent

    @property
    def holds(self) -> bool:
        """True if no other candidate can lead now, by this clock. Asked right before each write: unlike ``leads``, this
        turns False by itself when the process was stopped for a while."""
        lost = self.leader not in ("", self.identity)
        return self.leads and not lost and self._clock() < self._held + self._lease_s

    @property
    def leader(self) -> str:
        """The holder of the Lease when it was last read, "" for none."""
        return self._seen.holder

    async def run(self, on_lead: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Wait for leadership, then run ``on_lead()`` until it ends, leadership is lost, or this is cancelled.

        If leadership is lost, ``on_lead`` is cancelled and should end before the Lease expires, when another candidate
        may lead. This returns after it has ended, however long that takes: the caller ends, or calls again, and never
        has the work of two terms. In the other cases, the Lease is released when
        ``on_lead`` has ended. Raises: what ``on_lead`` raises.
        """
        await self._acquire()
        self.leads = True
        _log.info("%s leads: Lease %s/%s", self.identity, self._namespace, self._name)
        work = asyncio.create_task(on_lead())
        renewing = asyncio.create_task(self._keep())
        try:
            await asyncio.wait((work, renewing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            lost = renewing.done()
            await self._end(work, renewing, lost)
        if work.done() and not work.cancelled():
            work.result()
        if not renewing.cancelled():
            renewing.result()  # raises an error of this program, if there was one

    async def _end(self, work: asyncio.Task[None], renewing: asyncio.Task[None], lost: bool) -> None:
        """End the work while the Lease is still renewed, unless it is lost; then release it."""
        work.cancel()
        await asyncio.wait((work,), timeout=max(self._held + self._lease_s - self._clock(), 0.0) if lost else None)
        self.leads = False
        if not work.done():
            _log.critical(
                "%s: its work has not ended although its Lease has expired: it writes nothing more", self.identity
            )
            await asyncio.wait((work,))
        renewing.cancel()
        await asyncio.wait((renewing,))
        if lost:
            why = f" to {self.leader}" if self.leader not in ("", self.identity) else ": not renewed in time"
            _log.error("%s has lost leadership%s", self.identity, why)
        else:
            await self._release()

    # -- the three moves -----------------------------------------------------------------------------------------------

    async def _acquire(self) -> None:
        """Look until the Lease is free, then take it. Obstacles are logged once: their end is that this leads."""
        said = False
        while True:
            began = self._clock()
            try:
                await self._look(self._renew_s)
                if self.leader in ("", self.identity) or not self._seen.left_s(self._lease_s):
                    await self._write(self.identity, self._renew_s)
                    self._held = began
                    return
            except KubeError as error:
                if not (isinstance(error, ApiError) and error.status == 409):
                    _log.log(_once(said), "%s cannot compete for the Lease: %s", self.identity, error)
                    said = True
            pause = self._retry_s / 4 * (0.5 + random.random())
            left_s = self._seen.left_s(self._lease_s)
            await asyncio.sleep(min(pause, left_s) if left_s else pause)

    async def _keep(self) -> None:
        """Renew; return when leadership is lost. Failure and recovery are logged once each."""
        said = False
        await asyncio.sleep(self._retry_s)
        while (left_s := self._held + self._renew_s - self._clock()) > 0:
            began = self._clock()
            try:
                async with asyncio.timeout(left_s):
                    if not self._seen.lease:
                        await self._look(left_s)
                    if self.leader != self.identity:
                        return
                    await self._write(self.identity, left_s)
                self._held = began
                if said:
                    _log.info("%s has renewed its leadership", self.identity)
                said = False
                await asyncio.sleep(self._retry_s)
            except (KubeError, TimeoutError) as error:
                why = str(error) or "no answer in time"
                _log.log(_once(said), "%s has not renewed its leadership: %s", self.identity, why)
                said = True
                self._seen.lease = {}  # the present record must be read before anything is written
                await asyncio.sleep(self._retry_s / 4)

    async def _release(self) -> None:
        """Let others begin at once."""
        try:
            await self._look(self._retry_s)
            if self.leader == self.identity:
                await self._write("", self._retry_s)
        except KubeError as error:
            _log.warning("%s could not give its leadership back: %s", self.identity, error)

    # -- the record ----------------------------------------------------------------------------------------------------

    async def _look(self, seconds: float) -> None:
        path = LEASES.path(f"{self._namespace}/{self._name}")
        try:
            self._seen.see(await self._client.get(path, retries=ONCE, timeout_s=seconds, urgent=True))
        except ApiError as error:
            if error.status != 404:
                raise
            self._seen.lease = {}

    async def _write(self, holder: str, seconds: float) -> None:
        """Replace the record that was read, and no other.

        Raises: ApiError 409 if another candidate was faster.
        """
        at = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        old = _record(self._seen.lease)
        same = old.get("holderIdentity") == holder
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": ceil(self._lease_s) if holder else 1,
            "acquireTime": old.get("acquireTime", at) if same else at,
            "renewTime": at,
            "leaseTransitions": int(old.get("leaseTransitions") or 0) + bool(holder and not same and old),
        }
        options: dict[str, Any] = {"timeout_s": seconds, "urgent": True, "retries": ONCE}
        if self._seen.lease:
            path = LEASES.path(f"{self._namespace}/{self._name}")
            lease = {**self._seen.lease, "spec": {**old, **spec}}
            self._seen.see(await self._client.put(path, lease, **options))
            return
        metadata = {"namespace": self._namespace, "name": self._name}
        body = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}
        path = LEASES.namespace_path(self._namespace)
        self._seen.see(decoded(await self._client.post(path, body, **options), f"POST {path}"))


def _once(said: bool) -> int:
    """Return the log level for something that is repeated until it is over."""
    return logging.DEBUG if said else logging.WARNING


def _record(lease: dict[str, Any]) -> dict[str, Any]:
    found = lease.get("spec")
    return found if isinstance(found, dict) else {}
