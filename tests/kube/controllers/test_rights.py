"""Controllers with the role of an earlier version: what it does not know of is off, and nothing else."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.kube.api.access import bearer
from pumice.kube.api.client import Client
from pumice.kube.api.errors import ApiError
from pumice.kube.api.kinds import POD_GROUPS, PODS, QUEUES
from pumice.kube.controllers.kinds import CRON_JOBS, JOBS
from pumice.kube.informers.watch_failures import WatchFailures
from tests.kube.controllers.test_controllers import controlling, eventually, job
from tests.kube.objects import pod
from tests.kube.proxy import FaultProxy, answer
from tests.kube.server import ApiServer
from tests.kube.waiting import until

_RBAC = Path(__file__).resolve().parents[3] / "deploy" / "base" / "rbac.yaml"
_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
_OF_LATER_VERSIONS = {"cronjobs", "jobflows", "jobtemplates", "namespaces", "priorityclasses"}
_NAME = "test-old-controllers"


def queue(name: str) -> dict[str, Any]:
    return {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1}}


def shipped_rules() -> list[dict[str, Any]]:
    documents = yaml.load_all(_RBAC.read_text(), Loader=yaml.CSafeLoader)
    (found,) = (d for d in documents if (d["kind"], d["metadata"]["name"]) == ("ClusterRole", "pumice-controllers"))
    rules: list[dict[str, Any]] = found["rules"]
    return rules


@pytest.fixture
async def limited(server: ApiServer, client: Client) -> AsyncIterator[Client]:
    """A client with the rights that an earlier role gives, and no others."""
    rules = [rule for rule in shipped_rules() if not _OF_LATER_VERSIONS & set(rule["resources"])]
    await client.post(_ROLES, {"metadata": {"name": _NAME}, "rules": rules})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _NAME}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}
    await client.post(_BINDINGS, {"metadata": {"name": _NAME}, "roleRef": reference, "subjects": [subject]})
    try:
        async with Client(bearer(server.url, server.token("nobody"), server.ssl_context())) as opened:
            yield opened
    finally:
        for path in (_BINDINGS, _ROLES):
            with suppress(ApiError):
                await client.delete(f"{path}/{_NAME}")


@pytest.mark.usefixtures("crds")
async def test_a_kind_without_rights_holds_nobody_up_and_is_taken_up_when_they_come(
    client: Client, limited: Client, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pumice")
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": job(namespace)["spec"]}}
    cron_job = {"apiVersion": CRON_JOBS.api_version, "kind": "CronJob", "metadata": {"name": "c"}, "spec": spec}
    await client.post(CRON_JOBS.namespace_path(namespace), cron_job)
    await client.post(PODS.namespace_path(namespace), pod(namespace, "p"))
    troubles = WatchFailures()
    async with controlling(limited, troubles=troubles, clock=lambda: 4e9):

        async def grouped() -> bool:
            return bool((await client.get(PODS.path(f"{namespace}/p")))["metadata"].get("annotations"))

        await eventually(grouped, "the pod stays without a group")
        said = [r.message for r in caplog.records if "no right to list and watch cronjobs" in r.message]
        assert len(said) == 1 and said[0] in troubles.texts()
        await client.patch(f"{_ROLES}/{_NAME}", {"rules": shipped_rules()})

        async def made() -> bool:
            return bool((await client.get(JOBS.namespace_path(namespace)))["items"])

        await eventually(made, "the CronJob makes nothing")
        await until(lambda: not troubles.texts(), what="rights that are there are not taken up")


@pytest.mark.usefixtures("crds")
async def test_who_needs_no_pods_does_not_wait_for_the_right_to_see_them(
    client: Client, through: Client, proxy: FaultProxy, namespace: str
) -> None:
    """Jobs do: without their pods in sight they would be made again."""
    proxy.on("GET", r"/api/v1/pods\?", answer(403, "Forbidden"), times=10_000)
    await client.post(JOBS.namespace_path(namespace), job(namespace))
    await client.post(QUEUES.list_path, queue(namespace))
    async with controlling(through):

        async def open_() -> bool:
            return (await client.get(QUEUES.path(namespace))).get("status", {}).get("state") == "Open"

        await eventually(open_, "the queue is not opened")
        assert not (await client.get(POD_GROUPS.namespace_path(namespace)))["items"]
