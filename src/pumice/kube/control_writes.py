"""Carries out what controllers want written, in order, and gives up at the first failure."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from pumice.kube.client import Client
from pumice.kube.control_kinds import kind_of
from pumice.kube.errors import ApiError, KubeError, clean
from pumice.kube.kinds import EVENTS, Kind
from pumice.model.manifest.fields import Obj
from pumice.runtime.controllers.writes import Create, Delete, Patch, Ref, Tell, Write, controller_uid, meta, stamp

_AT_ONCE = 16  # what an API server takes from one client without queueing
_TOLD_MAX = 10_000
_log = logging.getLogger("pumice.controllers")


class Taken(KubeError):
    """The name is that of somebody else's object."""


class Writing:
    """Creates and deletes that stand next to each other go side by side; everything else one after the other."""

    def __init__(self, client: Client, component: str = "pumice") -> None:
        self._client = client
        self._component = component
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._told: dict[tuple[str, str], str] = {}  # (uid, reason) -> message

    async def carry_out(self, writes: Sequence[Write], now: float) -> None:
        """Raises: KubeError; what stood before in order is done then, what stands behind is not."""
        for _, alike in groupby(writes, key=type):
            batch = list(alike)
            if isinstance(batch[0], Create | Delete):
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(self._one_of_many(write)) for write in batch]
                for error in filter(None, (task.result() for task in tasks)):
                    raise error
            else:
                for write in batch:
                    await self._one(write, now)

    async def _one_of_many(self, write: Write) -> KubeError | None:
        """Its failure is an answer, so that the others go on."""
        async with self._slots:
            try:
                await self._one(write, 0.0)
            except KubeError as error:
                return error
        return None

    async def _one(self, write: Write, now: float) -> None:
        match write:
            case Create(obj):
                await self._create(obj)
            case Patch():
                await self._patch(write)
            case Delete(ref):
                await self._delete(ref)
            case Tell():
                await self._tell(write, now)

    async def _create(self, obj: Obj) -> None:
        kind, metadata = _kind(obj["apiVersion"], obj["kind"]), meta(obj)
        path = kind.namespace_path(metadata["namespace"]) if kind.namespaced else kind.list_path
        try:
            await self._client.post(path, obj)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            there = await self._client.get(kind.path(_key(metadata.get("namespace", ""), metadata["name"])))
            if controller_uid(there) != controller_uid(obj):
                raise Taken(f"{kind.full_name} {metadata['name']} is there already and belongs to another") from None

    async def _patch(self, patch: Patch) -> None:
        body: dict[str, Any] = dict(patch.merge)
        if patch.ref.uid or patch.version:
            conditions = {"uid": patch.ref.uid, "resourceVersion": patch.version}
            body["metadata"] = {
                **body.get("metadata", {}),
                **{key: value for key, value in conditions.items() if value},
            }
        kind = _kind(patch.ref.api_version, patch.ref.kind)
        try:
            await self._client.patch(kind.path(_key(patch.ref.namespace, patch.ref.name), patch.subresource), body)
        except ApiError as error:
            if error.status != 404:
                raise
            _log.debug("%s: gone before it was written", error.what)

    async def _delete(self, ref: Ref) -> None:
        kind = _kind(ref.api_version, ref.kind)
        try:
            await self._client.delete(kind.path(_key(ref.namespace, ref.name)), uid=ref.uid)
        except ApiError as error:
            if error.status not in (404, 409):  # 409: another object of that name by now
                raise

    async def _tell(self, tell: Tell, now: float) -> None:
        """An event, unless it would say again what the last one of its reason said. None is worth a failure."""
        about, message = (tell.ref.uid or tell.ref.name, tell.reason), clean(tell.message, 1000)
        if self._told.get(about) == message:
            return
        if len(self._told) >= _TOLD_MAX:
            self._told.clear()
        self._told[about] = message
        try:
            await self._client.post(EVENTS.namespace_path(tell.ref.namespace or "default"), self._event(tell, now))
        except KubeError as error:
            _log.warning("an event about %s %s was not written: %s", tell.ref.kind, tell.ref.name, error)

    def _event(self, tell: Tell, now: float) -> Obj:
        ref = tell.ref
        involved = {"apiVersion": ref.api_version, "kind": ref.kind, "name": ref.name, "uid": ref.uid}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{ref.name[:200]}.", "namespace": ref.namespace or "default"},
            "involvedObject": involved | ({"namespace": ref.namespace} if ref.namespace else {}),
            "type": tell.type,
            "reason": tell.reason,
            "message": clean(tell.message, 1000),
            "source": {"component": self._component},
            "firstTimestamp": stamp(now),
            "lastTimestamp": stamp(now),
            "count": 1,
        }


def _kind(api_version: str, kind: str) -> Kind:
    found = kind_of(api_version, kind)
    assert found is not None, f"no controller writes {kind} of {api_version}"
    return found


def _key(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name
