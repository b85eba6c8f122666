"""Requests to the embedded server: valid ones and mutations of them, a few in a row on a fresh cluster."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from random import Random
from typing import Any

import aiohttp

from pumice.apiserver.api.http import Api
from pumice.apiserver.api.server import serving
from pumice.apiserver.cluster import Cluster, make_cluster
from pumice.apiserver.kinds.definitions import own_definitions
from pumice.apiserver.store import Store
from pumice.runtime.serving.listening import Place
from tests.fuzz.mutate import KEYS, WORDS, hostile, mutated, smudged, written
from tests.fuzz.worlds import VOLCANO, cluster

Case = dict[str, Any]
_DEFINITIONS = own_definitions()
_START = 1_800_000_000.0
_JSON = "application/json"
_MERGE, _STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
_JSON_PATCH, _APPLY = "application/json-patch+json", "application/apply-patch+yaml"
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_PLACES = {
    "Pod": "/api/v1/namespaces/default/pods",
    "Node": "/api/v1/nodes",
    "PodGroup": f"/apis/{VOLCANO}/namespaces/default/podgroups",
    "Queue": f"/apis/{VOLCANO}/queues",
    "Job": "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "HyperNode": "/apis/topology.volcano.sh/v1alpha1/hypernodes",
    "ResourceQuota": "/api/v1/namespaces/default/resourcequotas",
    "ConfigMap": "/api/v1/namespaces/default/configmaps",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "Event": "/apis/events.k8s.io/v1/namespaces/default/events",
    "Namespace": "/api/v1/namespaces",
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
    "DaemonSet": "/apis/apps/v1/namespaces/default/daemonsets",
    "Service": "/api/v1/namespaces/default/services",
    "Thing": "/apis/example.com/v1/things",
}
_LISTED = frozenset(_PLACES.values())
_WORKLOAD = {
    "replicas": 2,
    "selector": {"matchLabels": {"app": "w"}},
    "template": {
        "metadata": {"labels": {"app": "w"}},
        "spec": {"containers": [{"name": "c", "image": "i:1", "resources": {"limits": {"cpu": "1"}}}]},
    },
}
_MORE: list[Any] = [
    {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"}, "spec": _WORKLOAD},
    {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "w"}, "spec": _WORKLOAD},
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80}], "selector": {"app": "w"}},
    },
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}},
    {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "note": "x",
        "regarding": {"name": "g0-0"},
    },
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "g0"}, "matchExpressions": []}},
    },
    {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "things", "kind": "Thing", "shortNames": ["t"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [{"name": "N", "type": "date", "jsonPath": ".spec.list[*].a"}],
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {
                                    "type": "object",
                                    "required": ["n"],
                                    "properties": {
                                        "n": {"type": "integer", "minimum": 0, "default": 1},
                                        "list": {
                                            "type": "array",
                                            "x-kubernetes-list-type": "map",
                                            "x-kubernetes-list-map-keys": ["a"],
                                            "items": {"type": "object", "properties": {"a": {"type": "string"}}},
                                        },
                                        "any": {"anyOf": [{"type": "string", "pattern": "^a+$"}, {"enum": [1, 2]}]},
                                    },
                                }
                            },
                        }
                    },
                }
            ],
        },
    },
    {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "t"},
        "spec": {"n": 1, "list": [{"a": "x"}]},
    },
]


# -- making


def make(dice: Random) -> Case:
    """A few objects as they should be, then what is done to them."""
    sound = [obj for obj in [*cluster(dice), *_MORE] if obj["kind"] in _PLACES and obj["apiVersion"] != "batch/v1"]
    dice.shuffle(sound)
    sound = sorted(sound[:6], key=lambda obj: obj["kind"] != "CustomResourceDefinition")
    asked = [_create(obj) for obj in sound]
    asked += [_request(dice, dice.choice(sound)) for _ in range(dice.randint(2, 6))]
    if dice.random() < 0.1:
        asked.append(
            {"raw": smudged(dice, "GET /api/v1/pods HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}", 3)}
        )
    return {"requests": asked}


def _create(obj: Any) -> Case:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in ("uid", "namespace")}
    return {
        "method": "POST",
        "path": _PLACES[obj["kind"]],
        "type": _JSON,
        "body": written(obj | {"metadata": metadata}),
    }


def _request(dice: Random, obj: Any) -> Case:
    path, name = _PLACES[obj["kind"]], obj["metadata"]["name"]
    made = dice.choice(_WAYS)(dice, obj, path, name)
    made.setdefault("type", _JSON)
    if dice.random() < 0.15:
        made["path"] = smudged(dice, made["path"], 1)
    if dice.random() < 0.15 and "?" not in made["path"]:
        made["path"] += f"?{dice.choice(_OPTIONS)}={dice.choice(WORDS)}"
    if dice.random() < 0.1 and made.get("body"):
        made["body"] = smudged(dice, made["body"], dice.randint(1, 3))
    if dice.random() < 0.1:
        made["accept"] = dice.choice(
            (_TABLE, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", *WORDS[:9])
        )
    return made


_OPTIONS = (
    *(
        "dryRun",
        "fieldManager",
        "fieldValidation",
        "force",
        "labelSelector",
        "fieldSelector",
        "limit",
        "continue",
        "watch",
    ),
    *(
        "resourceVersion",
        "resourceVersionMatch",
        "gracePeriodSeconds",
        "propagationPolicy",
        "includeObject",
        "timeoutSeconds",
    ),
)


def _created(dice: Random, obj: Any, path: str, name: str) -> Case:
    renamed = obj | {"metadata": {"name": f"{name}-2"}}
    return _create(renamed) | {"body": written(mutated(dice, renamed, dice.randint(1, 4)))}


def _replaced(dice: Random, obj: Any, path: str, name: str) -> Case:
    return {"method": "PUT", "path": f"{path}/{name}", "body": written(mutated(dice, obj, dice.randint(1, 3)))}


def _merged(dice: Random, obj: Any, path: str, name: str) -> Case:
    kind = dice.choice((_MERGE, _STRATEGIC))
    part = dice.choice(("", "", "/status"))
    patch = mutated(
        dice, {key: obj[key] for key in ("metadata", "spec", "status", "data") if key in obj}, dice.randint(1, 3)
    )
    if kind == _STRATEGIC and isinstance(patch, dict) and dice.random() < 0.5:
        patch[dice.choice(("$patch", "$retainKeys", "$setElementOrder/containers", "$deleteFromPrimitiveList/x"))] = (
            hostile(dice)
        )
    return {"method": "PATCH", "path": f"{path}/{name}{part}", "type": kind, "body": written(patch)}


def _edited(dice: Random, obj: Any, path: str, name: str) -> Case:
    places = [
        "",
        "/metadata",
        "/metadata/labels",
        "/metadata/labels/a",
        "/spec",
        "/status",
        "/data/a",
        "/spec/containers/0",
    ]
    places += [f"/{key}" for key in KEYS[:8]] + ["/spec/containers/-", "/spec/taints/0", "/a~1b", "/spec/x/y/z"]
    operations = [
        {"op": dice.choice(("add", "remove", "replace", "move", "copy", "test", "x")), "path": dice.choice(places)}
        | {"from": dice.choice(places), "value": hostile(dice)}
        for _ in range(dice.randint(1, 6))
    ]
    return {"method": "PATCH", "path": f"{path}/{name}", "type": _JSON_PATCH, "body": written(operations)}


def _applied(dice: Random, obj: Any, path: str, name: str) -> Case:
    config = mutated(dice, obj | {"metadata": {"name": name}}, dice.randint(0, 3))
    where = f"{path}/{name}?fieldManager={dice.choice('ab')}&force={dice.choice(('true', 'false'))}"
    return {"method": "PATCH", "path": where, "type": _APPLY, "body": written(config)}


def _deleted(dice: Random, obj: Any, path: str, name: str) -> Case:
    options = {
        "gracePeriodSeconds": hostile(dice),
        "propagationPolicy": "Background",
        "preconditions": {"uid": hostile(dice)},
    }
    body = written(mutated(dice, options, 1)) if dice.random() < 0.5 else ""
    return {"method": "DELETE", "path": dice.choice((f"{path}/{name}", path)), "body": body}


def _bound(dice: Random, obj: Any, path: str, name: str) -> Case:
    part = dice.choice(("binding", "eviction"))
    body = mutated(dice, {"target": {"kind": "Node", "name": "n0"}, "metadata": {"name": "g0-0"}}, dice.randint(0, 2))
    return {"method": "POST", "path": f"{_PLACES['Pod']}/g0-0/{part}", "body": written(body)}


def _read(dice: Random, obj: Any, path: str, name: str) -> Case:
    query = (
        f"?{dice.choice(_OPTIONS[:8])}={dice.choice(('a=b', 'a in (b,c)', '1', *WORDS))}" if dice.random() < 0.7 else ""
    )
    return {"method": "GET", "path": dice.choice((path, f"{path}/{name}", "/openapi/v3", "/apis", "/api/v1")) + query}


def _debugged(dice: Random, obj: Any, path: str, name: str) -> Case:
    body = mutated(dice, {"spec": {"ephemeralContainers": [{"name": "d", "image": "i:1"}]}}, dice.randint(0, 3))
    where = f"{_PLACES['Pod']}/g0-0/ephemeralcontainers"
    return {"method": "PATCH", "path": where, "type": dice.choice((_MERGE, _STRATEGIC)), "body": written(body)}


def _scaled(dice: Random, obj: Any, path: str, name: str) -> Case:
    body = mutated(dice, {"spec": {"replicas": 3}}, dice.randint(0, 2))
    return {"method": "PATCH", "path": f"{_PLACES['Deployment']}/w/scale", "type": _MERGE, "body": written(body)}


_WAYS = (
    *(_created, _created, _replaced, _merged, _merged, _edited, _applied, _deleted, _bound, _read),
    *(_debugged, _scaled),
)


# -- running


def run(case: Case) -> Iterator[str]:
    """No answer is our fault, all parts stay at work, and what is kept can be listed and read back."""
    faults = _Faults()
    logging.getLogger("pumice").addHandler(faults)
    try:
        yield from asyncio.run(_run(case["requests"]))
    finally:
        logging.getLogger("pumice").removeHandler(faults)
    yield from faults.said


class _Faults(logging.Handler):
    """What the program says of itself that is no part of its work."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self.said.append(f"logged: {record.getMessage()[:200]}: {type(error).__name__}: {str(error)[:200]}")


