"""What Kubernetes does with ResourceClaims: make them from templates, and take them back from pods that have ended.

Source: kube-controller-manager, resourceclaim controller; for claims of PodGroups, KEP-5729.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from pumice.model.devices.claims import CLAIM_FINALIZER
from pumice.model.manifest.reading.fields import Obj
from pumice.model.pod import ENDED
from pumice.model.workloads.native_group import NATIVE_GROUP
from pumice.runtime.controllers.writes import controller_of, leaving, meta, owner_reference, part

#: The entry of the pod, or of the PodGroup, for which a claim was made.
POD_ENTRY = "resource.kubernetes.io/pod-claim-name"
GROUP_ENTRY = "resource.kubernetes.io/podgroup-claim-name"
#: Entries of one object that are read.
ENTRIES_MAX = 64
#: So long a start of a generated name leaves room for its end.
_BASE_MAX = 57

#: An object by its name in the namespace of the claim, or None.
Find = Callable[[str], Obj | None]


class Entry(NamedTuple):
    """A claim that a pod or a PodGroup names. One of ``claim`` and ``template`` is not empty."""

    name: str
    claim: str
    template: str


def entries_of(owner: Obj) -> Iterator[Entry]:
    """Yield the claims that a pod or a PodGroup names."""
    for each in (part(owner, "spec").get("resourceClaims") or ())[:ENTRIES_MAX]:
        found = (each.get(key) or "" for key in ("name", "resourceClaimName", "resourceClaimTemplateName"))
        yield Entry(*found)


def made_for(owner: Obj) -> dict[str, str]:
    """Return the names of the claims that were made for a pod or a PodGroup, by entry."""
    listed = part(owner, "status").get("resourceClaimStatuses") or ()
    return {each.get("name", ""): each.get("resourceClaimName") or "" for each in listed}


def claims_named_by(owner: Obj) -> set[str]:
    """Return the names of all claims of a pod or a PodGroup, as far as they exist."""
    extended = part(owner, "status", "extendedResourceClaimStatus").get("resourceClaimName") or ""
    return {*(each.claim for each in entries_of(owner)), *made_for(owner).values(), extended} - {""}


def claim_from(template: Obj, owner: Obj, entry: str) -> Obj:
    """Return the claim to create for an entry of a pod or of a PodGroup. The server completes its name."""
    mark = POD_ENTRY if owner["kind"] == "Pod" else GROUP_ENTRY
    wanted = part(template, "spec", "metadata")
    metadata: Obj = {
        "namespace": meta(owner)["namespace"],
        "generateName": _base(str(meta(owner)["name"]), entry),
        "ownerReferences": [owner_reference(owner)],
        "annotations": {**(wanted.get("annotations") or {}), mark: entry},
    }
    if labels := wanted.get("labels"):
        metadata["labels"] = labels
    spec = part(template, "spec", "spec")
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec}


def _base(owner: str, entry: str) -> str:
    """Return the start of a claim's name, with a part of both names if they are long."""
    whole = f"{owner}-{entry}-"
    if len(whole) <= _BASE_MAX:
        return whole
    return f"{owner[: len(owner) * _BASE_MAX // len(whole)]}-{entry[: len(entry) * _BASE_MAX // len(whole)]}"


def with_names(owner: Obj, names: dict[str, str]) -> Obj:
    """Return a pod or a PodGroup whose status names the claims that were made for it, by entry."""
    listed = [{"name": entry, "resourceClaimName": claim} for entry, claim in names.items()]
    return {**owner, "status": {**part(owner, "status"), "resourceClaimStatuses": listed}}


def is_done(pod: Obj) -> bool:
    """Return True if no container of a pod runs or will run."""
    return part(pod, "status").get("phase") in ENDED or (leaving(pod) and not part(pod, "spec").get("nodeName"))


def released(claim: Obj, pod: Find, group: Find) -> Obj:
    """Return a claim without the users that do not need it any more, and without devices once it has lost the last."""
    status, before = part(claim, "status"), part(claim, "status").get("reservedFor") or []
    users = [user for user in before if _needs_it(user, pod, group)]
    finalizers = meta(claim).get("finalizers") or []
    ends = not users and CLAIM_FINALIZER in finalizers and (bool(before) or leaving(claim))
    if len(users) == len(before) and not ends:
        return claim
    kept = {key: value for key, value in status.items() if key != "reservedFor"}
    if users:
        kept["reservedFor"] = users
    if not ends:
        return {**claim, "status": kept}
    # Devices that are given for nothing would wait for a user on the node of the last one.
    kept = {key: value for key, value in kept.items() if key not in ("allocation", "devices")}
    left = [each for each in finalizers if each != CLAIM_FINALIZER]
    metadata = {key: value for key, value in meta(claim).items() if key != "finalizers"}
    return {**claim, "metadata": metadata | ({"finalizers": left} if left else {}), "status": kept}


def _needs_it(user: Obj, pod: Find, group: Find) -> bool:
    """Return True if a user of a claim may need it. A PodGroup does as long as it exists."""
    kind = user.get("apiGroup") or "", user.get("resource")
    if kind not in (("", "pods"), (NATIVE_GROUP, "podgroups")):
        return True
    found = (pod if kind[1] == "pods" else group)(str(user.get("name")))
    return (
        found is not None and meta(found).get("uid") == user.get("uid") and not (kind[1] == "pods" and is_done(found))
    )


def is_left_over(claim: Obj, pod: Find) -> bool:
    """Return True if a claim without users was made for a pod that will not run. Source: syncClaim.

    If the pod is gone, so is the owner, and the claim goes with it.
    """
    owner = controller_of(claim)
    if part(claim, "status").get("reservedFor") or owner is None or owner.kind != "Pod":
        return False
    found = pod(owner.name)
    return found is not None and (meta(found).get("uid") != owner.uid or is_done(found))


def reserved_for(claim: Obj, pod: Obj, users_max: int) -> Obj:
    """Return an allocated claim with a pod among its users, if the pod has a node that no scheduler chose.

    A scheduler that binds a pod has reserved its claims before.
    """
    users = part(claim, "status").get("reservedFor") or []
    uid, has_devices = meta(pod).get("uid"), bool(part(claim, "status").get("allocation"))
    taken = any(each.get("uid") == uid or each.get("resource") == "podgroups" for each in users)
    if not has_devices or taken or len(users) >= users_max or not part(pod, "spec").get("nodeName") or is_done(pod):
        return claim
    user = {"resource": "pods", "name": meta(pod)["name"], "uid": uid}
    return {**claim, "status": {**part(claim, "status"), "reservedFor": [*users, user]}}
