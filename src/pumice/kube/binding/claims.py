"""Write allocations and users to the claims of a pod before it is bound. Source: kube-scheduler DynamicResources
(PreBind, Unreserve)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, cast
from weakref import WeakValueDictionary

from pumice.kube.api.client import Client
from pumice.kube.api.encode_claims import allocation_object, extended_allocation_object
from pumice.kube.api.errors import ApiError
from pumice.kube.api.kinds import PODS, RESOURCE_CLAIMS, native_pod_groups
from pumice.kube.binding.extended_claims import claim_of, is_unmade, make_claim, mappings_of, remove_claim, write_to_pod
from pumice.model.decisions import CLAIMS, Bind, ClaimGrant
from pumice.model.devices.claims import CLAIM_FINALIZER, CLAIM_USERS_MAX, Allocation, ResourceClaim
from pumice.model.manifest import Decoder, ManifestError
from pumice.model.workloads.native_group import NATIVE_GROUP, GroupRef

#: Attempts to write a claim that others write all the time.
_TRIES = 4

Claim = dict[str, Any]


class ClaimProblem(Exception):
    """A claim has changed since the decision about it."""


class ClaimBinding:
    """Writes claims. Keeps no state: what it did to a claim can be read from the claim."""

    name = "DynamicResources"

    def __init__(self, client: Client) -> None:
        self._client = client
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # for pods that share a claim

    async def prepare(self, bind: Bind) -> Mapping[str, str] | None:
        """Write the pod's claims. Raises: ClaimProblem, KubeError; then everything is undone."""
        done: list[tuple[ClaimGrant, str]] = []
        try:
            for grant in _grants(bind):
                if grant.extended is not None and is_unmade(grant.claim):
                    key = await make_claim(self._client, bind, grant.extended)
                else:
                    key = await self._key(bind, grant)
                done.append((grant, key))
                await self._write(key, partial(_reserved, bind, grant))
                # After the claim has its devices: the kubelet goes by what the pod says.
                if grant.extended is not None:
                    await write_to_pod(self._client, bind, key, grant.extended)
        except BaseException:
            await self._undo(bind, done)
            raise
        return None

    def done(self, bind: Bind) -> None:
        """Nothing to do: what was written stays."""

    async def undo(self, bind: Bind) -> None:
        """Remove the pod from its claims. A claim without other users loses what it was given for this pod."""
        found = []
        for grant in _grants(bind):
            try:
                found.append((grant, await self._key(bind, grant)))
            except (ClaimProblem, ApiError) as error:
                if isinstance(error, ApiError) and error.status != 404:
                    raise
        await self._undo(bind, found)

    async def _undo(self, bind: Bind, done: list[tuple[ClaimGrant, str]]) -> None:
        """Release claims, each also if another could not be. Raises: KubeError, the first of them."""
        failed: list[Exception] = []
        for grant, key in reversed(done):
            try:
                await self._release(bind, grant, key)
            except ClaimProblem:
                continue  # it no longer exists
            except Exception as error:
                # What stays reserved for a pod that is not bound holds its devices until the pod is gone.
                if not isinstance(error, ApiError) or error.status != HTTPStatus.NOT_FOUND:
                    failed.append(error)
        if failed:
            raise failed[0]

    async def _release(self, bind: Bind, grant: ClaimGrant, key: str) -> None:
        """Remove the pod from a claim, or a claim that was made for it."""
        # Made for this bind alone, so nothing is left to release.
        if grant.extended is not None:
            await remove_claim(self._client, key)
        # One of a group is reserved for the group, of which other pods may be bound with it.
        elif grant.group is None:
            await self._write(key, partial(_released, bind, grant))

    async def _key(self, bind: Bind, grant: ClaimGrant) -> str:
        """Return the key of the claim itself. A claim that is made for a pod is named in the pod's status."""
        namespace, name, *place = grant.claim.split("/")
        if not place:
            return grant.claim
        if grant.group is not None:
            return await self._key_of_group(namespace, grant.group, place[-1])
        pod = await self._client.get(PODS.path(bind.pod))
        if is_unmade(grant.claim):
            made = claim_of(pod)
            if not made:
                raise ClaimProblem(f"pod {bind.pod} names no claim for its extended resources")
            return f"{namespace}/{made}"
        claims = _claims_of(pod)
        own, found = claims[int(place[0])] if int(place[0]) < len(claims) else ("", "")
        if not found:
            raise ClaimProblem(f"the claim {own!r} of pod {namespace}/{name} does not exist yet")
        return f"{namespace}/{found}"

    async def _key_of_group(self, namespace: str, group: GroupRef, entry: str) -> str:
        """Return the key of a claim that is made for a PodGroup, which its status names."""
        try:
            found = await self._client.get(native_pod_groups(group.api_version).path(f"{namespace}/{group.name}"))
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            raise ClaimProblem(f"PodGroup {namespace}/{group.name} does not exist") from None
        for each in (found.get("status") or {}).get("resourceClaimStatuses") or []:
            if each.get("name") == entry and each.get("resourceClaimName"):
                return f"{namespace}/{each['resourceClaimName']}"
        raise ClaimProblem(f"the claim {entry!r} of PodGroup {namespace}/{group.name} does not exist yet")

    async def _write(self, key: str, change: Callable[[Claim], Claim | None]) -> None:
        """Read a claim, change it, and write it if it has not been written meanwhile; otherwise try again."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            for left in reversed(range(_TRIES)):
                claim = await self._client.get(RESOURCE_CLAIMS.path(key))
                try:
                    return await self._write_once(key, claim, change(claim))
                except ApiError as error:
                    if error.status != 409 or not left:
                        raise

    async def _write_once(self, key: str, claim: Claim, wanted: Claim | None) -> None:
        if wanted is None:
            return
        kept = list(claim["metadata"].get("finalizers") or ())
        gives = "allocation" in wanted["status"]
        if gives and CLAIM_FINALIZER not in kept:
            metadata = {**claim["metadata"], "finalizers": [*kept, CLAIM_FINALIZER]}
            claim = await self._client.put(RESOURCE_CLAIMS.path(key), {**claim, "metadata": metadata})
        written = await self._client.put(RESOURCE_CLAIMS.path(key, "status"), {**claim, "status": wanted["status"]})
        if not gives and CLAIM_FINALIZER in kept:
            left = {**written["metadata"], "finalizers": [each for each in kept if each != CLAIM_FINALIZER]}
            await self._client.put(RESOURCE_CLAIMS.path(key), {**written, "metadata": left})


def _claims_of(pod: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the claims of a pod as (name in its spec, name of the claim, "" while it does not exist)."""
    made = {each.get("name"): each for each in (pod.get("status") or {}).get("resourceClaimStatuses") or []}
    asked = (pod.get("spec") or {}).get("resourceClaims") or []
    each = [(claim["name"], claim.get("resourceClaimName")) for claim in asked]
    return [(own, name or (made.get(own) or {}).get("resourceClaimName") or "") for own, name in each]


