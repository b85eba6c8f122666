"""Tokens and rights of users, reviewed by a real API server with the rights that deploy/ gives the scheduler."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from pumice.apiserver.api.tls import kept_certificate
from pumice.kube.api.access import bearer
from pumice.kube.api.client import Client
from pumice.kube.scheduler.reviews import CAPS, Reviews
from pumice.runtime.serving.viewers import Viewer
from tests.kube.objects import CRDS
from tests.kube.running import running
from tests.kube.server import ApiServer

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_GROUP = "rbac.authorization.k8s.io"
_REVIEWS = {"tokenreviews", "subjectaccessreviews"}


def shipped_rules() -> list[dict[str, list[str]]]:
    documents = yaml.safe_load_all((CRDS.parent / "base/rbac.yaml").read_text())
    (found,) = (each for each in documents if each["metadata"]["name"] == "pumice-scheduler" and "rules" in each)
    return [rule for rule in found["rules"] if _REVIEWS & set(rule["resources"])]


async def grant(client: Client, name: str, user: str, rules: list[dict[str, list[str]]], namespace: str = "") -> None:
    where, kind = (f"/namespaces/{namespace}", "Role") if namespace else ("", "ClusterRole")
    await client.post(f"{_RBAC}{where}/{kind.lower()}s", {"metadata": {"name": name}, "rules": rules})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": name},
        "subjects": [{"apiGroup": _GROUP, "kind": "User", "name": user}],
    }
    await client.post(f"{_RBAC}{where}/{kind.lower()}bindings", binding)


@pytest.fixture
async def reviews(server: ApiServer, client: Client, namespace: str) -> AsyncIterator[Reviews]:
    """Reviews by a user who has the rights of the scheduler's role that are about reviews, and no others."""
    name = f"reviews-{namespace}"
    await grant(client, name, "scheduler", shipped_rules())
    async with Client(bearer(server.url, server.token("scheduler"), server.ssl_context()), caps=CAPS) as opened:
        yield Reviews(opened)
    for kind in ("clusterrolebindings", "clusterroles"):
        await client.delete(f"{_RBAC}/{kind}/{name}")


async def viewer(reviews: Reviews, token: str) -> Viewer:
    return await reviews.viewer(make_mocked_request("GET", "/jobs", headers={"Authorization": f"Bearer {token}"}))


async def test_a_user_sees_the_namespaces_in_which_they_may_get_pods(
    server: ApiServer, client: Client, namespace: str, reviews: Reviews
) -> None:
    await grant(client, "tenant", "nobody", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}], namespace)
    tenant = await viewer(reviews, server.token("nobody"))
    scope = await tenant.scope(["default", namespace])
    assert (tenant.name, scope.namespaces, scope.nodes) == ("user nobody", frozenset({namespace}), False)
    everything = await (await viewer(reviews, server.token())).scope(["default", namespace])
    assert everything.is_all and everything.nodes


async def test_the_token_of_a_service_account_is_accepted_and_another_is_not(
    server: ApiServer, client: Client, namespace: str, reviews: Reviews
) -> None:
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await client.post(accounts, {"metadata": {"name": "tenant"}})
    raw = await client.post(f"{accounts}/tenant/token", {"spec": {}})
    token = yaml.safe_load(raw)["status"]["token"]
    found = await viewer(reviews, token)
    assert found.name == f"user system:serviceaccount:{namespace}:tenant"
    assert (await found.scope([namespace])).namespaces == frozenset()
    with pytest.raises(web.HTTPUnauthorized):
        await viewer(reviews, f"{token[:-8]}AAAAAAAA")


@pytest.mark.usefixtures("crds")
async def test_a_scheduler_shows_its_pages_to_users_of_the_cluster(server: ApiServer, tmp_path: Path) -> None:
    files = kept_certificate(tmp_path, ["127.0.0.1"])
    flags = (f"--tls-cert-file={files.certificate}", f"--tls-private-key-file={files.key}", "--metrics-tls")
    scheduler = ("--scheduler-name=pumice-reviews", "--leader-elect-resource-namespace=kube-system")
    everywhere = "--listen-address=0.0.0.0:0"
    trusting = ssl.create_default_context(cadata=files.trusted.decode())
    with running(tmp_path, server.kubeconfig(), *flags, *scheduler, everywhere, "--pages=0.0.0.0:0") as it:
        url = (await it.says("API server "))["urls"][0]
        shown = next(line for line in it.text.splitlines() if line.startswith("pages on ")).removeprefix("pages on ")
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting)) as http:
            for at, path, user, status in (
                (shown, "/data/queues", "", 401),
                (shown, "/data/queues", "nobody", 200),
                (shown, "/data/cycles", "nobody", 403),
                (shown, "/data/cycles", "admin", 200),
                (url, "/nodes", "", 401),
                (url, "/nodes", "nobody", 403),
            ):
                token = {"Authorization": f"Bearer {server.token(user)}"} if user else {}
                async with http.get(f"{at}{path}", headers=token) as answer:
                    assert answer.status == status, (path, user, await answer.text())
