"""The ConfigMaps without which a pod cannot start. Source: KAI ``config_maps.go``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pumice.model.manifest.reading.fields import Obj

#: An annotation of KAI's webhook: the ConfigMaps whose names begin so are written when the pod is bound.
SHARED_GPU_ANNOTATION = "runai/shared-gpu-configmap"
_CONTAINERS = ("containers", "initContainers")


def needed_config_maps(spec: Obj, annotations: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the ConfigMaps that containers of a pod mount or take variables from, unless these are
    optional, sorted. What is not of the right form names nothing: it decides about no placement."""
    containers = [each for key in _CONTAINERS for each in _tables(spec, key)]
    refs = [ref for each in containers for ref in _of_variables(each)]
    volumes = _tables(spec, "volumes")
    if volumes:
        # A volume that no container mounts is not needed. Source: KAI.
        mounted = {mount.get("name") for each in containers for mount in _tables(each, "volumeMounts")}
        refs += (ref for each in volumes if each.get("name") in mounted for ref in _of_volume(each))
    # Of most pods: they need no ConfigMap, and this is asked of each pod that is read.
    if not refs:
        return ()
    # The binder writes them after the pod has its node, so that nothing would come of waiting for them.
    made = annotations.get(SHARED_GPU_ANNOTATION)
    names = {ref.get("name") for ref in refs if ref.get("optional") is not True}
    # Sorted, so that equal pods have equal values whatever the order of their containers.
    found = sorted(name for name in names if isinstance(name, str) and name)
    return tuple(name for name in found if made is None or not name.startswith(made))


def _of_variables(container: Obj) -> Iterator[Obj]:
    for each in _tables(container, "env"):
        yield from _table(_first(_table(each, "valueFrom")), "configMapKeyRef")
    for each in _tables(container, "envFrom"):
        yield from _table(each, "configMapRef")


def _of_volume(volume: Obj) -> Iterator[Obj]:
    yield from _table(volume, "configMap")
    for projected in _table(volume, "projected"):
        for source in _tables(projected, "sources"):
            yield from _table(source, "configMap")


def _table(obj: Obj, key: str) -> list[Obj]:
    """Return the object at a key as a list of it, [] if there is none."""
    found: Any = obj.get(key)
    return [found] if isinstance(found, dict) else []


def _first(objs: list[Obj]) -> Obj:
    return objs[0] if objs else {}


def _tables(obj: Obj, key: str) -> list[Obj]:
    """Return the objects in the list at a key."""
    found: Any = obj.get(key)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