async def extended_to_be_given(client: Client, bind: Bind) -> str:
    """Return ``extendedResourceClaimAllocation`` of a BindRequest as JSON, "" if the pod needs no such claim. Raises:
    KubeError."""
    for grant in _grants(bind):
        if grant.extended is not None and grant.allocation is not None:
            pod = await client.get(PODS.path(bind.pod))
            return json.dumps(
                extended_allocation_object(grant.allocation, grant.extended, mappings_of(pod, grant.extended), bind.uid)
            )
    return ""


async def claims_to_be_given(client: Client, bind: Bind) -> tuple[tuple[str, Allocation], ...]:
    """Return what each claim of the pod has when it is bound, by its name in the pod's spec: what was decided, or what
    it already had. Raises: ClaimProblem, KubeError."""
    grants = {grant.claim: grant for grant in _grants(bind) if grant.extended is None}
    if not grants:
        return ()
    found: list[tuple[str, Allocation]] = []
    namespace = bind.pod.partition("/")[0]
    for i, (own, name) in enumerate(_claims_of(await client.get(PODS.path(bind.pod)))):
        grant = grants.get(f"{namespace}/{name}") or grants.get(f"{bind.pod}/{i}")
        if grant is None:
            raise ClaimProblem(f"the claim {own!r} of pod {bind.pod} is another one than was decided about")
        found.append((own, grant.allocation or await _given_before(client, f"{namespace}/{name}")))
    return tuple(found)


async def _given_before(client: Client, key: str) -> Allocation:
    found = await client.get(RESOURCE_CLAIMS.path(key))
    try:
        claim = Decoder().decode(found)
    except ManifestError as error:
        raise ClaimProblem(f"claim {key} cannot be read: {error}") from error
    if not isinstance(claim, ResourceClaim) or claim.allocation is None:
        raise ClaimProblem(f"claim {key} has lost its devices")
    return claim.allocation


def _grants(bind: Bind) -> tuple[ClaimGrant, ...]:
    return cast(tuple[ClaimGrant, ...], bind.context.get(CLAIMS, ()))


def _reserved(bind: Bind, grant: ClaimGrant, claim: Claim) -> Claim | None:
    """Return the claim with its allocation and the pod among its users, or None if it has these already."""
    metadata, status = claim["metadata"], claim.get("status") or {}
    if metadata.get("deletionTimestamp"):
        raise ClaimProblem(f"claim {grant.claim} is being deleted")
    given, users = status.get("allocation"), list(status.get("reservedFor") or ())
    if given is None and grant.allocation is None:
        raise ClaimProblem(f"claim {grant.claim} has lost its devices")
    if given is not None and grant.allocation is not None and not _is(given, grant.allocation):
        raise ClaimProblem(f"claim {grant.claim} was given other devices in the meantime")
    user = {"resource": "pods", "name": bind.pod.partition("/")[2], "uid": bind.uid}
    if grant.group is not None:
        about = {"name": grant.group.name, "uid": grant.group.uid}
        user = {"apiGroup": NATIVE_GROUP, "resource": "podgroups", **about}
    if any(each.get("uid") == user["uid"] for each in users) and given is not None:
        return None
    if len(users) >= CLAIM_USERS_MAX:
        raise ClaimProblem(f"claim {grant.claim} has as many users as it may have")
    if given is None and grant.allocation is not None:
        given = allocation_object(grant.allocation, f"{grant.claim}/{bind.uid}")
    users.append(user)
    return {**claim, "status": {**status, "allocation": given, "reservedFor": users}}


def _released(bind: Bind, grant: ClaimGrant, claim: Claim) -> Claim | None:
    """Return the claim without the pod, or None if it does not name the pod."""
    status = dict(claim.get("status") or {})
    users = list(status.get("reservedFor") or ())
    others = [user for user in users if user.get("uid") != bind.uid]
    if len(others) == len(users):
        return None
    status["reservedFor"] = others
    if not others:
        del status["reservedFor"]
        if grant.allocation is not None and _is(status.get("allocation") or {}, grant.allocation):
            del status["allocation"]
    return {**claim, "status": status}


def _is(given: Mapping[str, Any], allocation: Allocation) -> bool:
    """Return True if an allocation has exactly these devices."""
    results = (given.get("devices") or {}).get("results") or ()
    found = {tuple(each.get(key) for key in ("request", "driver", "pool", "device")) for each in results}
    return found == {(each.request, each.driver, each.pool, each.device) for each in allocation.devices}
