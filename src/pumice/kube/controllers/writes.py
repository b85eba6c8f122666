"""Carry out the writes of controllers in order, and stop at the first failure.

An object that cannot be created is reported on the object that it is for: users have nothing else to look at.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from pumice.kube.api.client import Client
from pumice.kube.api.errors import ApiError, KubeError
from pumice.kube.api.kinds import Kind
from pumice.kube.controllers.kinds import SECRETS, kind_of
from pumice.model.manifest.reading.fields import Obj
from pumice.runtime.controllers.writes import (
    Create,
    Delete,
    Emit,
    Patch,
    Ref,
    Write,
    controller_of,
    controller_uid,
    meta,
)

#: Objects that plugins of a job create beside its pods.
_HELPERS = frozenset({"ConfigMap", "NetworkPolicy", "Secret", "Service"})
_AT_ONCE = 16  # what an API server takes from one client without queueing
_log = logging.getLogger("pumice.controllers")


class NameConflict(KubeError):
    """The name belongs to a foreign object."""


class Writing:
    """Carries out writes. Adjacent creates and deletes run in parallel; all others run one after the other."""

    def __init__(self, client: Client, emit: Callable[[Ref, str, str, str], None]) -> None:
        """``emit``: emits an event, given object, type, reason and message."""
        self._client, self._emit = client, emit
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def carry_out(self, writes: Sequence[Write]) -> None:
        """Carry out writes.

        Raises: KubeError; then earlier writes are done, and later ones are not. If only helper objects could not be
        created, later statuses are written all the same.
        """
        done = 0
        for _, equal in groupby(writes, key=type):
            batch = list(equal)
            done += len(batch)
            if isinstance(batch[0], Create | Delete):
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(self._one_of_many(write)) for write in batch]
                failed = [(write, error) for write, task in zip(batch, tasks, strict=True) if (error := task.result())]
                if failed:
                    self._emit_failures(failed)
                    if all(isinstance(write, Create) and write.obj["kind"] in _HELPERS for write, _ in failed):
                        for write in writes[done:]:
                            if isinstance(write, Patch) and write.subresource == "status":
                                await self._one(write)
                    raise failed[0][1]
            else:
                for write in batch:
                    await self._one(write)

    async def _one_of_many(self, write: Write) -> KubeError | None:
        """Carry out a write. A failure is returned, so that others go on."""
        async with self._slots:
            try:
                await self._one(write)
            except KubeError as error:
                return error
        return None

    async def _one(self, write: Write) -> None:
        match write:
            case Create(obj):
                await self._create(obj)
            case Patch():
                await self._patch(write)
            case Delete(ref):
                await self._delete(ref)
            case Emit(ref, kind, reason, message):
                self._emit(ref, kind, reason, message)

    def _emit_failures(self, failed: Sequence[tuple[Write, KubeError]]) -> None:
        """Report failures on the owner of the first one: the others usually say the same."""
        write, error = failed[0]
        owner = controller_of(write.obj) if isinstance(write, Create) else None
        if owner is None or not isinstance(write, Create):
            return
        if not isinstance(error, ApiError | NameConflict) or (isinstance(error, ApiError) and error.namespace_goes):
            return
        why = error.message if isinstance(error, ApiError) else str(error)
        others = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        self._emit(owner, "Warning", "FailedCreate", f"Error creating {write.obj['kind']}: {why}{others}")

    async def _create(self, obj: Obj) -> None:
        kind, metadata = _kind(obj["apiVersion"], obj["kind"]), meta(obj)
        path = kind.namespace_path(metadata["namespace"]) if kind.namespaced else kind.list_path
        try:
            await self._client.post(path, obj)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            if kind is SECRETS:  # its name contains its owner's UID, and we may not read secrets
                return
            there = await self._client.get(kind.path(_key(metadata.get("namespace", ""), metadata["name"])))
            if _owner_uids(there) != _owner_uids(obj):
                raise NameConflict(
                    f"{kind.full_name} {metadata['name']} is there already and belongs to another"
                ) from None

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
            if error.status not in (404, 409):  # 409: it has been replaced
                raise


def _owner_uids(obj: Obj) -> set[str]:
    """Return the UIDs of an object's controller, or of its owners if none controls it."""
    uid = controller_uid(obj)
    return {uid} if uid else {str(owner.get("uid", "")) for owner in meta(obj).get("ownerReferences") or ()}


def _kind(api_version: str, kind: str) -> Kind:
    found = kind_of(api_version, kind)
    assert found is not None, f"no controller writes {kind} of {api_version}"
    return found


def _key(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name
