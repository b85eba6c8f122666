"""The order of a job's tasks when no plugin has an opinion."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cmp_to_key

from pumice.model.pod import Pod
from pumice.model.pod_order import compare_pods, name_index


def order_rows(pod_of: Mapping[int, Pod]) -> list[int]:
    """Task rows, each with its pod, in that order. The comparison is no order at all for a mix of names with and
    without index, so such a mix starts from UID order, which makes the outcome independent of arrival."""
    indexes = [i for pod in pod_of.values() if (i := name_index(pod.name)) is not None]
    if len(indexes) == len(pod_of):
        if len(set(indexes)) == len(pod_of):  # nothing else is asked where they all differ
            return [row for _, row in sorted(zip(indexes, pod_of, strict=True))]
        keyed = sorted((i, pod.creation, pod.uid, row) for i, (row, pod) in zip(indexes, pod_of.items(), strict=True))
        return [k[-1] for k in keyed]
    if not indexes:
        return sorted(pod_of, key=lambda row: (pod_of[row].creation, pod_of[row].uid))
    by_pod = cmp_to_key(compare_pods)
    mixed = sorted(pod_of, key=lambda row: pod_of[row].uid)
    return sorted(mixed, key=lambda row: by_pod(pod_of[row]))
