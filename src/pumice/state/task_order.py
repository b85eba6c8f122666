"""The order of a job's tasks when no plugin has an opinion."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key

from pumice.model.pod import Pod
from pumice.model.pod_order import compare_pods, name_index


def order_rows(rows: list[int], pods: Sequence[Pod]) -> list[int]:
    """Task rows in that order. The comparison is no order at all for a mix of names with and without index, so such a
    mix starts from UID order, which makes the outcome independent of arrival."""
    indexes = [i for row in rows if (i := name_index(pods[row].name)) is not None]
    if len(indexes) == len(rows):
        if len(set(indexes)) == len(rows):  # nothing else is asked where they all differ
            return [row for _, row in sorted(zip(indexes, rows, strict=True))]
        keyed = sorted((i, pods[r].creation, pods[r].uid, r) for i, r in zip(indexes, rows, strict=True))
        return [k[-1] for k in keyed]
    if not indexes:
        return sorted(rows, key=lambda r: (pods[r].creation, pods[r].uid))
    by_pod = cmp_to_key(compare_pods)
    mixed = sorted(rows, key=lambda r: pods[r].uid)
    return sorted(mixed, key=lambda r: by_pod(pods[r]))
