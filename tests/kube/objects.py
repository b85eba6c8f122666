"""Objects that tests put on a real API server."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from pumice.kube.api.client import ONCE, Client
from pumice.kube.api.errors import ApiError
from tests.kube.waiting import until_answered, until_refused

CRDS = Path(__file__).resolve().parents[2] / "deploy" / "crds"
KAI_CRDS = CRDS.parent / "kai" / "crds"
_CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def pod(namespace: str, name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "labels": {"app": "it"}},
        "spec": {
            "schedulerName": "volcano",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
            **spec,
        },
    }


def node(name: str, cpu: str = "16") -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def hypernode(name: str, *nodes: str) -> dict[str, Any]:
    members = [{"type": "Node", "selector": {"exactMatch": {"name": node}}} for node in nodes]
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": 1, "members": members},
    }


def crd(
    group: str, version: str, kind: str, plural: str, *, namespaced: bool = True, status: bool = False
) -> dict[str, Any]:
    """A definition that takes anything, for kinds that only tests have."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    served: dict[str, Any] = {"name": version, "served": True, "storage": True, "schema": schema}
    if status:
        served["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [served],
        },
    }


async def install_crds(client: Client) -> None:
    """Volcano's and KAI's, unless they are there already; returns when they are served."""
    for path in (*sorted(CRDS.glob("*.yaml")), *sorted(KAI_CRDS.glob("*.yaml"))):
        for document in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader):
            if document and document.get("kind") == "CustomResourceDefinition":
                await install_crd(client, document)


async def install_crd(client: Client, definition: dict[str, Any]) -> None:
    """Returns when it is served."""
    try:
        await client.post(_CRD_PATH, definition)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
    spec = definition["spec"]
    for version in spec["versions"]:
        path = f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
        await until_answered(lambda path=path: client.get(path, params={"limit": "1"}, retries=ONCE))  # type: ignore[misc]


async def remove_crd(client: Client, name: str) -> None:
    """Return when it and its objects are gone and the server no longer serves its paths, which takes a moment longer.
    It need not exist."""
    there = f"{_CRD_PATH}/{name}"
    plural, _, group = name.partition(".")
    served = [there]
    with suppress(ApiError):
        definition = await client.get(there, retries=ONCE)
        served += [f"/apis/{group}/{each['name']}/{plural}" for each in definition["spec"]["versions"]]
        await client.delete(there)
    for path in served:
        await until_refused(partial(client.get, path, retries=ONCE), 404)


async def create(client: Client, *objects: dict[str, Any]) -> None:
    """Create pods and nodes; a node as it is once its kubelet said that it is ready: with no taint."""
    await asyncio.gather(*(_create(client, each) for each in objects))


async def _create(client: Client, obj: dict[str, Any]) -> None:
    if obj["kind"] == "Node":
        await client.post("/api/v1/nodes", obj)
        await client.patch(f"/api/v1/nodes/{obj['metadata']['name']}", {"spec": {"taints": None}})
    else:
        await client.post(f"/api/v1/namespaces/{obj['metadata']['namespace']}/pods", obj)