async def _run(asked: list[Case]) -> list[str]:
    world = make_cluster(Store(), _DEFINITIONS, now=lambda: _START, seed=1)
    found: list[str] = []
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)
    async with serving(Api(world), Place()) as url, aiohttp.ClientSession() as client:
        for each in asked:
            if "raw" in each:
                await _say(url, each["raw"])
            else:
                found += await _ask(client, url, each)
        async with client.get(f"{url}/readyz") as answer:
            text = await answer.text()
            if (answer.status, text) != (200, "ok"):
                found.append(f"readyz: {text[:300]}")
        for place in sorted({_PLACES["Pod"], *(each["path"] for each in asked if each.get("path") in _LISTED)}):
            for accept in (_JSON, _TABLE):
                async with client.get(url + place, headers={"Accept": accept}) as answer:
                    if answer.status >= 500:
                        found.append(f"GET {place} as {accept[-20:]}: {answer.status} {(await answer.text())[:200]}")
    return found + _of_store(world)


async def _ask(client: aiohttp.ClientSession, url: str, asked: Case) -> list[str]:
    headers = {"Content-Type": asked["type"], "Accept": asked.get("accept", _JSON)}
    if any(not char.isprintable() for char in headers["Accept"]):
        headers["Accept"] = _JSON
    body = asked.get("body", "").encode("utf-8", "surrogatepass") or None
    path = asked["path"].encode("utf-8", "replace").decode()
    path = path if path.startswith("/") else f"/{path}"
    if "watch" in path:
        path = path.replace("watch", "watch_")  # it would wait
    try:
        async with client.request(asked["method"], url + path, data=body, headers=headers) as answer:
            text = await answer.text(errors="replace")
            if (
                answer.status >= 500
                and answer.status not in (504, 507)
                and "more than one PodDisruptionBudget" not in text
            ):
                return [f"{asked['method']} {path[:80]}: {answer.status} {text[:300]}"]
            if answer.content_type == _JSON:
                json.loads(text)
    except (aiohttp.InvalidURL, ValueError) as error:
        if isinstance(error, json.JSONDecodeError):
            return [f"{asked['method']} {path[:80]}: the answer is not valid JSON: {error}"]
    except aiohttp.ClientError as error:
        return [f"{asked['method']} {path[:80]}: no answer: {type(error).__name__} {error}"]
    return []


async def _say(url: str, text: str) -> None:
    """Bytes that may be no request at all: whatever comes of it, the server goes on."""
    host, _, port = url.rpartition("/")[2].partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(text.encode("utf-8", "replace"))
    writer.write_eof()
    try:
        async with asyncio.timeout(5):
            await reader.read(1 << 16)
    except (TimeoutError, ConnectionError):
        pass
    writer.close()


def _of_store(world: Cluster) -> list[str]:
    found = []
    for table in world.store.tables():
        for row in world.store.rows(table):
            if json.loads(row.raw)["metadata"]["name"] != row.key.rpartition("/")[2]:
                found.append(f"{table} {row.key} is kept under another name")
    return found
