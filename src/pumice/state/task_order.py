"""The order of a job's tasks when no plugin has an opinion."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key

from pumice.model.pod import Pod
from pumice.model.pod_order import compare_pods, name_index


def order_rows(rows: list[int], pods: Sequence[Pod]) -> list[int]:
    """Task rows in that order. The comparison is no order at all for a mix of names with and without index, so such a
    mix starts from UID order, which makes the outcome independent of arrival."""
    indexes = [name_index(pods[r].name) for r in rows]
    if all(i is not None for i in indexes):
        keyed = sorted(
            (i, pods[r].creation, pods[r].uid, r) for i, r in zip(indexes, rows, strict=True) if i is not None
        )
        return [k[-1] for k in keyed]
    if not any(i is not None for i in indexes):
        return sorted(rows, key=lambda r: (pods[r].creation, pods[r].uid))
    by_pod = cmp_to_key(compare_pods)
    mixed = sorted(rows, key=lambda r: pods[r].uid)
    return sorted(mixed, key=lambda r: by_pod(pods[r]))
