"""Kinds that make pods elsewhere are whole here, too."""

from __future__ import annotations

import pytest

from pumice.apiserver.cluster import Cluster
from tests.unit.apiserver.bodies import body
from tests.unit.apiserver.worlds import cluster, create

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


@pytest.mark.parametrize("containers", [5, [5], [{"name": "c"}], [{"image": 5}], None])
def test_a_template_that_can_be_no_pod_is_kept_as_it_is(world: Cluster, containers: object) -> None:
    template = {"spec": {"containers": containers}}
    job = {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "j"}, "spec": {"template": template}}
    made = create(world, job)["spec"]
    assert made["template"] == template and made["backoffLimit"] == 6


@pytest.mark.parametrize("kind", ["Service", "Job", "Deployment", "DaemonSet"])
@pytest.mark.parametrize("spec", [5, [], None, {"template": 5}, {"template": {"metadata": 5}}, {"ports": 5}], ids=repr)
def test_nothing_that_is_sent_is_a_fault_of_the_server(world: Cluster, kind: str, spec: object) -> None:
    api = {"Service": "v1", "Job": "batch/v1"}.get(kind, "apps/v1")
    made = create(world, {"kind": kind, "apiVersion": api, "metadata": {"name": "x"}, "spec": spec})
    assert isinstance(made["spec"], dict)


def test_a_job_has_labels_to_find_its_pods_by(world: Cluster) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    job = {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "j"}, "spec": {"template": template}}
    made = create(world, job)
    uid = made["metadata"]["uid"]
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    labels = made["spec"]["template"]["metadata"]["labels"]
    assert (labels["a"], labels["job-name"], labels["batch.kubernetes.io/controller-uid"]) == ("b", "j", uid)
