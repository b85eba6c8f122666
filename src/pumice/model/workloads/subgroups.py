"""Assign pods to the sub-jobs of their gang: by policies of Volcano, or by pod sets of KAI.

Source: Volcano ``SubJobInfo`` and ``getSubJobMatchValues``; KAI ``subgroup_info``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from pumice.model.pod import EMPTY_MAP, LabelSelector
from pumice.model.selectors import matches
from pumice.model.workloads.gang import Gang, SubGroup, pod_set_of
from pumice.model.workloads.podgroup import NetworkTopology, PodGroup, SubGroupPolicy

_ID_MAX_BYTES = 128
_SAFE_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # Kubernetes rand.SafeEncodeString: no vowels, no words
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_EVERYTHING = LabelSelector()


class SubJobKey(Struct, frozen=True):
    """Identity of a sub-job. Pods that no policy captures, or whose pod set does not exist, share a default sub-job,
    whose ``gid`` and ``id`` are the job's key."""

    gid: str  # namespace/podgroup/policy: what minSubGroups counts
    id: str  # gid with the values of matchLabelKeys
    match_index: int = 0  # orders the sub-jobs of one policy
    policy: SubGroupPolicy | None = None
    pod_set: SubGroup | None = None


def sub_job_of(labels: Mapping[str, str], group: PodGroup, annotations: Mapping[str, str] = EMPTY_MAP) -> SubJobKey:
    """Return the sub-job of a pod with these labels and annotations: its pod set, or the first policy in the list that
    captures it, else the default."""
    if group.gang is not None:
        return _pod_set_key(pod_set_of(labels, annotations), group.key, group.gang)
    for policy in group.sub_groups:
        values = match_values(policy, labels)
        if values:
            gid = f"{group.key}/{policy.name}"
            return SubJobKey(gid, sub_job_id(group.key, policy.name, values), match_index(values), policy)
    return SubJobKey(group.key, group.key)


def _pod_set_key(pod_set: str, job_key: str, gang: Gang) -> SubJobKey:
    """Return the sub-job of a pod in a pod set of a gang."""
    # KAI compares names of sub-groups in lower case.
    name = pod_set.lower()
    found = next((each for each in gang.pod_sets() if each.name == name), None)
    uid = job_key if found is None else f"{job_key}/{name}"
    return SubJobKey(uid, uid, pod_set=found)


def match_values(policy: SubGroupPolicy, labels: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the values of the policy's ``matchLabelKeys``, or None if the policy does not match.

    A policy without keys gives the empty tuple and captures nothing.
    """
    if not matches(policy.selector or _EVERYTHING, labels):
        return None
    values = tuple(labels.get(key, "") for key in policy.match_label_keys)
    # A pod without one of the labels belongs to no part of the policy. Volcano requires all of them.
    return values if all(values) else None


def sub_job_id(job_key: str, policy_name: str, values: tuple[str, ...]) -> str:
    """Return ``job/policy-v1-v2``. Values longer than 128 bytes together are replaced by a hash."""
    joined = "-".join(values)
    # "surrogatepass", because labels in a recorded file may contain lone surrogates, and a name must exist for them
    # too.
    raw = joined.encode("utf-8", "surrogatepass")
    if len(raw) > _ID_MAX_BYTES:
        joined = _safe_encoded(str(_fnv1a_32(raw)))
    return f"{job_key}/{policy_name}-{joined}"


def match_index(values: tuple[str, ...]) -> int:
    """Return the first value as an integer, 0 if it is not one that fits an int64."""
    # Labels may hold any text. Volcano sorts those that are no number as 0.
    if not values or not _INTEGER.fullmatch(values[0]):
        return 0
    index = int(values[0])
    return index if -(2**63) <= index < 2**63 else 0


def min_available(key: SubJobKey, group: PodGroup) -> int:
    """Return how many pods make the sub-job ready."""
    if key.pod_set is not None:
        return key.pod_set.min_member
    # A policy without a size counts its pods one by one, so one of them makes it ready.
    if key.policy is not None:
        return key.policy.sub_group_size if key.policy.sub_group_size is not None else 1
    # The default sub-job represents the whole gang only if there are no others.
    return 1 if has_parts(group) else group.min_member


def has_parts(group: PodGroup) -> bool:
    """Return True if the gang has sub-jobs with minimums of their own."""
    return bool(group.sub_groups or (group.gang is not None and group.gang.sub_groups))


def topology_of(key: SubJobKey, group: PodGroup) -> NetworkTopology | None:
    """Return the topology of the sub-job: its policy's, or the gang's for the default."""
    # Pods outside all policies follow the gang's topology alone.
    return group.topology if key.policy is None else key.policy.topology


def _fnv1a_32(data: bytes) -> int:
    """Return the FNV-1a hash of 32 bits."""
    digest = 0x811C9DC5
    for byte in data:
        digest = ((digest ^ byte) * 0x01000193) & 0xFFFFFFFF
    return digest


def _safe_encoded(text: str) -> str:
    """Return a text in the alphabet of Kubernetes' rand.SafeEncodeString."""
    return "".join(_SAFE_ALPHABET[ord(letter) % len(_SAFE_ALPHABET)] for letter in text)
