"""The order of a job's tasks where no plugin decides. Source: Volcano ``CompareTask``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cmp_to_key

from pumice.model.pod import Pod
from pumice.model.pod_order import compare_pods, name_index


def order_rows(pod_of: Mapping[int, Pod]) -> list[int]:
    """Return the rows of tasks, given with their pods, in order."""
    # ``compare_pods`` sorted by a comparison function would do for all cases, but takes far longer than keys. So names
    # that all have an index, or all have none, are sorted by keys to the same result.
    indexes = [i for pod in pod_of.values() if (i := name_index(pod.name)) is not None]
    if len(indexes) == len(pod_of):
        # The usual case, pods of one role: no two have the same index, so nothing else is compared.
        if len(set(indexes)) == len(pod_of):
            return [row for _, row in sorted(zip(indexes, pod_of, strict=True))]
        keyed = sorted((i, pod.creation, pod.uid, row) for i, (row, pod) in zip(indexes, pod_of.items(), strict=True))
        return [k[-1] for k in keyed]
    if not indexes:
        return sorted(pod_of, key=lambda row: (pod_of[row].creation, pod_of[row].uid))
    # For a mix of names with and without index the comparison is not transitive, and the result depends on the order at
    # the start. Sorting by UID before makes it independent of the order of arrival.
    by_pod = cmp_to_key(compare_pods)
    mixed = sorted(pod_of, key=lambda row: pod_of[row].uid)
    return sorted(mixed, key=lambda row: by_pod(pod_of[row]))
