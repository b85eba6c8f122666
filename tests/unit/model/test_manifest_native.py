"""Kubernetes' own PodGroups, read: in each version, with what is unreadable in them, and how pods name them."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.model.manifest import Decoder, ManifestError
from pumice.model.pod import GROUP_NAME_ANNOTATION, NATIVE_GROUP_MARK, Pod
from pumice.model.workloads.gang import Gang, TopologyConstraint
from pumice.model.workloads.native_group import NATIVE_VERSIONS, NativeGroup
from pumice.model.workloads.podgroup import OUT_OF_REACH, PodGroup

Raw = dict[str, Any]
READ = Decoder()
GANG = {"gang": {"minCount": 4}}


def group(version: str = "v1beta1", status: Raw | None = None, **spec: Any) -> Raw:
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "n"},
        "spec": {"schedulingPolicy": GANG, **spec},
        "status": status or {},
    }


def pod(group_name: Any, **annotations: str) -> Raw:
    spec = {"containers": [{"name": "c", "image": "i"}], "schedulingGroup": {"podGroupName": group_name}}
    metadata = {"name": "p", "namespace": "n", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def read(obj: Raw) -> PodGroup:
    found = READ.decode(obj)
    assert isinstance(found, PodGroup)
    return found


@pytest.mark.parametrize("version", NATIVE_VERSIONS)
def test_a_gang_of_every_version_has_its_minimum(version: str) -> None:
    found = read(group(version, priorityClassName="high"))
    assert (found.key, found.min_member, found.priority_class_name) == ("n/g", 4, "high")
    assert found.native == NativeGroup(f"scheduling.k8s.io/{version}")
    assert found.gang == Gang()


def test_a_group_that_is_being_deleted_and_still_protected_goes_on_being_the_gang_of_its_pods() -> None:
    obj = group()
    protection = ["scheduling.k8s.io/podgroup-protection"]
    obj["metadata"] |= {"deletionTimestamp": "2026-11-01T00:00:00Z", "finalizers": protection}
    assert read(obj).min_member == 4


def test_conditions_keep_the_generation_that_they_are_about() -> None:
    obj = group(status={"conditions": [{"type": "DisruptionTarget", "status": "True", "observedGeneration": 2}]})
    obj["metadata"]["generation"] = 3
    found = read(obj)
    assert found.native is not None and found.native.generation == 3
    assert [each.observed_generation for each in found.status.conditions] == [2]


def test_pods_of_the_basic_policy_are_scheduled_one_by_one() -> None:
    found = read(group(schedulingPolicy={"basic": {}}))
    assert found.min_member == 1
    assert found.native is not None and not found.native.is_gang


@pytest.mark.parametrize(
    "constraints", [{"topology": [{"key": "rack"}]}, {"topologyConstraints": [{"topologyKey": "rack"}]}]
)
def test_a_topology_is_one_domain_of_a_node_label(constraints: Raw) -> None:
    found = read(group(schedulingConstraints=constraints))
    assert found.gang == Gang(topology=TopologyConstraint("", "rack"))


@pytest.mark.parametrize(
    ("labels", "annotations", "queue"),
    [
        ({}, {}, "default"),
        ({"kai.scheduler/queue": "a"}, {}, "a"),
        ({"kai.scheduler/queue": "a"}, {"scheduling.volcano.sh/queue-name": "b"}, "b"),
    ],
)
def test_the_queue_is_that_of_the_annotation_then_of_the_label(labels: Raw, annotations: Raw, queue: str) -> None:
    obj = group()
    obj["metadata"] |= {"labels": labels, "annotations": annotations}
    assert read(obj).queue == queue


@pytest.mark.parametrize(
    ("version", "type_", "status", "phase"),
    [
        ("v1beta1", "PodGroupInitiallyScheduled", "True", "Running"),
        ("v1alpha2", "PodGroupScheduled", "True", "Running"),
        ("v1beta1", "PodGroupInitiallyScheduled", "False", "Pending"),
        ("v1beta1", "DisruptionTarget", "True", "Pending"),
    ],
)
def test_a_group_runs_once_its_minimum_was_scheduled(version: str, type_: str, status: str, phase: str) -> None:
    found = read(group(version, {"conditions": [{"type": type_, "status": status}]}))
    assert found.status.phase == phase


@pytest.mark.parametrize(
    ("version", "type_"), [("v1alpha2", "PodGroupScheduled"), ("v1alpha3", "PodGroupInitiallyScheduled")]
)
def test_the_condition_has_the_name_of_its_version(version: str, type_: str) -> None:
    native = read(group(version)).native
    assert native is not None and native.condition == type_


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"schedulingPolicy": {}}, "spec.schedulingPolicy: found an empty object, wanted one of basic and gang"),
        ({"schedulingPolicy": None}, "spec.schedulingPolicy: found nothing, wanted one of basic and gang"),
        (
            {"schedulingPolicy": {"basic": {}, **GANG}},
            "spec.schedulingPolicy: found basic and gang, wanted one of basic and gang",
        ),
        ({"schedulingPolicy": {"gang": {}}}, "spec.schedulingPolicy.gang.minCount: found nothing, wanted an integer"),
        ({"schedulingPolicy": {"gang": {"minCount": 0}}}, "spec.schedulingPolicy.gang.minCount: found 0, wanted"),
        ({"schedulingConstraints": {"topology": [{}]}}, "spec.schedulingConstraints.topology[0].key: found nothing"),
        (
            {"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
            "spec.schedulingConstraints.topology: found 2 constraints, wanted at most one",
        ),
        ({"disruptionMode": {}}, "spec.disruptionMode: found an empty object, wanted one of single and all"),
    ],
)
def test_what_is_unreadable_is_named_and_the_group_is_held(spec: Raw, why: str) -> None:
    with pytest.raises(ManifestError) as error:
        READ.decode(group(**spec))
    assert f"PodGroup n/g: {why}" in str(error.value)
    found = READ.read(group(**spec)).value
    assert isinstance(found, PodGroup)
    assert (found.key, found.min_member, found.quarantined) == ("n/g", OUT_OF_REACH, True)


@pytest.mark.parametrize(
    ("mode", "whole"), [({"all": {}}, True), ({"single": {}}, False), ("PodGroup", True), ("Pod", False), (None, False)]
)
def test_whether_pods_leave_only_together(mode: Any, whole: bool) -> None:
    native = read(group(disruptionMode=mode)).native
    assert native is not None and native.leaves_whole is whole


@pytest.mark.parametrize(("policy", "never"), [("Never", True), ("PreemptLowerPriority", False), (None, False)])
def test_whether_nothing_is_evicted_for_it(policy: Any, never: bool) -> None:
    assert read(group(preemptionPolicy=policy)).never_preempts is never


@pytest.mark.parametrize("annotations", [{}, {GROUP_NAME_ANNOTATION: "other"}, {"pod-group-name": "other"}])
def test_the_group_in_a_pod_s_spec_counts_before_annotations(annotations: dict[str, str]) -> None:
    found = READ.decode(pod("g", **annotations))
    assert isinstance(found, Pod) and found.group_key == "n/g"


def test_a_pod_whose_group_cannot_be_read_is_refused() -> None:
    with pytest.raises(ManifestError, match=r"Pod n/p: spec.schedulingGroup.podGroupName: found 3, wanted a string"):
        READ.decode(pod(3))


@pytest.mark.parametrize(
    ("annotations", "mark"),
    [
        pytest.param({}, "", id="alone"),
        pytest.param({"scheduling.k8s.io/group-name": "g"}, "", id="with the same name as Volcano's"),
        pytest.param({"scheduling.k8s.io/group-name": "v"}, "v", id="with another one of Volcano's"),
        pytest.param({"pod-group-name": "k"}, "k", id="with another one of KAI's"),
        pytest.param({"pumice.dev/scheduling-group": "x"}, "", id="with the mark"),
    ],
)
def test_a_pod_is_marked_that_names_its_group_in_its_spec(annotations: Raw, mark: str) -> None:
    found = READ.decode(pod("g", **annotations))
    assert isinstance(found, Pod)
    assert (found.group_key, found.annotations[NATIVE_GROUP_MARK]) == ("n/g", mark)


def test_the_mark_of_an_author_is_none() -> None:
    raw = pod("", **{"pumice.dev/scheduling-group": "x"})
    found = READ.decode(raw | {"spec": {"containers": [{"name": "c", "image": "i"}]}})
    assert isinstance(found, Pod) and NATIVE_GROUP_MARK not in found.annotations


@pytest.mark.parametrize("version", NATIVE_VERSIONS)
def test_claims_that_pods_of_a_group_share_are_read_with_those_that_were_made(version: str) -> None:
    claims = [
        {"name": "a", "resourceClaimTemplateName": "t"},
        {"name": "b", "resourceClaimName": "own"},
    ]
    status = {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "g-a-x"}]}
    native = read(group(version, status, resourceClaims=claims)).native
    assert native is not None
    assert [(each.entry, each.source, each.made) for each in native.claims] == [
        ("a", "template/t", "g-a-x"),
        ("b", "own", ""),
    ]


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ([{"name": "a"}], r"spec\.resourceClaims\[0\]: found .*, wanted one of resourceClaimName and"),
        ([{"name": str(i), "resourceClaimName": "c"} for i in range(5)], r"found a list of 5, wanted at most 4"),
    ],
)
def test_claims_of_a_group_that_cannot_be_read_are_named(claims: Any, why: str) -> None:
    with pytest.raises(ManifestError, match=why):
        READ.decode(group(resourceClaims=claims))
