"""Names of sub-groups that KAI's API server refuses, in objects that have not passed one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pumice.model.manifest.reading.fields import Obj, shown

#: What one PodGroup reports. Bounded, because a tenant writes it.
_REPORTED_MAX = 5
_LABEL_MAX = 63
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def odd_sub_group_names(obj: Obj) -> Iterator[str]:
    """Yield what is wrong with names of sub-groups of a PodGroup of KAI, and what counts instead, nothing for other
    objects. Source: KAI PodGroup, whose names and parents of sub-groups are DNS labels."""
    if obj.get("kind") != "PodGroup" or not str(obj.get("apiVersion")).startswith("scheduling.run.ai/"):
        return
    spec = obj.get("spec")
    listed = spec.get("subGroups") if isinstance(spec, dict) else None
    found = (
        f"spec.subGroups[{i}].{key}: found {shown(name)}, wanted a DNS label (lower-case letters, digits and -);"
        f" it counts as {shown(name.lower())}"
        for i, each in enumerate(listed if isinstance(listed, list) else ())
        for key in ("name", "parent")
        # What is no string makes the PodGroup unreadable, and is named by its reader.
        if isinstance(each, dict) and isinstance(name := each.get(key), str) and name and not _is_label(name)
    )
    # Cut here and not before: which names are odd is known only after reading them.
    yield from (what for _, what in zip(range(_REPORTED_MAX), found, strict=False))


def _is_label(name: str) -> bool:
    return len(name) <= _LABEL_MAX and _LABEL.fullmatch(name) is not None
