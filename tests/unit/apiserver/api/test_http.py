"""The API over HTTP: discovery, forms of answers, writes, and who is let in."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pumice.apiserver.api.http import Limits
from pumice.apiserver.cluster import Cluster
from tests.unit.apiserver.conftest import Client
from tests.unit.apiserver.worlds import create, group, node, pod, queue

PODS = "/api/v1/namespaces/default/pods"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


async def ask(client: Client, method: str, path: str, body: Any = None, **how: Any) -> tuple[int, Any]:
    headers = dict(how.pop("headers", {}))
    if body is not None:
        headers.setdefault("Content-Type", "application/json")
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    async with client.request(method, path, data=data, headers=headers, **how) as answer:
        return answer.status, await answer.json()


# -- what there is


async def test_discovery_names_kinds_and_their_parts(client: Client) -> None:
    _, core = await ask(client, "GET", "/api/v1")
    assert {"pods", "pods/binding", "pods/eviction", "pods/status", "nodes"} <= {r["name"] for r in core["resources"]}
    _, groups = await ask(client, "GET", "/apis")
    assert "scheduling.volcano.sh" in {g["name"] for g in groups["groups"]}
    _, volcano = await ask(client, "GET", "/apis/scheduling.volcano.sh/v1beta1")
    names = {r["name"]: r for r in volcano["resources"]}
    assert (names["queues"]["namespaced"], names["podgroups"]["shortNames"]) == (False, ["pg", "podgroup-v1beta1"])
    assert "podgroups/status" not in names


async def test_aggregated_discovery_says_the_same(client: Client) -> None:
    accept = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"}
    async with client.get("/apis", headers=accept) as answer:
        assert "as=APIGroupDiscoveryList" in answer.headers["Content-Type"]
        found = await answer.json()
    for item in found["items"]:
        name = item["metadata"]["name"]
        for version in item["versions"]:
            _, plain = await ask(client, "GET", f"/apis/{name}/{version['version']}")
            listed = [r["resource"] for r in version["resources"]]
            assert listed == [r["name"] for r in plain["resources"] if "/" not in r["name"]]


async def test_openapi_has_a_document_for_every_version(client: Client) -> None:
    _, index = await ask(client, "GET", "/openapi/v3")
    for place, entry in index["paths"].items():
        _, document = await ask(client, "GET", entry["serverRelativeURL"])
        assert document["components"]["schemas"], place
    _, volcano = await ask(client, "GET", "/openapi/v3/apis/scheduling.volcano.sh/v1beta1")
    patch = volcano["paths"]["/apis/scheduling.volcano.sh/v1beta1/queues/{name}"]["patch"]
    assert "fieldValidation" in {p["name"] for p in patch["parameters"]}


async def test_openapi_knows_what_the_scheduler_reads_of_a_pod(client: Client) -> None:
    _, document = await ask(client, "GET", "/openapi/v3/api/v1")
    schema = document["components"]["schemas"]["io.k8s.api.core.v1.Pod"]
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]
    spec = schema["properties"]["spec"]["properties"]
    assert spec["containers"]["items"]["properties"]["resources"]["properties"]["requests"]["type"] == "object"
    assert spec["schedulerName"]["description"]


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/apis/no.such.group",
        "/apis/no.such.group/v1",
        "/apis/no.such.group/v1/things",
        "/api/v1/things",
        "/api/v1/pods/a",
        "/api/v1/namespaces/default/nodes/a",
        f"{PODS}/a/b",
        f"{PODS}/a/b/c",
        "/openapi/v9",
        "/metrics",
    ],
)
async def test_what_is_not_there_is_a_404_with_a_status(client: Client, path: str) -> None:
    code, found = await ask(client, "GET", path)
    assert (code, found["kind"], found["reason"]) == (404, "Status", "NotFound")


@pytest.mark.parametrize("path", ["/readyz", "/livez", "/healthz"])
async def test_health(client: Client, path: str) -> None:
    async with client.get(path) as answer:
        assert (answer.status, await answer.text()) == (200, "ok")


# -- forms


async def test_tables_have_the_columns_of_their_kind(client: Client, world: Cluster) -> None:
    create(world, pod("a"))
    create(world, node("n"))
    create(world, group("g", minMember=3))

    async def table(path: str) -> list[dict[str, Any]]:
        _, found = await ask(client, "GET", path, headers={"Accept": TABLE})
        columns = [c["name"].lower() for c in found["columnDefinitions"]]
        assert all(len(row["cells"]) == len(columns) for row in found["rows"])
        assert {row["object"]["kind"] for row in found["rows"]} == {"PartialObjectMetadata"}
        return [dict(zip(columns, row["cells"], strict=True)) for row in found["rows"]]

    (row,) = await table(PODS)
    assert {k: row[k] for k in ("name", "ready", "status", "node")} == {
        "name": "a",
        "ready": "0/1",
        "status": "Pending",
        "node": "<none>",
    }
    (row,) = await table("/api/v1/nodes")
    assert (row["name"], row["age"]) == ("n", "0s")
    (row,) = await table("/apis/scheduling.volcano.sh/v1beta1/podgroups")
    assert (row["name"], row["minmember"], row["status"], row["queue"]) == ("g", 3, None, "default")


async def test_metadata_alone(client: Client, world: Cluster) -> None:
    create(world, pod("a"))
    accept = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
    _, found = await ask(client, "GET", PODS, headers=accept)
    assert found["kind"] == "PartialObjectMetadataList"
    assert [sorted(item) for item in found["items"]] == [["apiVersion", "kind", "metadata"]]


async def test_a_form_that_is_not_offered_is_406(client: Client) -> None:
    code, _ = await ask(client, "GET", PODS, headers={"Accept": "application/vnd.kubernetes.protobuf"})
    assert code == 406


async def test_events_have_two_forms(client: Client) -> None:
    new = {
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "a"},
        "note": "hello",
        "reason": "Scheduled",
        "reportingController": "pumice",
        "eventTime": "2027-01-15T08:00:00.000000Z",
    }
    code, _ = await ask(client, "POST", "/apis/events.k8s.io/v1/namespaces/default/events", new)
    assert code == 201
    selected = {"fieldSelector": "involvedObject.name=a"}
    _, old = await ask(client, "GET", "/api/v1/namespaces/default/events", params=selected)
    assert [(e["message"], e["apiVersion"], e["reportingComponent"]) for e in old["items"]] == [
        ("hello", "v1", "pumice")
    ]
    _, back = await ask(client, "GET", "/apis/events.k8s.io/v1/events", params={"fieldSelector": "regarding.name=a"})
    assert [(e["note"], e["apiVersion"]) for e in back["items"]] == [("hello", "events.k8s.io/v1")]


# -- writing


@pytest.mark.parametrize(
    ("kind", "patch", "weight"),
    [
        pytest.param("application/merge-patch+json", {"spec": {"weight": 5}}, 5, id="merge"),
        pytest.param(
            "application/json-patch+json", [{"op": "replace", "path": "/spec/weight", "value": 6}], 6, id="json"
        ),
    ],
)
async def test_patches(client: Client, world: Cluster, kind: str, patch: Any, weight: int) -> None:
    create(world, queue("q", weight=1))
    code, found = await ask(client, "PATCH", f"{QUEUES}/q", patch, headers={"Content-Type": kind})
    assert (code, found["spec"]["weight"]) == (200, weight)


async def test_strategic_patches_are_for_kubernetes_own_kinds(client: Client, world: Cluster) -> None:
    create(world, pod("a"))
    create(world, queue("q"))
    headers = {"Content-Type": "application/strategic-merge-patch+json"}
    patch = {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}
    _, found = await ask(client, "PATCH", f"{PODS}/a", patch, headers=headers)
    assert [c["image"] for c in found["spec"]["containers"]] == ["i:2"]
    code, _ = await ask(client, "PATCH", f"{QUEUES}/q", patch, headers=headers)
    assert code == 415


async def test_apply_creates_and_then_changes(client: Client) -> None:
    headers, who = {"Content-Type": "application/apply-patch+yaml"}, {"fieldManager": "me"}
    code, _ = await ask(client, "PATCH", f"{QUEUES}/q", queue("q", weight=1), headers=headers, params=who)
    assert code == 201
    code, found = await ask(client, "PATCH", f"{QUEUES}/q", queue("q", weight=2), headers=headers, params=who)
    assert (code, found["spec"]["weight"]) == (200, 2)
    code, _ = await ask(client, "PATCH", f"{QUEUES}/q", queue("q", weight=3), headers=headers)
    assert code == 400


async def test_a_status_goes_to_its_path(client: Client, world: Cluster) -> None:
    made = create(world, queue("q", weight=1))
    code, found = await ask(client, "PUT", f"{QUEUES}/q/status", {**made, "status": {"state": "Closed"}})
    assert (code, found["status"]["state"]) == (200, "Closed")
    code, found = await ask(client, "PUT", f"{QUEUES}/q/status", {**made, "status": {"state": "Open"}})
    assert (code, found["reason"]) == (409, "Conflict")


async def test_binding_and_eviction(client: Client, world: Cluster) -> None:
    create(world, pod("a"))
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "a"},
        "target": {"kind": "Node", "name": "n"},
    }
    assert (await ask(client, "POST", f"{PODS}/a/binding", binding))[0] == 201
    code, found = await ask(client, "POST", f"{PODS}/a/binding", binding)
    assert (code, found["reason"]) == (409, "Conflict")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    assert (await ask(client, "POST", f"{PODS}/a/eviction", eviction))[0] == 201
    assert (await ask(client, "GET", f"{PODS}/a"))[0] == 404


@pytest.mark.parametrize("part", ["log", "exec", "attach", "portforward"])
async def test_pods_without_processes_say_so(client: Client, part: str) -> None:
    code, found = await ask(client, "GET", f"{PODS}/a/{part}")
    assert code == 400 and f"{part} is not supported" in found["message"]


async def test_a_collection_is_deleted_by_selector(client: Client, world: Cluster) -> None:
    for name, label in (("a", "x"), ("b", "x"), ("c", "y")):
        create(world, pod(name, labels={"l": label}))
    code, _ = await ask(client, "DELETE", PODS, params={"labelSelector": "l=x"})
    assert code == 200
    assert [row.key for row in world.store.rows("pods")] == ["default/c"]


async def test_warnings_are_headers_and_end_no_line(client: Client) -> None:
    body = group("g")
    body["spec"] = {'evil"\r\nSet-Cookie: x': 1}
    path = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
    async with client.post(path, data=json.dumps(body), headers={"Content-Type": "application/json"}) as answer:
        assert answer.status == 201
        assert "Set-Cookie" not in answer.headers
        assert answer.headers["Warning"].startswith('299 - "unknown field')


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        pytest.param("PUT", PODS, 405, id="PUT on a list"),
        pytest.param("POST", f"{PODS}/a", 405, id="POST on an object"),
        pytest.param("GET", f"{PODS}/a/binding", 405, id="GET of a binding"),
        pytest.param("DELETE", f"{QUEUES}/a/status", 405, id="DELETE of a status"),
        pytest.param("POST", "/api/v1/pods", 404, id="POST without a namespace"),
        pytest.param("POST", "/version", 404, id="POST to the version"),
        pytest.param("DELETE", "/apis", 405, id="DELETE of discovery"),
    ],
)
async def test_methods_that_do_not_fit(client: Client, method: str, path: str, code: int) -> None:
    assert (await ask(client, method, path, pod("a")))[0] == code


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        pytest.param(b"{", "application/json", 400, id="no JSON"),
        pytest.param(b"[]", "application/json", 400, id="no object"),
        pytest.param(b'{"metadata":{"name":"\xff"}}', "application/json", 400, id="no UTF-8"),
        pytest.param(b"[" * 100_000, "application/json", 400, id="nested deep"),
        pytest.param(b'{"a":' * 50_000, "application/json", 400, id="objects nested deep"),
        pytest.param(b"kind: Pod", "application/yaml", 415, id="YAML"),
        pytest.param(b"k8s\x00\xff\xff", "application/vnd.kubernetes.protobuf", 400, id="no protobuf"),
        pytest.param(b'{"kind":"Node","metadata":{"name":"a"}}', "application/json", 400, id="another kind"),
        pytest.param(b"{}", "application/json", 400, id="no metadata"),
    ],
)
async def test_bodies_that_cannot_be_used(client: Client, body: bytes, kind: str, code: int) -> None:
    assert (await ask(client, "POST", PODS, body, headers={"Content-Type": kind}))[0] == code


@pytest.mark.parametrize(
    "params",
    [
        {"limit": "x"},
        {"limit": "-1"},
        {"resourceVersion": "abc"},
        {"continue": "abc"},
        {"continue": "%%%"},
        {"labelSelector": "a in"},
        {"fieldSelector": "spec.image=x"},
    ],
    ids=str,
)
async def test_options_that_cannot_be_used(client: Client, params: dict[str, str]) -> None:
    code, found = await ask(client, "GET", PODS, params=params)
    assert (code, found["reason"]) == (400, "BadRequest")


# -- pages


async def test_pages_show_the_list_as_it_was_at_the_first(client: Client, world: Cluster) -> None:
    for name in "abcde":
        create(world, pod(name))
    _, first = await ask(client, "GET", PODS, params={"limit": "2"})
    assert first["metadata"]["remainingItemCount"] == 3
    create(world, pod("aa"))
    create(world, pod("zz"))
    await ask(client, "DELETE", f"{PODS}/d")
    names = [item["metadata"]["name"] for item in first["items"]]
    found = first
    while token := found["metadata"].get("continue"):
        _, found = await ask(client, "GET", PODS, params={"limit": "2", "continue": token})
        assert found["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        names += [item["metadata"]["name"] for item in found["items"]]
    assert names == ["a", "b", "c", "d", "e"]


async def test_an_exact_version_is_read(client: Client, world: Cluster) -> None:
    create(world, pod("a"))
    params = {"resourceVersion": str(world.store.version), "resourceVersionMatch": "Exact"}
    create(world, pod("b"))
    _, found = await ask(client, "GET", PODS, params=params)
    assert [item["metadata"]["name"] for item in found["items"]] == ["a"]
    code, _ = await ask(client, "GET", PODS, params={"resourceVersion": str(world.store.version + 1)})
    assert code == 504


# -- who is let in


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "127.0.0.2:80", "[::1]:80"])
async def test_this_machine_is_let_in(client: Client, host: str) -> None:
    assert (await ask(client, "GET", PODS, headers={"Host": host}))[0] == 200


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example.com"}, {"Host": "evil.example.com:80"}, {"Origin": "http://127.0.0.1"}, {"Host": ""}],
    ids=str,
)
async def test_web_pages_are_kept_out(client: Client, headers: dict[str, str]) -> None:
    assert (await ask(client, "GET", PODS, headers=headers))[0] == 403


class TestToken:
    @pytest.fixture
    def token(self) -> str:
        return "a-token-of-some-length"

    @pytest.mark.parametrize(
        ("given", "code"),
        [
            pytest.param("Bearer a-token-of-some-length", 200, id="the token"),
            pytest.param("Bearer a-token-of-some-lengt", 401, id="a part of it"),
            pytest.param("a-token-of-some-length", 401, id="without Bearer"),
            pytest.param("Bearer ä", 401, id="no ASCII"),
            pytest.param(None, 401, id="none"),
        ],
    )
    async def test_only_the_token_is_let_in(self, client: Client, given: str | None, code: int) -> None:
        headers = {} if given is None else {"Authorization": given}
        assert (await ask(client, "GET", PODS, headers=headers))[0] == code
        assert (await ask(client, "GET", "/api", headers=headers))[0] == code

    async def test_health_needs_none(self, client: Client) -> None:
        async with client.get("/readyz") as answer:
            assert answer.status == 200


class TestLimits:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(body_bytes=10_000, header_bytes=2_000, watches=1)

    async def test_a_body_has_an_end(self, client: Client) -> None:
        code, found = await ask(client, "POST", PODS, pod("a", annotations={"x": "y" * 20_000}))
        assert (code, found["reason"]) == (413, "RequestEntityTooLarge")

    async def test_headers_have_an_end(self, client: Client) -> None:
        async with client.get(PODS, headers={"X-Long": "x" * 5_000}) as answer:
            assert answer.status == 400

    async def test_watches_are_counted(self, client: Client) -> None:
        async with client.get(PODS, params={"watch": "1"}) as first:
            assert first.status == 200
            code, found = await ask(client, "GET", PODS, params={"watch": "1"})
            assert (code, found["reason"]) == (429, "TooManyRequests")

        async def another() -> int:
            async with client.get(PODS, params={"watch": "1"}) as answer:
                return answer.status

        async with asyncio.timeout(30):
            while await another() == 429:  # until the server saw that the first has gone
                pass
