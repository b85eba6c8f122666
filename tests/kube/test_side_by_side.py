"""The same requests to ``pumice serve`` and to a real kube-apiserver: the same status codes, and the same fields.

Compared is what a client can rest on: the code, and for each field of the answer that the real server gives that it is
there, with a value of the same type. What differs on purpose is named in ``MISSING``, with why, and in the guide.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import aiohttp
import pytest

from tests.kube.server import ApiServer
from tests.unit.apiserver.commands import serving_command

JSON, MERGE, STRATEGIC, PATCH, APPLY = (
    "application/json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
)
SPACE = "side"
IN = f"/api/v1/namespaces/{SPACE}"
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"app": "x"}},
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "i:1",
                "resources": {"requests": {"cpu": 1, "memory": "1.5Gi"}, "limits": {"cpu": 2}},
            }
        ]
    },
}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "side-n"}, "status": {"capacity": {"cpu": 8}}}


APPS = f"/apis/apps/v1/namespaces/{SPACE}"
DEPLOYMENTS = f"{APPS}/deployments"
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {
        "selector": {"matchLabels": {"app": "x"}},
        "template": {"metadata": {"labels": {"app": "x"}}, "spec": POD["spec"]},
    },
}


class Request(NamedTuple):
    name: str
    method: str
    path: str
    body: Any = None
    content_type: str = JSON


def named(kind: str, name: str, api: str = "v1", **rest: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **rest}


def too_much(name: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
    return {
        **POD,
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
    }


def added(name: str, image: str = "i:1") -> dict[str, Any]:
    return {"spec": {"ephemeralContainers": [{"name": name, "image": image}]}}


DEBUGGED, CHANGED = added("debug"), added("debug", "other:1")
WATCH_S = 1

REQUESTS = [
    Request("a namespace is made", "POST", "/api/v1/namespaces", named("Namespace", SPACE)),
    Request("it is there already", "POST", "/api/v1/namespaces", named("Namespace", SPACE)),
    Request("a pod is made", "POST", f"{IN}/pods", POD),
    Request("a pod is read", "GET", f"{IN}/pods/p"),
    Request("pods are listed", "GET", f"{IN}/pods"),
    Request("by label", "GET", f"{IN}/pods?labelSelector=app%3Dy"),
    Request("by field", "GET", f"{IN}/pods?fieldSelector=spec.nodeName%3D"),
    Request("by a field that is not known", "GET", f"{IN}/pods?fieldSelector=spec.color%3Dred"),
    Request("by a selector that is none", "GET", f"{IN}/pods?labelSelector=a%3D%3D%3Db"),
    Request("a pod that is not there", "GET", f"{IN}/pods/none"),
    Request("a pod of a name that is none", "POST", f"{IN}/pods", {**POD, "metadata": {"name": "No_Name"}}),
    Request(
        "a pod without containers", "POST", f"{IN}/pods", {**POD, "metadata": {"name": "q"}, "spec": {"containers": []}}
    ),
    Request("limits below requests", "POST", f"{IN}/pods", too_much("q")),
    Request("a body that is no JSON", "POST", f"{IN}/pods", "{"),
    Request("a pod where there is no namespace", "POST", "/api/v1/namespaces/nowhere/pods", POD),
    Request("a label by merge patch", "PATCH", f"{IN}/pods/p", {"metadata": {"labels": {"a": "b"}}}, MERGE),
    Request("a label by strategic patch", "PATCH", f"{IN}/pods/p", {"metadata": {"labels": {"c": "d"}}}, STRATEGIC),
    Request(
        "a patch of what is not there", "PATCH", f"{IN}/pods/p", [{"op": "test", "path": "/spec/x", "value": 1}], PATCH
    ),
    Request("a patch that is none", "PATCH", f"{IN}/pods/p", {"a": 1}, PATCH),
    Request("what may not change", "PATCH", f"{IN}/pods/p", {"spec": {"schedulerName": "other"}}, MERGE),
    Request("a node is made", "POST", "/api/v1/nodes", NODE),
    Request(
        "its status is written",
        "PATCH",
        "/api/v1/nodes/side-n/status",
        {"status": {"capacity": {"cpu": "9000m"}}},
        MERGE,
    ),
    Request("a node is read", "GET", "/api/v1/nodes/side-n"),
    Request(
        "a pod is bound",
        "POST",
        f"{IN}/pods/p/binding",
        named("Binding", "p", target={"kind": "Node", "name": "side-n"}),
    ),
    Request(
        "it is bound already",
        "POST",
        f"{IN}/pods/p/binding",
        named("Binding", "p", target={"kind": "Node", "name": "side-n"}),
    ),
    Request("a config map", "POST", f"{IN}/configmaps", named("ConfigMap", "c", data={"a": "b"})),
    Request(
        "an older version",
        "PUT",
        f"{IN}/configmaps/c",
        {**named("ConfigMap", "c"), "metadata": {"name": "c", "resourceVersion": "1"}},
    ),
    Request(
        "an apply", "PATCH", f"{IN}/configmaps/c2?fieldManager=me", named("ConfigMap", "c2", data={"a": "b"}), APPLY
    ),
    Request(
        "an apply by another",
        "PATCH",
        f"{IN}/configmaps/c2?fieldManager=you",
        named("ConfigMap", "c2", data={"a": "z"}),
        APPLY,
    ),
    Request(
        "an unknown field, strictly",
        "POST",
        f"{IN}/configmaps?fieldValidation=Strict",
        named("ConfigMap", "c3", colour=1),
    ),
    Request("a secret of plain texts", "POST", f"{IN}/secrets", named("Secret", "s", stringData={"a": "b"})),
    Request("a quota", "POST", f"{IN}/resourcequotas", named("ResourceQuota", "r", spec={"hard": {"cpu": 4}})),
    Request(
        "a lease",
        "POST",
        f"/apis/coordination.k8s.io/v1/namespaces/{SPACE}/leases",
        named("Lease", "l", "coordination.k8s.io/v1", spec={"holderIdentity": "me"}),
    ),
    Request(
        "a priority class",
        "POST",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        named("PriorityClass", "side-p", "scheduling.k8s.io/v1", value=5),
    ),
    Request("a deployment", "POST", DEPLOYMENTS, DEPLOYMENT),
    Request("a stateful set", "POST", f"{APPS}/statefulsets", {**DEPLOYMENT, "kind": "StatefulSet"}),
    Request("a daemon set", "POST", f"{APPS}/daemonsets", {**DEPLOYMENT, "kind": "DaemonSet"}),
    Request(
        "a job",
        "POST",
        f"/apis/batch/v1/namespaces/{SPACE}/jobs",
        named("Job", "j", "batch/v1", spec={"template": {"spec": {**POD["spec"], "restartPolicy": "Never"}}}),
    ),
    Request("a service", "POST", f"{IN}/services", named("Service", "s", spec={"ports": [{"port": 80}]})),
    Request("a container to debug with", "PATCH", f"{IN}/pods/p/ephemeralcontainers", DEBUGGED, STRATEGIC),
    Request("another in its place", "PATCH", f"{IN}/pods/p/ephemeralcontainers", CHANGED, STRATEGIC),
    Request("one by the pod itself", "PATCH", f"{IN}/pods/p", added("third"), STRATEGIC),
    Request("its scale", "GET", f"{DEPLOYMENTS}/d/scale"),
    Request("another scale", "PATCH", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 3}}, MERGE),
    Request("a scale below nothing", "PATCH", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": -3}}, MERGE),
    Request("a watch from what is there", "GET", f"{IN}/pods?watch=true&timeoutSeconds={WATCH_S}"),
    Request(
        "a watch that begins with a list",
        "GET",
        f"{IN}/pods?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        f"&allowWatchBookmarks=true&timeoutSeconds={WATCH_S}",
    ),
    Request("a watch by label", "GET", f"{IN}/pods?watch=true&labelSelector=app%3Dy&timeoutSeconds={WATCH_S}"),
    Request("a watch by field", "GET", f"{IN}/pods?watch=1&fieldSelector=metadata.name%3Dp&timeoutSeconds={WATCH_S}"),
    Request("a watch from a version that is none", "GET", f"{IN}/pods?watch=true&resourceVersion=abc"),
    Request("a watch whose time is none", "GET", f"{IN}/pods?watch=true&timeoutSeconds=long"),
    Request(
        "a list of the beginning, without saying how",
        "GET",
        f"{IN}/pods?watch=true&sendInitialEvents=true&timeoutSeconds={WATCH_S}",
    ),
    Request(
        "a watch of cluster objects",
        "GET",
        f"/api/v1/nodes?watch=true&fieldSelector=metadata.name%3Dside-n&timeoutSeconds={WATCH_S}",
    ),
    Request("it goes", "DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses/side-p"),
    Request("a config map goes", "DELETE", f"{IN}/configmaps/c"),
    Request("a config map that is not there goes", "DELETE", f"{IN}/configmaps/c"),
    Request("a pod goes", "DELETE", f"{IN}/pods/p?gracePeriodSeconds=0"),
    Request("many go", "DELETE", f"{IN}/configmaps"),
    Request("no such path", "GET", "/apis/nowhere.example.com/v1/things"),
    Request("no such kind", "GET", "/api/v1/things"),
    Request("a method that is none", "PUT", f"{IN}/configmaps", named("ConfigMap", "c")),
    Request(
        "who am I",
        "POST",
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        named("SelfSubjectReview", "", "authentication.k8s.io/v1"),
    ),
    Request("the version", "GET", "/version"),
    Request("a node goes", "DELETE", "/api/v1/nodes/side-n"),
    Request("a namespace goes", "DELETE", f"/api/v1/namespaces/{SPACE}"),
]


class Answer(NamedTuple):
    code: int
    fields: dict[str, str]


async def answers(url: str, token: str, **tls: Any) -> list[Answer]:
    found = []
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession(url, headers=headers) as session:
        for request in REQUESTS:
            body = request.body if isinstance(request.body, str | None) else json.dumps(request.body)
            head = {"Content-Type": request.content_type} if body else {}
            async with session.request(request.method, request.path, data=body, headers=head, **tls) as answer:
                text = await answer.text()
                found.append(Answer(answer.status, dict(fields_of(read_answer(text, "watch=" in request.path)))))
    return found


def read_answer(text: str, watch: bool) -> Any:
    """What was answered; of a watch the objects of its events by their type, a refusal as it is."""
    if not text.startswith("{"):
        return {}
    if not watch or json.loads(text.splitlines()[0]).get("kind") == "Status":
        return json.loads(text)
    events = [json.loads(line) for line in text.splitlines()]
    return {kind: [each["object"] for each in events if each["type"] == kind] for kind in {e["type"] for e in events}}


def fields_of(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Each field by its path, with the type of its value; of a list the fields of its items together."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from fields_of(inner, f"{path}.{key}" if path else key)
        if not value:
            yield path, "an empty object"
    elif isinstance(value, list):
        for inner in value:
            yield from fields_of(inner, f"{path}[]")
    else:
        yield path, type(value).__name__


#: By request, fields that the real server gives and ours does not, and why.
MISSING: dict[str, tuple[str, ...]] = {
    "a node is made": ("spec.taints",),  # ours is ready at once, so it is not tainted until it is
    "its status is written": ("spec.taints",),
    "a node is read": ("spec.taints",),
    "a watch of cluster objects": ("ADDED[].spec.taints",),
    "a watch that begins with a list": ("BOOKMARK[].spec", "BOOKMARK[].status"),  # what Go's type is empty
}
#: Requests that are answered in another way, and why.
OTHERWISE = {
    "an unknown field, strictly": (400, 201),  # only kinds whose fields say something here are judged field by field
    "a watch from a version that is none": (500, 400),  # it is the request that is wrong
}


@pytest.fixture(scope="module")
def both(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Answer, Answer]]:
    """What each answered, in the order of the requests: theirs, ours."""
    theirs = asyncio.run(answers(server.url, server.token(), ssl=server.ssl_context()))
    with serving_command(tmp_path_factory.mktemp("side")) as served:
        return list(zip(theirs, asyncio.run(answers(served.url, "")), strict=True))


@pytest.mark.parametrize("number", range(len(REQUESTS)), ids=[re.sub(r"\W+", "-", each.name) for each in REQUESTS])
def test_the_same_code_and_fields(both: list[tuple[Answer, Answer]], number: int) -> None:
    name, (theirs, ours) = REQUESTS[number].name, both[number]
    assert (theirs.code, ours.code) == OTHERWISE.get(name, (theirs.code, theirs.code))
    if name in OTHERWISE:
        return
    lacking = {path for path in theirs.fields.keys() - ours.fields.keys() if not path.startswith(MISSING.get(name, ()))}
    lacking = {path for path in lacking if "metadata.managedFields" not in path}
    assert not {path for path in lacking if path}, "fields that a real server gives"
    common = theirs.fields.keys() & ours.fields.keys()
    assert {path: ours.fields[path] for path in common} == {path: theirs.fields[path] for path in common}
