"""Bind the volumes of a pod, or have them provisioned for its node, before it is bound.

Source: kube-scheduler VolumeBinding (PreBind).

What is written here is a request that a volume controller carries out. It is waited for a short while. If that is not
enough, the pod is given back: its claim then names the node, and the next cycle places it there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from pumice.kube.api.client import Client
from pumice.kube.api.errors import ApiError
from pumice.kube.api.kinds import VOLUME_CLAIMS, VOLUMES_KIND
from pumice.model.decisions import VOLUMES, Bind, VolumeGrant
from pumice.model.manifest.volumes import BIND_COMPLETED, SELECTED_NODE

#: Seconds before each look at a claim.
LOOKS_S = (0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 2.0, 2.0, 3.0)
#: Annotation of a claim for which a volume is being provisioned.
_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


class VolumeProblem(Exception):
    """A claim has no volume, or not the intended one."""


class VolumeBinding:
    """Binds volumes. ``looks_s``: seconds to wait before each look at a claim that is not bound yet."""

    name = "VolumeBinding"

    def __init__(self, client: Client, looks_s: tuple[float, ...] = LOOKS_S) -> None:
        self._client, self._looks_s = client, looks_s

    async def prepare(self, bind: Bind) -> Mapping[str, str] | None:
        """Bind the claims of a pod. Raises: VolumeProblem, KubeError; then everything is undone, except for claims that
        have got their volume."""
        done: list[VolumeGrant] = []
        try:
            for grant in _grants(bind):
                done.append(grant)
                await self._ask(grant)
            for grant in done:
                await self._wait(grant)
        except BaseException:
            await self._undo(done)
            raise
        return None

    def done(self, bind: Bind) -> None:
        """Nothing to do: what was written stays."""

    async def undo(self, bind: Bind) -> None:
        """Release volumes that were reserved for unbound claims, and nodes that were named for them."""
        await self._undo(list(_grants(bind)))

    async def _ask(self, grant: VolumeGrant) -> None:
        claim = await self._claim(grant)
        if _is_bound(claim):
            return
        if not grant.volume:
            await self._annotate(grant, claim, grant.node)
            return
        volume = await self._client.get(VOLUMES_KIND.path(grant.volume))
        owner = volume["spec"].get("claimRef")
        if owner is not None and not _is_of(owner, grant):
            raise VolumeProblem(f"volume {grant.volume} was given to another claim in the meantime")
        namespace, _, name = grant.claim.partition("/")
        reference = {
            **{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": name},
            "uid": claim["metadata"].get("uid", ""),
        }
        annotations = {**(volume["metadata"].get("annotations") or {}), _BY_CONTROLLER: "yes"}
        metadata = {**volume["metadata"], "annotations": annotations}
        wanted = {**volume, "metadata": metadata, "spec": {**volume["spec"], "claimRef": reference}}
        await self._client.put(VOLUMES_KIND.path(grant.volume), wanted)

    async def _claim(self, grant: VolumeGrant) -> dict[str, Any]:
        claim = cast(dict[str, Any], await self._client.get(VOLUME_CLAIMS.path(grant.claim)))
        if claim["metadata"].get("deletionTimestamp"):
            raise VolumeProblem(f"claim {grant.claim} is being deleted")
        if grant.uid and claim["metadata"].get("uid") != grant.uid:
            raise VolumeProblem(f"claim {grant.claim} is another one by now")
        return claim

    async def _annotate(self, grant: VolumeGrant, claim: dict[str, Any], node: str | None) -> None:
        metadata = {"annotations": {SELECTED_NODE: node}, "resourceVersion": claim["metadata"].get("resourceVersion")}
        await self._client.patch(VOLUME_CLAIMS.path(grant.claim), {"metadata": metadata})

    async def _wait(self, grant: VolumeGrant) -> None:
        for pause_s in (0.0, *self._looks_s):
            await asyncio.sleep(pause_s)
            claim = await self._claim(grant)
            if _is_bound(claim):
                return
            named = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
            if not grant.volume and named != grant.node:
                raise VolumeProblem(f"no volume could be made for claim {grant.claim} on node {grant.node}")
        raise VolumeProblem(f"claim {grant.claim} is not bound yet")

    async def _undo(self, grants: list[VolumeGrant]) -> None:
        for grant in reversed(grants):
            try:
                await self._undo_one(grant)
            except ApiError as error:
                if error.status not in (404, 409):  # gone, or changed by its controller
                    raise

    async def _undo_one(self, grant: VolumeGrant) -> None:
        claim: dict[str, Any] | None
        try:
            claim = await self._claim(grant)
        except VolumeProblem:
            claim = None
        except ApiError as error:
            if error.status != 404:
                raise
            claim = None
        if claim is not None and _is_bound(claim):
            return
        if grant.volume:
            volume = await self._client.get(VOLUMES_KIND.path(grant.volume))
            if _is_of(volume["spec"].get("claimRef") or {}, grant):
                spec = {key: value for key, value in volume["spec"].items() if key != "claimRef"}
                await self._client.put(VOLUMES_KIND.path(grant.volume), {**volume, "spec": spec})
        elif claim is not None:
            annotations = claim["metadata"].get("annotations") or {}
            if annotations.get(SELECTED_NODE) == grant.node and _PROVISIONER not in annotations:
                await self._annotate(grant, claim, None)  # otherwise it is being provisioned, for the next attempt


def _grants(bind: Bind) -> tuple[VolumeGrant, ...]:
    return cast(tuple[VolumeGrant, ...], bind.context.get(VOLUMES, ()))


def _is_bound(claim: Mapping[str, Any]) -> bool:
    annotations = claim["metadata"].get("annotations") or {}
    return bool(claim["spec"].get("volumeName")) and (
        BIND_COMPLETED in annotations or (claim.get("status") or {}).get("phase") == "Bound"
    )


def _is_of(owner: Mapping[str, Any], grant: VolumeGrant) -> bool:
    """Return True if a volume is reserved for the claim of a grant."""
    named = f"{owner.get('namespace')}/{owner.get('name')}" == grant.claim
    return named and (not grant.uid or owner.get("uid") in (None, "", grant.uid))
