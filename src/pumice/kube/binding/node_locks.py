"""Lock the node of a pod with shared cards before it is bound. By the lock, the node's device plugin knows which pod it
starts, and then releases it. Source: Volcano nodelock."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from pumice.kube.api.client import Client
from pumice.kube.api.errors import ApiError
from pumice.kube.api.kinds import NODES
from pumice.model.decisions import DEVICES, Bind
from pumice.model.devices.node_locks import LOCKED, is_locked
from pumice.model.devices.shared_devices import DeviceGrant
from pumice.model.manifest.reading.fields import Obj

#: Attempts to write a node that others write all the time.
_TRIES = 4


class NodeLockedError(Exception):
    """Another pod is being bound to the cards of the node."""


class NodeLocking:
    """Locks nodes. Remembers what it wrote for each pod that is being bound, so that no foreign lock is removed.
    ``clock``: seconds since the epoch, as used by device plugins and others that lock nodes."""

    name = "NodeLock"

    def __init__(self, client: Client, clock: Callable[[], float] = time.time) -> None:
        self._client, self._clock = client, clock
        self._written: dict[str, dict[str, str]] = {}  # by UID of the pod

    async def prepare(self, bind: Bind) -> Mapping[str, str] | None:
        """Lock the node of a pod. Raises: NodeLockedError, KubeError; then everything is undone."""
        given = bind.context.get(DEVICES)
        if isinstance(given, DeviceGrant) and given.locks:
            await self._lock(bind, given.locks)
        return None

    async def _lock(self, bind: Bind, locks: tuple[str, ...]) -> None:
        """Write all locks or none, and only if the node has not changed since it was read."""
        now = self._clock()
        # To the microsecond, so that a lock of ours differs from another of the same second.
        taken = dict.fromkeys(locks, datetime.fromtimestamp(now, UTC).isoformat().replace("+00:00", "Z"))
        for tried in range(_TRIES):
            metadata = (await self._client.get(NODES.path(bind.node)))["metadata"]
            there = metadata.get("annotations") or {}
            # A write that was not answered, and was repeated, may have been done.
            wanted = [lock for lock in locks if not tried or there.get(lock) != taken[lock]]
            if any(is_locked(there, lock, now) for lock in wanted):
                raise NodeLockedError(f"node {bind.node} {LOCKED}")
            try:
                if wanted:
                    await self._write(bind.node, metadata, taken)
            except ApiError as error:
                if error.status != 409 or tried == _TRIES - 1:
                    raise
                continue
            self._written[bind.uid] = taken
            return

    async def _write(self, node: str, metadata: Obj, annotations: Mapping[str, str | None]) -> None:
        """Write annotations only if the node has not changed since it was read. Raises: KubeError."""
        body = {"metadata": {"resourceVersion": metadata["resourceVersion"], "annotations": annotations}}
        await self._client.patch(NODES.path(node), body)

    def done(self, bind: Bind) -> None:
        """Forget the locks: the node's device plugin releases them."""
        self._written.pop(bind.uid, None)

    async def undo(self, bind: Bind) -> None:
        """Remove the locks that were written for this pod, if they are still there."""
        taken = self._written.pop(bind.uid, None)
        if not taken:
            return
        for left in reversed(range(_TRIES)):
            metadata = (await self._client.get(NODES.path(bind.node)))["metadata"]
            there = metadata.get("annotations") or {}
            ours: dict[str, None] = {lock: None for lock, written in taken.items() if there.get(lock) == written}
            if not ours:
                return
            try:
                await self._write(bind.node, metadata, ours)
                return
            except ApiError as error:
                if error.status != 409 or not left:
                    raise
