"""Pods from decoded objects: what is read, what is refused and in which words, and that equal specs are one object."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from pumice.model.manifest import Decoder, ManifestError, UnsupportedKind
from pumice.model.pod import EMPTY_MAP, HostPort, LabelSelector, Pod, PodSpec, Requirement, Toleration

Obj = dict[str, Any]


def pod(spec: Obj | None = None, metadata: Obj | None = None, status: Obj | None = None) -> Obj:
    base = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", "namespace": "bench", "uid": "u1", **(metadata or {})},
        "spec": {**base, **(spec or {})},
        "status": status or {},
    }


def decoded(obj: Obj) -> Pod:
    found = Decoder().decode(obj)
    assert isinstance(found, Pod)
    return found


def spec_of(**spec: Any) -> PodSpec:
    return decoded(pod(spec)).spec


def test_what_a_plain_pod_comes_to() -> None:
    found = decoded(
        pod(
            {"schedulerName": "other", "nodeName": "n1", "schedulingGates": [{"name": "g"}]},
            {
                "labels": {"a": "b"},
                "annotations": {"scheduling.k8s.io/group-name": "pg", "volcano.sh/task-spec": "worker"},
                "creationTimestamp": "2024-01-01T00:00:01Z",
                "deletionTimestamp": "2024-01-01T01:00:00+01:00",
                "ownerReferences": [{"kind": "A", "name": "a", "uid": "1"}, {"kind": "B", "controller": True}],
                "resourceVersion": "7",
            },
            {"phase": "Running", "startTime": "2024-01-01T00:00:02.5Z", "nominatedNodeName": "n2"},
        )
    )
    assert (found.key, found.group_key, found.role) == ("bench/x", "bench/pg", "worker")
    assert (found.scheduler_name, found.node_name, found.nominated_node) == ("other", "n1", "n2")
    assert (found.creation, found.deletion, found.start_time) == (1704067201.0, 1704067200.0, 1704067202.5)
    assert (found.phase, found.gates, found.owner, found.resource_version) == ("Running", ("g",), ("B", "", ""), "7")
    assert (found.spec.request.milli_cpu, found.spec.request.memory) == (1000.0, 2.0**30)
    assert found.spec.request.get("pods") == 1.0


def test_what_is_not_there_and_what_is_null_are_the_same() -> None:
    bare: Obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}
    nulls = {
        **bare,
        "metadata": {"name": "x", "namespace": None, "labels": None, "annotations": None, "creationTimestamp": None},
        "spec": {"containers": None, "tolerations": None, "affinity": None, "nodeSelector": None, "priority": None},
        "status": None,
    }
    assert decoded(bare) == decoded(nulls)
    found = decoded(bare)
    assert (found.namespace, found.uid, found.phase, found.scheduler_name) == (
        "default",
        "default/x",
        "Pending",
        "volcano",
    )
    assert found.labels is EMPTY_MAP
    assert (found.spec.container_count, found.spec.qos) == (0, "BestEffort")


def test_the_second_group_annotation_is_read_if_the_first_is_absent() -> None:
    second = {"scheduling.volcano.sh/group-name": "two"}
    assert decoded(pod(metadata={"annotations": second})).group_key == "bench/two"
    both = second | {"scheduling.k8s.io/group-name": "one"}
    assert decoded(pod(metadata={"annotations": both})).group_key == "bench/one"


# -- the spec


def test_equal_specs_are_one_object_whatever_else_differs() -> None:
    decoder = Decoder()
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "host"}]}}
    one = decoder.decode(pod({"nodeName": "n1", "affinity": affinity, "volumes": [{"name": "a", "projected": {}}]}))
    two = pod({"affinity": affinity, "volumes": [{"name": "b", "projected": {}}]}, {"name": "y", "uid": "u2"})
    two["spec"]["containers"][0]["resources"]["requests"] = {"memory": "1024Mi", "cpu": 1}
    two["spec"]["containers"][0]["env"] = [{"name": "RANK", "value": "2"}]
    assert isinstance(one, Pod)
    other = decoder.decode(two)
    assert isinstance(other, Pod)
    assert other.spec is one.spec
    elsewhere = decoder.decode(pod({"affinity": affinity}, {"namespace": "other"}))
    assert isinstance(elsewhere, Pod)
    assert elsewhere.spec != one.spec


def test_a_small_cache_forgets_and_still_answers() -> None:
    decoder = Decoder(specs_max=2)
    for i in (*range(5), *range(5)):
        found = decoder.decode(pod({"priority": i}))
        assert isinstance(found, Pod)
        assert found.spec.priority == i


def test_decoding_leaves_the_object_alone() -> None:
    obj = pod({"affinity": {}, "tolerations": [{"operator": "Exists"}]}, {"labels": {"a": "b"}, "annotations": {}})
    before = copy.deepcopy(obj)
    found = decoded(obj)
    assert obj == before
    obj["metadata"]["labels"]["a"] = "c"
    assert found.labels == {"a": "b"}


@pytest.mark.parametrize(
    ("containers", "qos"),
    [
        ([{}], "BestEffort"),
        ([{"requests": {"cpu": "0"}}], "BestEffort"),
        ([{"requests": {"cpu": "1"}}], "Burstable"),
        ([{"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1000m", "memory": "1"}}], "Guaranteed"),
        ([{"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "2", "memory": "1"}}], "Burstable"),
        ([{"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1", "memory": "1"}}, {}], "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1"}}], "Guaranteed"),
        ([{"requests": {"nvidia.com/gpu": "1"}}], "BestEffort"),
    ],
)
def test_quality_of_service(containers: list[Obj], qos: str) -> None:
    assert spec_of(containers=[{"name": f"c{i}", "resources": r} for i, r in enumerate(containers)]).qos == qos


def test_who_only_has_limits_asks_for_as_much() -> None:
    found = spec_of(
        containers=[
            {"name": "a", "resources": {"limits": {"cpu": "2", "nvidia.com/gpu": "1"}, "requests": {"cpu": "1"}}},
            {"name": "b", "resources": {"limits": {"memory": "1Gi"}}},
        ],
        initContainers=[{"name": "i", "resources": {"limits": {"cpu": "4"}}}],
    ).request
    assert (found.milli_cpu, found.memory, found.get("nvidia.com/gpu")) == (4000.0, 2.0**30, 1000.0)


def test_limits_of_a_whole_pod_are_its_requests_where_no_container_names_one() -> None:
    containers = [{"name": "a", "resources": {"requests": {"memory": "1Gi"}}}]
    found = spec_of(containers=containers, resources={"limits": {"cpu": "2", "memory": "2Gi"}}).request
    assert (found.milli_cpu, found.memory) == (2000.0, 2.0**30)


def test_host_ports_of_containers_and_sidecars() -> None:
    ports = [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81}]
    first = [
        {"name": "i", "ports": [{"containerPort": 1, "hostPort": 1}]},
        {"name": "s", "restartPolicy": "Always", "ports": [{"containerPort": 2, "hostPort": 2, "protocol": "UDP"}]},
    ]
    found = spec_of(containers=[{"name": "c", "ports": ports}], initContainers=first)
    assert found.host_ports == (HostPort(8080), HostPort(2, "UDP"))
    assert (found.has_sidecar, found.container_count) == (True, 3)
    assert spec_of(containers=[{"name": "c", "ports": ports}], hostNetwork=True).host_ports == (
        HostPort(8080),
        HostPort(81),
    )


def test_claims() -> None:
    volumes = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "b", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "c", "emptyDir": {}},
    ]
    claims = [{"name": "r", "resourceClaimName": "own"}, {"name": "t", "resourceClaimTemplateName": "gpu"}]
    found = spec_of(volumes=volumes, resourceClaims=claims)
    assert found.claim_names == ("data", "x-b")
    assert found.resource_claims == ("own", "template/gpu")


def test_pod_affinity_means_its_own_namespace_unless_it_says_otherwise() -> None:
    terms = [
        {"topologyKey": "k", "labelSelector": {"matchLabels": {"b": "2", "a": "1"}}},
        {"topologyKey": "k", "namespaces": ["n1", "n2"]},
        {"topologyKey": "k", "namespaceSelector": {}},
    ]
    found = spec_of(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})
    own, named, every = found.affinity.pod_required
    assert own.namespaces == ("bench",)
    assert own.selector == LabelSelector((Requirement("a", "In", ("1",)), Requirement("b", "In", ("2",))))
    assert (named.namespaces, named.selector) == (("n1", "n2"), None)
    assert (every.namespaces, every.namespace_selector) == ((), LabelSelector())


def test_match_label_keys_are_the_pods_own_values() -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
        "matchLabelKeys": ["hash", "absent"],
    }
    decoder = Decoder()
    for value in ("1", "2"):
        found = decoder.decode(pod({"topologySpreadConstraints": [constraint]}, {"labels": {"hash": value}}))
        assert isinstance(found, Pod)
        wanted = (Requirement("app", "In", ("a",)), Requirement("hash", "In", (value,)))
        assert found.spec.spread[0].selector == LabelSelector(wanted)


def test_required_node_affinity_without_terms_is_not_the_same_as_none() -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    assert spec_of(affinity={"nodeAffinity": {}}).affinity.node_required is None
    assert spec_of(affinity={"nodeAffinity": {required: {"nodeSelectorTerms": None}}}).affinity.node_required == ()


def test_tolerations() -> None:
    found = spec_of(tolerations=[{"operator": "Exists"}, {"key": "k", "value": "v", "effect": "NoExecute"}])
    assert found.tolerations == (Toleration(operator="Exists"), Toleration("k", "Equal", "v", "NoExecute"))


# -- what is refused


def _container(resources: Obj) -> Obj:
    return pod({"containers": [{"name": "c", "resources": resources}]})


def _node_affinity(requirement: Obj) -> Obj:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    return pod({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}})


REFUSED: list[tuple[Obj, str]] = [
    (
        _container({"requests": {"cpu": "-1"}}),
        'Pod bench/x: spec.containers[0].resources.requests.cpu: found "-1", wanted a quantity >= 0',
    ),
    (
        pod({"tolerations": [{"value": "v"}]}),
        "spec.tolerations[0].operator: found nothing, wanted Exists if there is no key",
    ),
    (_container({"requests": {"cpu": 10**18}}), "spec.containers[0].resources.requests.cpu: found 1000000000000000000"),
    (_container({"requests": {"cpu": "10E"}}), "the bound of an int64"),
    (_container({"limits": {"nvidia.com/gpu": "many"}}), 'resources.limits.nvidia.com/gpu: found "many"'),
    (_container({"requests": {"memory": True}}), "requests.memory: found true, wanted a quantity >= 0"),
    (_container({"requests": ["cpu"]}), "resources.requests: found a list of 1, wanted an object"),
    (pod({"containers": {"name": "c"}}), "spec.containers: found an object, wanted a list"),
    (pod({"containers": ["c"]}), 'spec.containers[0]: found "c", wanted an object'),
    (pod({"overhead": {"cpu": "-1m"}}), 'spec.overhead.cpu: found "-1m"'),
    (pod({"priority": 1.5}), "spec.priority: found 1.5, wanted an integer from -2147483648 to 2147483647"),
    (pod({"priority": True}), "spec.priority: found true"),
    (pod({"priority": 2**31}), "spec.priority: found 2147483648"),
    (pod({"preemptionPolicy": "Always"}), "wanted one of Never, PreemptLowerPriority"),
    (pod(metadata={"name": None}), "Pod bench: metadata.name: found nothing, wanted a name of 1 to 253 characters"),
    (pod(metadata={"name": "n" * 254}), "(254 characters), wanted a name of 1 to 253 characters"),
    (pod(metadata={"name": "a/b"}), "metadata.name"),
    (pod(metadata={"namespace": "a b"}), "metadata.namespace"),
    (pod(metadata={"labels": {"a": 1}}), "metadata.labels.a: found 1, wanted a string"),
    (pod(metadata={"creationTimestamp": "yesterday"}), "wanted an RFC 3339 time such as 2024-01-01T00:00:00Z"),
    (pod(metadata={"creationTimestamp": "2023-02-29T00:00:00Z"}), "metadata.creationTimestamp"),
    (_node_affinity({"key": "a", "operator": "Like", "values": ["b"]}), 'matchExpressions[0].operator: found "Like"'),
    (_node_affinity({"key": "a", "operator": "In"}), "wanted at least one value with In"),
    (_node_affinity({"key": "a", "operator": "Gt", "values": ["x"]}), "wanted one integer with Gt"),
    (
        pod({"tolerations": [{"operator": "In"}]}),
        'spec.tolerations[0].operator: found "In", wanted one of Equal, Exists',
    ),
    (pod({"topologySpreadConstraints": [{"topologyKey": "z"}]}), "spec.topologySpreadConstraints[0].maxSkew"),
    (pod({"resourceClaims": [{"name": "r"}]}), "wanted one of resourceClaimName and resourceClaimTemplateName"),
    (pod(status={"phase": 3}), "status.phase: found 3, wanted a string"),
    (pod(status={"conditions": [{"lastTransitionTime": "?"}]}), "status.conditions[0].lastTransitionTime"),
]


@pytest.mark.parametrize(("obj", "text"), REFUSED, ids=[text for _, text in REFUSED])
def test_what_is_wrong_is_named(obj: Obj, text: str) -> None:
    decoder = Decoder()
    for _ in range(2):  # a failure is not remembered as a success
        with pytest.raises(ManifestError) as caught:
            decoder.decode(obj)
        assert text in str(caught.value)
        assert str(caught.value).startswith("Pod ")


def test_ten_to_the_fifteenth_cores_still_fit() -> None:
    assert spec_of(containers=[{"resources": {"requests": {"cpu": str(9 * 10**15)}}}]).request.milli_cpu == 9e18


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        ([], "object: found a list of 0, wanted an object with apiVersion and kind"),
        (None, "found nothing"),
        ({}, "object (no name): apiVersion: found nothing, wanted a string that is not empty"),
        ({"apiVersion": "v1", "kind": 3, "metadata": {"name": "a"}}, "object a: kind: found 3"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": "x"}, 'metadata: found "x", wanted an object'),
    ],
)
def test_what_is_no_object(obj: object, text: str) -> None:
    with pytest.raises(ManifestError) as caught:
        Decoder().decode(obj)
    assert text in str(caught.value)


def test_an_unsupported_kind_says_so() -> None:
    with pytest.raises(UnsupportedKind) as caught:
        Decoder().decode({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}})
    assert caught.value.kind == "v1 Service"
    assert str(caught.value) == "Service s: found v1 Service, wanted a kind that Pumice reads"


def test_values_survive_json() -> None:
    """What a decoder gives depends on the JSON only, not on which objects in memory are the same."""
    shared: Obj = {"requests": {"cpu": "1"}}
    obj = pod({"containers": [{"name": "a", "resources": shared}, {"name": "b", "resources": shared}]})
    decoder = Decoder()
    one, two = decoder.decode(obj), decoder.decode(json.loads(json.dumps(obj)))
    assert one == two
    assert isinstance(one, Pod) and isinstance(two, Pod)
    assert one.spec is two.spec


@pytest.mark.parametrize(
    ("phase", "statuses", "ended"),
    [
        pytest.param("Succeeded", ["00:00:05", "00:00:09", "00:00:07"], 1704067209.0, id="when the last one did"),
        pytest.param("Failed", ["00:00:05", None], 1704067205.0, id="one says nothing"),
        pytest.param("Failed", [None], None, id="none says anything"),
        pytest.param("Succeeded", [], None, id="no containers"),
        pytest.param("Running", ["00:00:05"], None, id="it still runs"),
    ],
)
def test_when_a_pod_ended(phase: str, statuses: list[str | None], ended: float | None) -> None:
    states = [{"terminated": {"finishedAt": f"2024-01-01T{at}Z"}} if at else {"waiting": {}} for at in statuses]
    found = decoded(
        pod(status={"phase": phase, "containerStatuses": [{"name": "c", "state": each} for each in states]})
    )
    assert found.finish_time == ended
