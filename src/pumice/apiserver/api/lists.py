"""How items of lists are identified: what strategic merge patch and server-side apply need to know about a kind."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import msgspec

from pumice.apiserver.kinds.resources import Resource
from pumice.model.manifest.reading.fields import Obj

#: Lists of Kubernetes' own kinds whose items are identified by a key, by name of their field.
_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "containerStatuses": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "schedulingGates": ("name",),
    "resourceClaims": ("name",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "conditions": ("type",),
    "addresses": ("type",),
    "ownerReferences": ("uid",),
    "secrets": ("name",),
    "versions": ("name",),
    "podIPs": ("ip",),
}
#: Keys of ports, by the kind of object that has them.
_PORT_KEYS: Final = (("containerPort", "protocol"), ("port", "protocol"))
#: Lists of plain values that are sets.
_SETS: Final = frozenset({"finalizers", "podCIDRs"})
#: Strategic merge patch has one key where server-side apply has two.
_STRATEGIC: Final = {"taints": "key", "topologySpreadConstraints": "topologyKey"}

_encode = msgspec.json.Encoder(order="deterministic").encode


def identity(value: Any) -> Hashable:
    """Return a hashable that represents a value in a set. Equal values have equal ones, and a look-up does not depend
    on the length of the list.

    A plain value represents itself; others are represented by their JSON.
    """
    return (_encode(value),) if isinstance(value, dict | list) else value


class Shape:
    """What is known of a place in an object: a kind, a field of it, or an item of a list."""

    __slots__ = ("_name", "_schema", "_typed")

    def __init__(self, schema: Obj | None, name: str = "", typed: bool = True) -> None:
        self._schema, self._name, self._typed = schema, name, typed

    @classmethod
    def of(cls, resource: Resource) -> Shape:
        """Return the shape of a kind: by its schema, else by the names of fields in Kubernetes' own kinds."""
        return cls(resource.schema, typed=resource.schema is None)

    def below(self, name: str) -> Shape:
        """Return the shape of a field."""
        if self._typed or (name == "metadata" and not self._name):
            return Shape(None, name)
        schema = self._schema or {}
        found = (schema.get("properties") or {}).get(name)
        others = schema.get("additionalProperties")
        return Shape(found or (others if isinstance(others, dict) else {}), name, False)

    def item(self) -> Shape:
        """Return the shape of an item of a list."""
        if self._typed:
            return Shape(None, "")
        return Shape((self._schema or {}).get("items") or {}, "item", False)

    @property
    def is_set(self) -> bool:
        if self._typed:
            return self._name in _SETS
        return (self._schema or {}).get("x-kubernetes-list-type") == "set"

    @property
    def is_atomic(self) -> bool:
        """True if an object is owned and merged as a whole."""
        if self._typed:
            return self._name in ("selector", "nodeSelectorTerms", "fieldRef", "resourceFieldRef")
        return (self._schema or {}).get("x-kubernetes-map-type") == "atomic"

    def keys(self, items: list[Any]) -> tuple[str, ...]:
        """Return what identifies the items, empty if the list is one value."""
        if not all(isinstance(item, dict) for item in items):
            return ()
        if not self._typed:
            found = self._schema or {}
            return (
                tuple(found.get("x-kubernetes-list-map-keys") or ())
                if found.get("x-kubernetes-list-type") == "map"
                else ()
            )
        if self._name == "ports":
            return next((keys for keys in _PORT_KEYS if all(keys[0] in item for item in items)), ())
        return _KEYS.get(self._name, ())

    def merge_key(self, items: list[Any]) -> str:
        """Return the key by which strategic merge patch identifies items, "" if it replaces the list."""
        if not self._typed:
            return ""
        return _STRATEGIC.get(self._name) or next(iter(self.keys(items)), "")
