"""OpenAPI documents, as far as kubectl reads them: options of paths, and fields of kinds."""

from __future__ import annotations

import hashlib

import msgspec

from pumice.apiserver.kinds.core_fields import fields_of
from pumice.apiserver.kinds.registry import Registry
from pumice.apiserver.kinds.resources import Resource
from pumice.model.manifest.reading.fields import Obj

_encode = msgspec.json.Encoder().encode
_OPEN: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
#: Without the strategic merge patch, because kubectl then merges by its built-in types, which know more.
_PATCHES = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
_WRITE_OPTIONS = ("dryRun", "fieldManager", "fieldValidation")


#: Media type of OpenAPI 2 in protobuf, and a document without definitions ("2.0", a title, a version). kubectl requests
#: it for kinds without fields of their own, such as List, and accepts that there are none.
V2_MEDIA = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
V2_EMPTY = b"\x0a\x032.0\x12\x0d\x0a\x06Pumice\x12\x03" + b"1.0"


class Documents:
    """A document for each group and version, and an index. They are made on request, and again when kinds change."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._generation = -1
        self._made: dict[str, bytes] = {}

    def find(self, parts: list[str]) -> bytes | None:
        """Return a document, or None. ``parts``: of a path after ``openapi``."""
        if self._generation != self._registry.generation:
            self._generation = self._registry.generation
            self._made = {}
        if not parts or parts[0] != "v3":
            return None
        if len(parts) == 1:
            return self._index()
        return self._document("/".join(parts[1:]))

    def _index(self) -> bytes:
        paths = {}
        for group, versions in self._registry.groups().items():
            for version in versions:
                place = f"apis/{group}/{version}" if group else f"api/{version}"
                raw = self._document(place) or b""
                digest = hashlib.sha256(raw).hexdigest()[:32].upper()
                paths[place] = {"serverRelativeURL": f"/openapi/v3/{place}?hash={digest}"}
        return _encode({"paths": paths})

    def _document(self, place: str) -> bytes | None:
        found = self._made.get(place)
        if found is None:
            resources = [r for r in self._registry.resources() if _place(r) == place]
            if not resources:
                return None
            found = self._made[place] = _encode(_document_of(resources, place))
        return found


def _place(resource: Resource) -> str:
    return f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"


def _document_of(resources: list[Resource], place: str) -> Obj:
    paths: Obj = {}
    schemas: Obj = {}
    for resource in resources:
        name = _schema_name(resource)
        schemas[name] = _schema(resource)
        within = "/namespaces/{namespace}" if resource.namespaced else ""
        paths[f"/{place}{within}/{resource.plural}"] = {
            "get": _operation(resource, name),
            "post": _write(resource, name),
        }
        item = {"get": _operation(resource, name), "put": _write(resource, name), "patch": _patch(resource, name)}
        paths[f"/{place}{within}/{resource.plural}/{{name}}"] = item
    about = {"title": "Pumice", "version": "v1"}
    return {"openapi": "3.0.0", "info": about, "paths": paths, "components": {"schemas": schemas}}


def _schema_name(resource: Resource) -> str:
    group = ".".join(reversed(resource.group.split("."))) if resource.group else "io.k8s.api.core"
    return f"{group}.{resource.version}.{resource.kind}"


def _schema(resource: Resource) -> Obj:
    given = resource.schema or (None if resource.custom else fields_of(resource.kind)) or _OPEN
    texts = {"apiVersion": "The group and version of the kind.", "kind": "The kind of the object."}
    heads: Obj = {key: {"type": "string", "description": text} for key, text in texts.items()}
    heads["metadata"] = {"type": "object", "description": "Name, namespace, labels, annotations and owners."}
    properties = {**(given.get("properties") or {}), **heads}
    return {
        **given,
        "properties": dict(sorted(properties.items())),
        "x-kubernetes-group-version-kind": [_gvk(resource)],
    }


def _gvk(resource: Resource) -> Obj:
    return {"group": resource.group, "kind": resource.kind, "version": resource.version}


def _operation(resource: Resource, name: str) -> Obj:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
    return {
        "x-kubernetes-group-version-kind": _gvk(resource),
        "responses": {"200": {"description": "OK", "content": content}},
    }


def _write(resource: Resource, name: str) -> Obj:
    parameters = [{"name": option, "in": "query", "schema": {"type": "string"}} for option in _WRITE_OPTIONS]
    return _operation(resource, name) | {"parameters": parameters}


def _patch(resource: Resource, name: str) -> Obj:
    found = _write(resource, name)
    found["requestBody"] = {"content": {kind: {"schema": {"type": "object"}} for kind in _PATCHES}}
    found["parameters"].append({"name": "force", "in": "query", "schema": {"type": "boolean"}})
    return found
