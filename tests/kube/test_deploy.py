"""What is in deploy/ against a real API server: it takes CRDs and manifests, and the roles are enough."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import pytest
import yaml

from pumice.kube.api.access import bearer
from pumice.kube.api.client import Client
from pumice.kube.api.errors import ApiError
from pumice.kube.api.kinds import LEASES, PODS
from pumice.kube.controllers.leading import Controllers
from tests.kube.controllers.test_controllers import JobOnServer, job
from tests.kube.objects import CRDS
from tests.kube.reflecting import FAST
from tests.kube.server import ApiServer, find_assets
from tests.unit.deploy.helm import render

DEPLOY = CRDS.parent
NAMESPACE = "volcano-system"
Obj = dict[str, Any]
Kubectl = Callable[..., str]


@pytest.fixture(scope="module")
def kubectl(server: ApiServer) -> Kubectl:
    program = find_assets("kubectl") / "kubectl"
    config = server.kubeconfig()

    def run(*words: str, given: str = "") -> str:
        command = [program, f"--kubeconfig={config}", f"--cache-dir={server.folder}/kubectl", *words]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def by_name(objects: list[Obj]) -> dict[str, Obj]:
    return {f"{obj['kind']}/{obj['metadata']['name']}": obj for obj in objects}


def documents(text: str) -> list[Obj]:
    return [obj for obj in yaml.safe_load_all(text) if obj]


def test_crds_are_applied_by_the_server_and_again(kubectl: Kubectl) -> None:
    names = [f"crd/{yaml.safe_load(path.read_text())['metadata']['name']}" for path in sorted(CRDS.glob("*.yaml"))]
    for _ in range(2):
        kubectl("apply", "--server-side", f"-f={CRDS}")
        kubectl("wait", "--for=condition=Established", "--timeout=30s", *names)
    found = json.loads(kubectl("get", "-o=json", *names))
    for crd in found["items"]:
        wrong = [c for c in crd["status"]["conditions"] if c["type"] == "NonStructuralSchema"]
        assert wrong == [], crd["metadata"]["name"]


# -- manifests


def test_the_chart_is_the_kustomize_base(kubectl: Kubectl) -> None:
    base = by_name(documents(kubectl("kustomize", str(DEPLOY / "base"))))
    assert base.pop(f"Namespace/{NAMESPACE}"), "Helm makes the namespace itself"
    chart = by_name(render(DEPLOY / "chart", NAMESPACE))
    assert chart.keys() == base.keys()
    for name, obj in chart.items():
        assert obj == base[name]


def test_everything_is_applied_at_once(kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", f"-k={DEPLOY}")
    there = json.loads(kubectl("get", f"--namespace={NAMESPACE}", "-o=json", "deploy,sa,cm,svc,role,rolebinding"))
    names = {f"{each['kind']}/{each['metadata']['name']}" for each in there["items"]}
    assert {"Deployment/pumice", "ServiceAccount/pumice", "Service/pumice", "RoleBinding/pumice-leader"} <= names


def test_the_chart_is_applied_elsewhere(kubectl: Kubectl, server: ApiServer) -> None:
    kubectl("apply", "--server-side", "-f=-", given="{apiVersion: v1, kind: Namespace, metadata: {name: elsewhere}}")
    objects = render(DEPLOY / "chart", "elsewhere", {"replicas": 2, "extraArgs": ["-v=4"]})
    kubectl("apply", "--server-side", "--force-conflicts", "-f=-", given=yaml.safe_dump_all(objects))
    found = json.loads(kubectl("get", "-n=elsewhere", "-o=json", "deployment/pumice"))
    assert found["spec"]["replicas"] == 2


# -- rights


@pytest.fixture
async def limited(server: ApiServer, client: Client, kubectl: Kubectl) -> AsyncIterator[Client]:
    """A client with the rights of the service account, and no other."""
    kubectl("apply", "--server-side", "--force-conflicts", f"-k={DEPLOY}")
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "scheduler"}
    for kind, role in (("ClusterRole", "scheduler"), ("ClusterRole", "controllers"), ("Role", "leader")):
        path = "/apis/rbac.authorization.k8s.io/v1/" + (
            "clusterrolebindings" if kind == "ClusterRole" else f"namespaces/{NAMESPACE}/rolebindings"
        )
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": f"pumice-{role}"}
        with suppress(ApiError):  # it is there from the test before
            await client.post(path, {"metadata": {"name": f"test-{role}"}, "roleRef": reference, "subjects": [subject]})
    async with Client(bearer(server.url, server.token("scheduler"), server.ssl_context())) as opened:
        yield opened


@pytest.mark.usefixtures("crds")
async def test_the_roles_are_enough_for_the_controllers(
    client: Client, limited: Client, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "pumice")
    task = asyncio.create_task(Controllers(limited, retry_policy=FAST).run())
    try:
        volumes = [
            {
                "mountPath": "/d",
                "volumeClaim": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}},
            }
        ]
        wanted = job(
            namespace, plugins={"svc": []}, volumes=volumes, policies=[{"event": "PodFailed", "action": "RestartTask"}]
        )
        it = await JobOnServer.create(client, wanted)
        await it.admit()
        await it.become("Running")
        await it.comes_to("Running")
        await it.become("Failed", "j-w-0")
        await it.comes_to("Pending")
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    assert "orbidden" not in caplog.text and "no right" not in caplog.text


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/secrets", 403),
        ("/api/v1/configmaps", 403),
        (f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", 403),
        (LEASES.path(f"{NAMESPACE}/another"), 403),
        (LEASES.path(f"{NAMESPACE}/volcano"), 404),
        (LEASES.path(f"{NAMESPACE}/vc-controller-manager"), 404),
        (PODS.path("default/none"), 404),
    ],
)
async def test_the_roles_are_no_more_than_that(limited: Client, path: str, status: int) -> None:
    with pytest.raises(ApiError) as refused:
        await limited.get(path)
    assert refused.value.status == status
