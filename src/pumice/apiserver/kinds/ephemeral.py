"""Ephemeral containers (``kubectl debug``): added to a pod through a subresource, never changed or removed.

Nothing runs in a pod here, so an added one is stored and shown, and cannot be attached to.
"""

from __future__ import annotations

from typing import Any, Final

from pumice.apiserver.kinds.pod_defaults import fill_container
from pumice.apiserver.refusals import Cause
from pumice.model.manifest.reading.fields import Obj

PART: Final = "ephemeralcontainers"
FIELD: Final = "ephemeralContainers"
_MOST: Final = 100  # per pod, because each is kept as long as the pod
_NOT_FOR_THEM: Final = ("resources", "ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle")


def with_added(old: Obj, new: Obj) -> Obj:
    """Return the pod with the ephemeral containers of the changed one, and no other change."""
    changed = new.get("spec")
    given = changed.get(FIELD) if isinstance(changed, dict) else None
    spec = {key: value for key, value in old["spec"].items() if key != FIELD}
    return {**old, "spec": spec | ({FIELD: _whole(given)} if given else {})}


def problems(old: Obj, new: Obj) -> list[Cause]:
    """Return problems with a pod's new ephemeral containers."""
    before, after = old["spec"].get(FIELD) or [], new["spec"].get(FIELD) or []
    if len(after) > _MOST:
        return [Cause(f"spec.{FIELD}", f"Too many: must have at most {_MOST} items")]
    if after[: len(before)] != before:
        return [_forbidden("", "existing ephemeral containers may not be changed, moved or removed")]
    pod = [*(new["spec"].get("containers") or ()), *(new["spec"].get("initContainers") or ()), *before]
    taken = {str(container.get("name")) for container in pod}
    causes = []
    for i, container in enumerate(after[len(before) :], len(before)):
        causes += _wrong(container, i, taken)
        taken.add(str(container.get("name")))
    return causes


def _wrong(container: Obj, i: int, taken: set[str]) -> list[Cause]:
    where = f"spec.{FIELD}[{i}]"
    causes = [
        Cause(f"{where}.{field}", "Required value", "FieldValueRequired")
        for field in ("name", "image")
        if not isinstance(container.get(field), str) or not container[field]
    ]
    if not causes and container["name"] in taken:
        causes.append(Cause(f"{where}.name", f'Duplicate value: "{container["name"]}"', "FieldValueDuplicate"))
    causes += [
        _forbidden(f"[{i}].{field}", "may not be set of an ephemeral container")
        for field in _NOT_FOR_THEM
        if container.get(field)
    ]
    return causes


def _whole(given: Any) -> Any:
    """Return containers with the server's defaults. Anything but a list of containers with images is refused later."""
    if not isinstance(given, list) or not all(isinstance(each, dict) and each.get("image") for each in given):
        return given
    made = [dict(each) for each in given]
    for each in made:
        fill_container(each)
    return made


def _forbidden(where: str, why: str) -> Cause:
    return Cause(f"spec.{FIELD}{where}", f"Forbidden: {why}", "FieldValueForbidden")
