"""Decode the annotation that limits what a queue may hold of each node group."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pumice.model.manifest.reading.fields import FieldError, quantities
from pumice.model.queue import GroupLimits
from pumice.model.resources import Resource

LIMITS_ANNOTATION = "volcano.sh/nodegroup-resource-limits"
GROUPS_MAX = 256


def group_limits(annotations: Mapping[str, str]) -> GroupLimits | None:
    """Return limits by group and resource in canonical units, or None if they are invalid. Source: Volcano
    nodegroup."""
    text = annotations.get(LIMITS_ANNOTATION)
    if text is None:
        return ()
    try:
        # A user writes this annotation by hand, so anything may be in it.
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or len(found) > GROUPS_MAX:
        return None
    try:
        each = {group: quantities(found, group, "") or {} for group in found}
    except FieldError:
        return None
    # Sorted, so that equal limits are equal values in whatever order they were written.
    return tuple((group, _amounts(amounts)) for group, amounts in sorted(each.items()))


def _amounts(amounts: Mapping[str, str]) -> tuple[tuple[str, float], ...]:
    resource = Resource.from_list(dict(amounts))
    return tuple((name, resource.get(name)) for name in sorted(amounts))
