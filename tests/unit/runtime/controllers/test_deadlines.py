"""The deadline of a workload becomes the estimate of its gang."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.model.manifest import Decoder
from pumice.model.manifest.pod_spec import SpecCache
from pumice.model.workloads.estimate import ESTIMATE_ANNOTATION, job_estimate_s
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.controllers.deadlines import deadline_annotation
from pumice.runtime.controllers.kai.groups import GroupingSettings, group_for
from pumice.runtime.controllers.kai.rules import PodContext
from pumice.runtime.controllers.podgroups import GroupSettings, reconcile_pod
from pumice.runtime.controllers.writes import Create

Obj = dict[str, Any]
HOUR = {"activeDeadlineSeconds": 3600}


def owner(api: str, kind: str, spec: Obj, **metadata: Any) -> Obj:
    made = {"namespace": "ns", "name": "o", "uid": "uid-o", **metadata}
    return {"apiVersion": api, "kind": kind, "metadata": made, "spec": spec}


def pod(scheduler: str = "kai-scheduler", **metadata: Any) -> Obj:
    made = {"namespace": "ns", "name": "p", "uid": "uid-p", **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": {"schedulerName": scheduler}}


def estimate(group: Obj) -> float:
    read = Decoder().decode(group)
    assert isinstance(read, PodGroup)
    return job_estimate_s(read, ())


@pytest.mark.parametrize(
    "top",
    [
        owner("trainer.kubeflow.org/v1alpha1", "TrainJob", HOUR),
        owner("ray.io/v1", "RayJob", HOUR),
        owner("batch/v1", "Job", HOUR),
        owner("kubeflow.org/v1", "PyTorchJob", {"runPolicy": HOUR, "pytorchReplicaSpecs": {"Worker": {}}}),
    ],
    ids=lambda each: each["kind"],
)
def test_a_group_of_kai_has_the_deadline_of_its_owner(top: Obj) -> None:
    found = group_for(pod(), PodContext([top]), GroupingSettings())
    assert found is not None and estimate(found.group) == 3600


def test_a_group_of_volcano_has_the_deadline_of_its_owner() -> None:
    job = owner("batch/v1", "Job", HOUR)
    refs = [{"apiVersion": "batch/v1", "kind": "Job", "name": "o", "uid": "uid-o", "controller": True}]
    writes = reconcile_pod(pod("volcano", ownerReferences=refs), job, None, GroupSettings(), SpecCache())
    (group,) = [each.obj for each in writes if isinstance(each, Create)]
    assert estimate(group) == 3600


@pytest.mark.parametrize(
    ("member", "top"),
    [
        (pod(annotations={ESTIMATE_ANNOTATION: "1m"}), owner("ray.io/v1", "RayJob", HOUR)),
        (pod(), owner("ray.io/v1", "RayJob", HOUR, annotations={ESTIMATE_ANNOTATION: "1m"})),
        ({**pod(), "spec": {"activeDeadlineSeconds": 60}}, owner("ray.io/v1", "RayJob", HOUR)),
        (pod(), owner("ray.io/v1", "RayJob", {"activeDeadlineSeconds": "soon"})),
        (pod(), owner("ray.io/v1", "RayJob", {"activeDeadlineSeconds": -1})),
        (pod(), owner("ray.io/v1", "RayJob", {})),
    ],
    ids=["the pod says it", "the owner says it", "the pod has a deadline", "no number", "negative", "none"],
)
def test_no_deadline_is_written(member: Obj, top: Obj) -> None:
    assert deadline_annotation(member, [top]) == {}


def test_the_shortest_deadline_of_several_owners_counts() -> None:
    owners = [owner("batch/v1", "Job", {"activeDeadlineSeconds": 90}), owner("ray.io/v1", "RayJob", HOUR)]
    assert deadline_annotation(pod(), owners) == {ESTIMATE_ANNOTATION: "90s"}


def test_an_absurd_deadline_is_bounded() -> None:
    (text,) = deadline_annotation(pod(), [owner("ray.io/v1", "RayJob", {"activeDeadlineSeconds": 10**15})]).values()
    assert text == f"{366 * 86_400}s"
