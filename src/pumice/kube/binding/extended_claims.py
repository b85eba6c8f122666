"""Make and remove the claims for extended resources of pods. Source: kube-scheduler extendeddynamicresources.go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pumice.kube.api.client import Client, decoded
from pumice.kube.api.encode_claims import extended_claim_object
from pumice.kube.api.errors import ApiError
from pumice.kube.api.kinds import PODS, RESOURCE_CLAIMS
from pumice.model.decisions import Bind
from pumice.model.devices.extended import UNMADE, ExtendedRequests
from pumice.model.manifest.reading.fields import Obj


async def make_claim(client: Client, bind: Bind, extended: ExtendedRequests) -> str:
    """Create the claim for a pod's extended resources. Return its key. Raises: KubeError."""
    body = extended_claim_object(bind.pod, bind.uid, extended.requests)
    namespace = bind.pod.partition("/")[0]
    made = decoded(await client.post(RESOURCE_CLAIMS.namespace_path(namespace), body), "POST resourceclaims")
    return f"{namespace}/{made['metadata']['name']}"


async def write_to_pod(client: Client, bind: Bind, key: str, extended: ExtendedRequests) -> None:
    """Write to the status of a pod which claim its extended resources come from, by container. Raises: KubeError."""
    pod = await client.get(PODS.path(bind.pod))
    status = {
        "resourceClaimName": key.partition("/")[2],
        "requestMappings": mappings_of(pod, extended),
    }
    await client.patch(PODS.path(bind.pod, "status"), {"status": {"extendedResourceClaimStatus": status}})


def mappings_of(pod: Mapping[str, Any], extended: ExtendedRequests) -> list[Obj]:
    """Return which request gives which container of a pod its extended resource, by name."""
    spec = pod.get("spec") or {}
    names = [each.get("name", "") for key in ("initContainers", "containers") for each in spec.get(key) or ()]
    return [
        {"containerName": names[each.container], "resourceName": each.resource, "requestName": each.request}
        for each in extended.mappings
        if each.container < len(names)
    ]


def claim_of(pod: Mapping[str, Any]) -> str:
    """Return the name of the claim for a pod's extended resources, "" if its status names none."""
    found = ((pod.get("status") or {}).get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    return found if isinstance(found, str) else ""


async def remove_claim(client: Client, key: str) -> None:
    """Delete a claim that was made for a pod that was not bound after all. Raises: KubeError."""
    path = RESOURCE_CLAIMS.path(key)
    try:
        claim = await client.get(path)
        metadata = claim["metadata"]
        # A finalizer would keep the claim, and with it the devices that it no longer needs.
        if metadata.get("finalizers"):
            await client.put(path, {**claim, "metadata": {**metadata, "finalizers": []}})
        await client.delete(path, uid=metadata.get("uid", ""))
    except ApiError as error:
        if error.status != 404:
            raise


def is_unmade(claim: str) -> bool:
    """Return True for the key of a claim that is to be made for extended resources."""
    return claim.endswith(f"/{UNMADE}") and claim.count("/") > 1
