"""The owners of a pod as KAI's pod-grouper takes them: wrappers are passed over, and some ask to be left alone.

Source: KAI ``skiptopowner`` and ``defaultgrouper``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pumice.model.manifest.reading.fields import Obj
from pumice.runtime.controllers.writes import Ref, annotations_of, labels_of, meta

#: Annotation of a pod or an owner: neither is a group made for the pod, nor one changed.
SKIP_ANNOTATION = "kai.scheduler/skip-podgrouper"
_POD_GANG_LABEL = "grove.io/podgang"
_GROVE = "grove.io"

#: Owners that only wrap another workload, whose rule counts. Version does not matter.
_WRAPPERS = {
    ("argoproj.io", "Workflow"),
    ("trainer.kubeflow.org", "TrainJob"),
    ("nvidia.com", "DynamoGraphDeployment"),
    *(
        ("run.ai", kind)
        for kind in (
            "TrainingWorkload",
            "InteractiveWorkload",
            "DistributedWorkload",
            "InferenceWorkload",
            "DistributedInferenceWorkload",
            "WorkloadRunner",
        )
    ),
}


def group_kind(obj: Obj) -> tuple[str, str]:
    """Return API group ("" for the core) and kind."""
    return str(obj.get("apiVersion", "")).rpartition("/")[0], str(obj.get("kind"))


def is_skipped(pod: Obj, owners: Sequence[Obj]) -> bool:
    """Return True if the pod or an owner asks that no group is made."""
    return any(annotations_of(each).get(SKIP_ANNOTATION) == "true" for each in (pod, *owners))


def without_wrappers(
    pod: Obj, owners: Sequence[Obj], labels_by_kind: Callable[[Obj], Mapping[str, str]] = lambda owner: {}
) -> tuple[Obj, Sequence[Obj]]:
    """Return the pod and its owners, the nearest first, without wrappers at the top. What their labels and annotations
    say passes to the object below, unless that says otherwise.

    ``labels_by_kind``: labels that an owner has by its kind.
    """
    while owners and group_kind(owners[-1]) in _WRAPPERS:
        wrapper, owners = owners[-1], owners[:-1]
        # Quirk of KAI, kept on purpose: what the wrapper's kind says goes before the labels of the wrapper.
        wrapper = labelled(wrapper, {**labels_of(wrapper), **labels_by_kind(wrapper)})
        if owners:
            owners = (*owners[:-1], inheriting(owners[-1], wrapper))
        else:
            pod = inheriting(pod, wrapper)
    return pod, owners


def inheriting(obj: Obj, other: Obj) -> Obj:
    """Return an object with the labels and annotations of another, where it has none of the name."""
    annotations = {**annotations_of(other), **annotations_of(obj)}
    found = labelled(obj, {**labels_of(other), **labels_of(obj)})
    return {**found, "metadata": {**meta(found), "annotations": annotations}}


def labelled(obj: Obj, labels: Mapping[str, str]) -> Obj:
    """Return an object with these labels in place of its own."""
    return {**obj, "metadata": {**meta(obj), "labels": labels}}


def pod_gang_of(pod: Obj, owners: Sequence[Obj]) -> Ref | None:
    """Return the PodGang of a pod of Grove. It is no owner of the pod, but says what the gang is."""
    name = labels_of(pod).get(_POD_GANG_LABEL)
    if not name or not any(group_kind(each)[0] == _GROVE for each in owners):
        return None
    return Ref("scheduler.grove.io/v1alpha1", "PodGang", meta(pod).get("namespace", ""), name)
