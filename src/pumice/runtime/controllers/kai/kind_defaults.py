"""Priority class and preemptibility of workloads that name none, by the kind of their owner.

They come from a ConfigMap: its key ``types`` has a JSON list of ``typeName``, ``group``, ``priorityName`` and
``preemptibility``. Source: KAI ``defaultgrouper`` (getDefaultConfigsPerTypeMapping).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from pumice.model.manifest.reading.fields import FieldError, Obj, short_text, shown
from pumice.runtime.controllers.kai.owners import group_kind
from pumice.runtime.controllers.writes import part

_KEY = "types"
_PLACE = f"data.{_KEY}"
_KINDS_MAX = 1000
_FIELDS = ("typeName", "group", "priorityName", "preemptibility")


class KindDefault(Struct, frozen=True):
    """What pods of a kind get, "" for nothing."""

    priority_class: str = ""
    preemptibility: str = ""


_NOTHING = KindDefault()


class KindDefaults(Struct, frozen=True):
    """``by_kind``: defaults by kind and API group, as in ``Deployment.apps``, or by the kind alone."""

    by_kind: Mapping[str, KindDefault] = {}

    def of(self, owner: Obj) -> KindDefault:
        """Return what pods of an owner get. A kind that is named with its API group goes before the kind alone."""
        group, kind = group_kind(owner)
        full = f"{kind}.{group}" if group else kind
        return self.by_kind.get(full) or self.by_kind.get(kind) or _NOTHING


def has_kind_defaults(config_map: Obj) -> bool:
    """Return True if a ConfigMap looks as if it had defaults of kinds."""
    text = part(config_map, "data").get(_KEY)
    return isinstance(text, str) and text.lstrip().startswith("[") and '"typename"' in text.lower()


def read_kind_defaults(config_map: Obj) -> KindDefaults:
    """Return the defaults in a ConfigMap. Raises: FieldError."""
    text = part(config_map, "data").get(_KEY)
    if not isinstance(text, str):
        raise FieldError(_PLACE, shown(text), "a JSON list of kinds")
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FieldError(_PLACE, f"no JSON ({error})", "a JSON list of kinds") from None
    if not isinstance(listed, list):
        raise FieldError(_PLACE, shown(listed), "a JSON list of kinds")
    if len(listed) > _KINDS_MAX:
        raise FieldError(_PLACE, f"{len(listed)} kinds", f"at most {_KINDS_MAX}")
    # The last of several for one kind counts, as in KAI.
    return KindDefaults(dict(_of_kind(item, f"{_PLACE}[{i}]") for i, item in enumerate(listed)))


def _of_kind(item: Any, path: str) -> tuple[str, KindDefault]:
    if not isinstance(item, dict):
        raise FieldError(path, shown(item), "an object with typeName")
    # KAI's decoder matches keys in any case.
    written = {str(key).lower(): value for key, value in item.items()}
    fields: Obj = {name: written.get(name.lower()) for name in _FIELDS}
    kind, group, priority, preemptibility = (short_text(fields, name, path) for name in _FIELDS)
    return f"{kind}.{group}" if group else kind, KindDefault(priority, preemptibility.lower())
