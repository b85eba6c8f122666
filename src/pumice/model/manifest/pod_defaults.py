"""What pods ask for where they only say what they may use at most: an API server fills that in, a file has not met one.

Source: Kubernetes' defaults of pods (``SetDefaults_Pod``), pod-level resources included.
"""

from __future__ import annotations

from typing import Any

from pumice.model.manifest.reading.fields import Obj

_LISTS = ("containers", "initContainers")


def with_requests(spec: Obj) -> Obj:
    """A spec whose resources were checked, with a request for every limit: itself where nothing is missing."""
    lists = {key: [_filled(each) for each in spec.get(key) or ()] for key in _LISTS}
    filled: dict[str, Any] = {key: each for key, each in lists.items() if any(map(_differ, each, spec.get(key) or ()))}
    own = spec.get("resources")
    if own and own.get("limits"):
        asked = {name for each in lists["containers"] for name in _requests(each)}
        missing = {name: amount for name, amount in own["limits"].items() if name not in asked}
        filled["resources"] = {**own, "requests": {**missing, **(own.get("requests") or {})}}
    return {**spec, **filled} if filled else spec


def requests_and_limits(resources: Obj) -> Obj:
    """The requests of one container: those that are named, and for the others as much as the limit."""
    return {**(resources.get("limits") or {}), **(resources.get("requests") or {})}


def _filled(container: Obj) -> Obj:
    resources = container.get("resources") or {}
    if (resources.get("limits") or {}).keys() <= (resources.get("requests") or {}).keys():
        return container
    return {**container, "resources": {**resources, "requests": requests_and_limits(resources)}}


def _differ(left: Any, right: Any) -> bool:
    return left is not right


def _requests(container: Obj) -> Obj:
    return (container.get("resources") or {}).get("requests") or {}
