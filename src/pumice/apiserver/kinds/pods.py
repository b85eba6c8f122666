"""Operations on pods: binding to a node, and eviction under a disruption budget."""

from __future__ import annotations

from typing import Any

from pumice.apiserver.api.selectors import matches
from pumice.apiserver.bounds import BUDGET_STEPS_MAX, Work
from pumice.apiserver.kinds.metadata import maybe_metadata
from pumice.apiserver.objects import Deletion, Objects, Target
from pumice.apiserver.refusals import Cause, Refusal, bad_request, conflict, invalid, success
from pumice.model.manifest.reading.fields import Obj

_BUDGETS = "poddisruptionbudgets.policy"


def bind(objects: Objects, target: Target, binding: Obj, dry_run: bool = False) -> Obj:
    """Bind a pod to a node. Raises: Refusal 409 for a pod that has one, is being deleted, or is gated."""
    resource = target.resource
    found = objects.get(target)
    pod = found.obj
    to = binding.get("target")
    node = to.get("name") if isinstance(to, dict) else None
    if not node or not isinstance(node, str) or (to or {}).get("kind", "Node") not in ("Node", ""):
        raise invalid("Binding", "", target.name, [Cause("target.name", "Required value: the name of a Node")])
    metadata = maybe_metadata(binding)
    for key in ("uid", "resourceVersion"):
        if metadata.get(key, pod["metadata"][key]) != pod["metadata"][key]:
            why = f"Precondition failed: {key} in precondition: {metadata[key]}, in object meta: {pod['metadata'][key]}"
            raise conflict(resource.full_name, target.name, why)
    if "deletionTimestamp" in pod["metadata"]:
        raise conflict(
            resource.full_name, target.name, f"pod {target.name} is being deleted, cannot be assigned to a host"
        )
    if pod["spec"].get("nodeName"):
        why = f'pod {target.name} is already assigned to node "{pod["spec"]["nodeName"]}"'
        raise conflict(resource.full_name, target.name, why)
    if pod["spec"].get("schedulingGates"):
        raise conflict(resource.full_name, target.name, f"pod {target.name} has non-empty .spec.schedulingGates")
    if not dry_run:
        annotations = {**(pod["metadata"].get("annotations") or {}), **(metadata.get("annotations") or {})}
        bound = {
            **pod,
            "metadata": {**pod["metadata"], **({"annotations": annotations} if annotations else {})},
            "spec": {**pod["spec"], "nodeName": node},
            "status": with_condition(pod["status"], "PodScheduled", "True", objects.stamps.time()),
        }
        objects.write(resource, found, bound)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def evict(objects: Objects, target: Target, eviction: Obj, how: Deletion) -> Obj:
    """Delete a pod unless a budget forbids it.

    Raises: Refusal 429 if one does, 500 if several cover the pod (as Kubernetes answers), 404.
    """
    wanted = maybe_metadata(eviction).get("name", target.name)
    if wanted != target.name:
        raise bad_request(f"name in URL does not match name in Eviction object: {wanted!r:.80}")
    pod = objects.get(target).obj
    if _is_up(pod):
        work = Work(BUDGET_STEPS_MAX, "what this namespace's disruption budgets say")
        labels = pod["metadata"].get("labels") or {}
        covering = [
            row.obj
            for row in objects.store.rows(_BUDGETS, prefix=f"{target.namespace}/")
            if (row.obj.get("spec") or {}).get("selector") is not None
            and matches(row.obj["spec"]["selector"], labels, work)
        ]
        if len(covering) > 1:
            why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise Refusal(500, "InternalError", why)
        for budget in covering:
            _check_budget(objects, target.namespace, budget, work)
    objects.delete(target, how)
    return success()


def _check_budget(objects: Objects, namespace: str, budget: Obj, work: Work) -> None:
    spec = budget["spec"]
    labels = [
        (row.obj, row.obj["metadata"].get("labels") or {}) for row in objects.store.rows("pods", prefix=f"{namespace}/")
    ]
    covered = [pod for pod, found in labels if matches(spec["selector"], found, work)]
    up = sum(map(_is_up, covered))
    if "maxUnavailable" in spec:
        needed = len(covered) - _amount(spec["maxUnavailable"], len(covered))
    else:
        needed = _amount(spec.get("minAvailable", 1), len(covered))
    if up - 1 < needed:
        name = budget["metadata"]["name"]
        text = f"The disruption budget {name} needs {needed} healthy pods and has {up} currently"
        details = {"causes": [{"reason": "DisruptionBudget", "message": text}]}
        why = "Cannot evict pod as it would violate the pod's disruption budget."
        raise Refusal(429, "TooManyRequests", why, details)


def _amount(wanted: Any, of: int) -> int:
    """Return a number of pods, or a percentage of them, rounded up."""
    if isinstance(wanted, str) and wanted.endswith("%") and wanted[:-1].isdecimal() and len(wanted) < 10:
        return -(-of * int(wanted[:-1]) // 100)
    return wanted if isinstance(wanted, int) else 0


def _is_up(pod: Obj) -> bool:
    return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


def with_condition(status: Obj, kind: str, value: str, now: str, reason: str = "") -> Obj:
    """Return the status with one condition set. Its time changes only with its value."""
    condition: Obj = {"type": kind, "status": value, "lastProbeTime": None, "lastTransitionTime": now}
    if reason:
        condition["reason"] = reason
    kept = []
    for each in status.get("conditions") or ():
        if each.get("type") != kind:
            kept.append(each)
        elif each.get("status") == value:
            condition["lastTransitionTime"] = each.get("lastTransitionTime", now)
    return {**status, "conditions": [*kept, condition]}
