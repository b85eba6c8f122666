"""Kinds that make pods elsewhere are whole here, too."""

from __future__ import annotations

import pytest

from pumice.apiserver.cluster import Cluster
from pumice.apiserver.refusals import Refusal
from tests.unit.apiserver.bodies import body
from tests.unit.apiserver.worlds import cluster, create

API = {"Job": "batch/v1", "Deployment": "apps/v1", "DaemonSet": "apps/v1"}
WORLD = cluster()


@pytest.mark.parametrize("table", ["deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps"])
def test_a_workload_is_filled_in_and_its_template_too(table: str) -> None:
    resource = WORLD.registry.of_table(table)
    assert resource is not None
    spec = create(WORLD, body(resource))["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert spec["template"]["spec"]["dnsPolicy"] == "ClusterFirst" and container["imagePullPolicy"] == "IfNotPresent"
    assert table == "daemonsets.apps" or spec["replicas"] == 1


def test_what_is_said_stays(world: Cluster) -> None:
    made = create(
        world, {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "d"}, "spec": {"replicas": 0}}
    )
    assert made["spec"]["replicas"] == 0 and made["spec"]["strategy"]["type"] == "RollingUpdate"


WRONG = [
    5,
    [],
    {"template": 5},
    {"template": {"metadata": 5}},
    {"template": {"metadata": {"labels": 5}}},
    {"template": {"spec": {"containers": 5}}},
    {"template": {"spec": {"containers": [5]}}},
    {"template": {"spec": {"containers": [{"image": "i", "resources": 5}]}}},
    {"template": {"spec": {"containers": [{"image": "i"}], "initContainers": [None]}}},
]


@pytest.mark.parametrize("kind", ["Job", "Deployment", "DaemonSet"])
@pytest.mark.parametrize("spec", WRONG, ids=repr)
def test_what_is_no_workload_is_refused_by_its_field(world: Cluster, kind: str, spec: object) -> None:
    with pytest.raises(Refusal, match=r"spec\S*: Invalid value"):
        create(world, {"kind": kind, "apiVersion": API[kind], "metadata": {"name": "x"}, "spec": spec})


@pytest.mark.parametrize("spec", [{"ports": 5}, {"ports": [5]}, {"clusterIP": {}}, 5], ids=repr)
def test_what_is_no_service_is_refused_by_its_field(world: Cluster, spec: object) -> None:
    with pytest.raises(Refusal, match=r"spec\S*: Invalid value"):
        create(world, {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "x"}, "spec": spec})


@pytest.mark.parametrize("containers", [[{"name": "c"}], None, []])
def test_a_template_that_can_be_no_pod_is_kept_as_it_is(world: Cluster, containers: object) -> None:
    template = {"spec": {"containers": containers}} if containers is not None else {}
    job = {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "j"}, "spec": {"template": template}}
    made = create(world, job)["spec"]
    assert made["template"] == template and made["backoffLimit"] == 6


def test_a_job_has_labels_to_find_its_pods_by(world: Cluster) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    job = {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "j"}, "spec": {"template": template}}
    made = create(world, job)
    uid = made["metadata"]["uid"]
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    labels = made["spec"]["template"]["metadata"]["labels"]
    assert (labels["a"], labels["job-name"], labels["batch.kubernetes.io/controller-uid"]) == ("b", "j", uid)
