"""What typed clients want: canonical quantities, whole objects, the words of a real server. With the ``kubernetes``
client, which raises where a field is not there that a real server always gives."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kubernetes.aio import client as typed

from pumice.apiserver.cluster import Cluster
from pumice.apiserver.kinds.amounts import canonical
from pumice.apiserver.refusals import Refusal
from tests.unit.apiserver.conftest import Client
from tests.unit.apiserver.worlds import create, node, pod, settle


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (1, "1"),
        ("1000m", "1"),
        ("0.5", "500m"),
        (0.1, "100m"),
        ("1500m", "1500m"),
        ("12000", "12k"),
        ("1.5Gi", "1536Mi"),
        ("1024Mi", "1Gi"),
        ("0.5Ki", "512"),
        ("1e3", "1e3"),
        ("1234e-2", "12340e-3"),
        ("0", "0"),
        ("0.0000000001", "1n"),
        ("-2000m", "-2"),
        ("what", "what"),
        (True, True),
    ],
)
def test_quantities_are_kept_as_a_real_server_writes_them(given: Any, kept: Any) -> None:
    assert canonical(given) == kept
    assert canonical(kept) == kept


@pytest.fixture
async def api(client: Client) -> AsyncIterator[typed.ApiClient]:
    """A client with types for all objects."""
    configuration = typed.Configuration()
    configuration.host = str(client._base_url).rstrip("/")
    async with typed.ApiClient(configuration) as opened:
        yield opened


async def test_nodes_and_pods_are_read_by_type(world: Cluster, api: typed.ApiClient) -> None:
    """``cpu: 1`` without quotes made the whole list unreadable, and so did a node without a machine ID."""
    create(world, node("n"))
    resources = {"requests": {"cpu": 1, "memory": "1.5Gi"}, "limits": {"cpu": "2000m"}}
    create(world, pod("p", containers=[{"name": "c", "image": "i:1", "resources": resources}], nodeName="n"))
    settle(world)
    core = typed.CoreV1Api(api)
    (found,) = (await core.list_node()).items
    assert found.status.node_info.boot_id == "" and found.status.node_info.kubelet_version
    (one,) = (await core.list_namespaced_pod("default")).items
    assert one.spec.containers[0].resources.requests == {"cpu": "1", "memory": "1536Mi"}
    assert one.spec.containers[0].resources.limits == {"cpu": "2"}
    assert one.status.phase == "Running"


async def test_every_kind_of_kubernetes_own_is_listed_by_type(world: Cluster, api: typed.ApiClient) -> None:
    create(world, pod("p"))
    create(world, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c"}, "data": {"a": "b"}})
    core, apps, batch = typed.CoreV1Api(api), typed.AppsV1Api(api), typed.BatchV1Api(api)
    lists = [
        *(
            core.list_pod_for_all_namespaces,
            core.list_node,
            core.list_namespace,
            core.list_config_map_for_all_namespaces,
        ),
        *(
            core.list_secret_for_all_namespaces,
            core.list_service_for_all_namespaces,
            core.list_event_for_all_namespaces,
        ),
        *(core.list_service_account_for_all_namespaces, core.list_resource_quota_for_all_namespaces),
        *(apps.list_deployment_for_all_namespaces, apps.list_stateful_set_for_all_namespaces),
        *(apps.list_replica_set_for_all_namespaces, apps.list_daemon_set_for_all_namespaces),
        batch.list_job_for_all_namespaces,
        typed.SchedulingV1Api(api).list_priority_class,
        typed.PolicyV1Api(api).list_pod_disruption_budget_for_all_namespaces,
        typed.CoordinationV1Api(api).list_lease_for_all_namespaces,
        typed.RbacAuthorizationV1Api(api).list_cluster_role,
        typed.StorageV1Api(api).list_storage_class,
        typed.ApiextensionsV1Api(api).list_custom_resource_definition,
    ]
    for ask in lists:
        assert (await ask()).metadata.resource_version


async def test_what_is_written_by_type_comes_back(world: Cluster, api: typed.ApiClient) -> None:
    core = typed.CoreV1Api(api)
    quantities = typed.V1ResourceRequirements(requests={"cpu": "500m"})
    container = typed.V1Container(name="c", image="i:1", resources=quantities)
    body = typed.V1Pod(metadata=typed.V1ObjectMeta(name="mine"), spec=typed.V1PodSpec(containers=[container]))
    made = await core.create_namespaced_pod("default", body)
    made.metadata.labels = {"a": "b"}
    changed = await core.replace_namespaced_pod("mine", "default", made)
    assert changed.metadata.labels == {"a": "b"} and changed.spec.containers[0].resources.requests == {"cpu": "500m"}
    assert (await core.delete_namespaced_pod("mine", "default")).metadata.name == "mine"


async def test_who_asks_is_said(api: typed.ApiClient) -> None:
    """``kubectl auth whoami``"""
    answer = await typed.AuthenticationV1Api(api).create_self_subject_review(typed.V1SelfSubjectReview())
    assert answer.status.user_info.username == "pumice"


async def test_a_path_that_is_not_there_has_details(client: Client) -> None:
    async with client.get("/apis/nowhere.example.com/v1/things") as answer:
        reports = await answer.json()
    assert (answer.status, reports["reason"], reports["details"]) == (404, "NotFound", {})


def test_limits_below_requests_are_refused(world: Cluster) -> None:
    resources = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
    with pytest.raises(Refusal, match=r'requests: Invalid value: "2": must be less than or equal to cpu limit of 1'):
        create(world, pod("p", containers=[{"name": "c", "image": "i:1", "resources": resources}]))


def test_plain_texts_of_a_secret_become_data(world: Cluster) -> None:
    secret = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}, "stringData": {"word": "open"}}
    made = create(world, secret)
    assert made["data"] == {"word": base64.b64encode(b"open").decode()}
    assert "stringData" not in made and made["type"] == "Opaque"
