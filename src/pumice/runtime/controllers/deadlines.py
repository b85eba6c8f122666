"""Estimates from the deadlines of workloads: an owner is stopped then, so its gang runs no longer.

Pods do not repeat the deadline of the workload that creates them. It is written on the PodGroup as an estimate, where
everything that reads estimates finds it.

Source: ``activeDeadlineSeconds`` in batch/v1 (JobSpec), Ray (RayJobSpec), Kubeflow Trainer (TrainJobSpec) and, within
``runPolicy``, in Kubeflow's training jobs.
"""

from __future__ import annotations

from collections.abc import Iterable

from pumice.model.manifest.reading.fields import Obj
from pumice.model.workloads.estimate import ESTIMATE_ANNOTATION, ESTIMATE_KEYS, estimate_text
from pumice.runtime.controllers.writes import annotations_of, labels_of, part

_DEADLINE = "activeDeadlineSeconds"


def deadline_annotation(pod: Obj, owners: Iterable[Obj]) -> dict[str, str]:
    """Return the annotation with the shortest deadline of the owners of a pod. It is empty if none has a deadline, or
    if the pod or an owner says itself how long the job runs."""
    deadlines = []
    # A pod's own deadline is read from the pod, and an estimate of the user says more than a bound.
    if _DEADLINE in part(pod, "spec") or _has_estimate(pod):
        return {}
    for owner in owners:
        if _has_estimate(owner):
            return {}
        spec = part(owner, "spec")
        for value in (spec.get(_DEADLINE), part(spec, "runPolicy").get(_DEADLINE)):
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                deadlines.append(value)
    return {ESTIMATE_ANNOTATION: estimate_text(min(deadlines))} if deadlines else {}


def _has_estimate(obj: Obj) -> bool:
    annotations, labels = annotations_of(obj), labels_of(obj)
    return any(key in annotations or key in labels for key in ESTIMATE_KEYS)
