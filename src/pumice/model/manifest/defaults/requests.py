"""Fill in requests of pods that have only limits. An API server does so, but a file has not passed one.

Source: Kubernetes' defaults of pods (``SetDefaults_Pod``), with pod-level resources.
"""

from __future__ import annotations

from typing import Any

from pumice.model.manifest.reading.fields import Obj

_LISTS = ("containers", "initContainers")


def with_requests(spec: Obj) -> Obj:
    """Return a spec with a request for every limit, or the same object if nothing is missing. Its resources must be
    checked."""
    lists = {key: [_filled(each) for each in spec.get(key) or ()] for key in _LISTS}
    filled: dict[str, Any] = {key: each for key, each in lists.items() if any(map(_differ, each, spec.get(key) or ()))}
    own = spec.get("resources")
    if own and own.get("limits"):
        # A pod-level limit becomes a request only for resources that no container requests.
        asked = {name for each in lists["containers"] for name in _requests(each)}
        missing = {name: amount for name, amount in own["limits"].items() if name not in asked}
        filled["resources"] = {**own, "requests": {**missing, **(own.get("requests") or {})}}
    return {**spec, **filled} if filled else spec


def requests_and_limits(resources: Obj) -> Obj:
    """Return the requests of one container, with limits for resources that it does not request."""
    return {**(resources.get("limits") or {}), **(resources.get("requests") or {})}


def _filled(container: Obj) -> Obj:
    resources = container.get("resources") or {}
    # The common case: nothing is missing, and the object is returned as it is, which callers recognize.
    if (resources.get("limits") or {}).keys() <= (resources.get("requests") or {}).keys():
        return container
    return {**container, "resources": {**resources, "requests": requests_and_limits(resources)}}


def _differ(left: Any, right: Any) -> bool:
    # By identity: ``_filled`` returns the same object if it has changed nothing.
    return left is not right


def _requests(container: Obj) -> Obj:
    return (container.get("resources") or {}).get("requests") or {}
