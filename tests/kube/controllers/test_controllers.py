"""The controllers on a real API server: jobs run through, bare pods get groups, queues open and close."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from pumice.kube.api.access import bearer
from pumice.kube.api.client import Client
from pumice.kube.api.errors import ApiError
from pumice.kube.api.kinds import EVENTS, LEASES, POD_GROUPS, PODS, QUEUES, RESOURCE_QUOTAS, Kind
from pumice.kube.controllers.kinds import COMMANDS, JOBS
from pumice.kube.controllers.leading import Controllers, Deference
from pumice.kube.controllers.loop import ControlSettings
from pumice.kube.controllers.owner_kinds import REPLICA_SETS
from pumice.model.instants import stamp
from pumice.runtime.telemetry.metrics import Metrics
from tests.kube.objects import install_crds, pod
from tests.kube.proxy import FaultProxy, answer
from tests.kube.reflecting import FAST
from tests.kube.server import ApiServer
from tests.kube.waiting import PATIENCE_S, until

Obj = dict[str, Any]
ALONE = Deference(lease="")


@asynccontextmanager
async def controlling(client: Client, *only: str, **options: Any) -> AsyncIterator[Controllers]:
    settings = ControlSettings(only) if only else ControlSettings()
    controllers = Controllers(client, settings, retry_policy=FAST, **{"deference": ALONE, **options})
    task = asyncio.create_task(controllers.run())
    try:
        yield controllers
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def eventually(ask: Callable[[], Awaitable[object]], what: str) -> None:
    """Ask the server until the answer is yes; a missing object is a no."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with suppress(ApiError):
            if await ask():
                return
        assert time.monotonic() < deadline, what


async def found(client: Client, kind: Kind, key: str) -> Obj | None:
    try:
        obj: Obj = await client.get(kind.path(key))
    except ApiError as error:
        if error.status != 404:
            raise
        return None
    return obj


def job(namespace: str, name: str = "j", replicas: int = 2, **spec: Any) -> Obj:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"terminationGracePeriodSeconds": 0, "containers": [container]}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "minAvailable": replicas,
            "tasks": [{"name": "w", "replicas": replicas, "template": template}],
            **spec,
        },
    }


class JobOnServer:
    """A job, with what a scheduler and a node would do for it."""

    def __init__(self, client: Client, namespace: str, uid: str) -> None:
        self.client, self.namespace, self.uid = client, namespace, uid

    @classmethod
    async def create(cls, client: Client, obj: Obj) -> JobOnServer:
        namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
        await client.post(JOBS.namespace_path(namespace), obj)
        there = await client.get(JOBS.path(f"{namespace}/{name}"))
        return cls(client, namespace, there["metadata"]["uid"])

    async def phase(self) -> str:
        there = await self.client.get(JOBS.path(f"{self.namespace}/j"))
        return str(there.get("status", {}).get("state", {}).get("phase", ""))

    async def comes_to(self, phase: str) -> None:
        async def so() -> bool:
            return await self.phase() == phase

        await eventually(so, f"the job does not come to {phase}")

    async def admit(self, pods: int = 2) -> None:
        path = POD_GROUPS.path(f"{self.namespace}/j-{self.uid}")

        async def admitted() -> bool:
            await self.client.patch(path, {"status": {"phase": "Inqueue"}})
            return True

        await eventually(admitted, "there is no PodGroup")
        await eventually(lambda: self.has_pods(pods), "the pods are not made")

    async def pods(self) -> list[Obj]:
        found = await self.client.get(PODS.namespace_path(self.namespace))
        return [each for each in found["items"] if not each["metadata"].get("deletionTimestamp")]

    async def has_pods(self, count: int) -> bool:
        return len(await self.pods()) == count

    async def become(self, phase: str, *names: str) -> None:
        for each in await self.pods():
            name = each["metadata"]["name"]
            if not names or name in names:
                await self.client.patch(PODS.path(f"{self.namespace}/{name}", "status"), {"status": {"phase": phase}})


@pytest.mark.usefixtures("crds")
async def test_a_job_runs_through_and_is_forgotten(client: Client, namespace: str) -> None:
    async with controlling(client):
        it = await JobOnServer.create(client, job(namespace, plugins={"env": [], "svc": []}, ttlSecondsAfterFinished=0))
        await it.admit()
        (first, _) = await it.pods()
        assert first["metadata"]["ownerReferences"][0]["uid"] == it.uid and first["spec"]["subdomain"] == "j"
        await it.become("Running")
        await it.comes_to("Running")
        await it.become("Succeeded")

        async def gone() -> bool:
            return await found(client, JOBS, f"{namespace}/j") is None

        await eventually(gone, "the job is not cleared away")


@pytest.mark.usefixtures("crds")
async def test_a_failed_pod_restarts_the_whole_job(client: Client, namespace: str) -> None:
    async with controlling(client):
        policies = [{"events": ["PodFailed"], "action": "RestartJob"}]
        it = await JobOnServer.create(client, job(namespace, policies=policies))
        await it.admit()
        before = {each["metadata"]["uid"] for each in await it.pods()}
        await it.become("Running")
        await it.comes_to("Running")
        await it.become("Failed", "j-w-0")
        await eventually(lambda: it.has_pods(0), "the pods of the first try stay")
        await it.comes_to("Pending")
        await it.admit()
        assert not before & {each["metadata"]["uid"] for each in await it.pods()}
        there = await client.get(JOBS.path(f"{namespace}/j"))
        assert (there["status"]["retryCount"], there["status"]["version"]) == (1, 1)


@pytest.mark.usefixtures("crds")
async def test_what_happened_while_nobody_looked_counts(client: Client, namespace: str) -> None:
    policies = [{"events": ["PodFailed"], "action": "TerminateJob"}]
    async with controlling(client):
        it = await JobOnServer.create(client, job(namespace, policies=policies))
        await it.admit()
        await it.become("Running")
        await it.comes_to("Running")
    await it.become("Failed", "j-w-0")
    assert await it.phase() == "Running"
    async with controlling(client):
        await it.comes_to("Terminated")
        await eventually(lambda: it.has_pods(1), "only what has finished stays")


async def test_kinds_that_are_installed_later_are_controlled_then(assets_server: ApiServer) -> None:
    own = bearer(assets_server.url, assets_server.token(), assets_server.ssl_context())
    async with Client(own) as client, controlling(client) as controllers:
        await until(lambda: controllers.loop is not None)
        await client.post(PODS.namespace_path("default"), pod("default", "p"))
        await install_crds(client)
        await eventually(lambda: _state_is(client, "default", "Open"), "there is no default queue")

        async def named() -> bool:
            there = await client.get(PODS.path("default/p"))
            return bool(there["metadata"].get("annotations"))

        await eventually(named, "the pod stays without a group")


@pytest.mark.usefixtures("crds")
async def test_what_cannot_be_done_is_reported_once(client: Client, namespace: str) -> None:
    async def reports(name: str) -> list[str]:
        query = {"fieldSelector": f"involvedObject.name={name},reason=JobStatusError"}
        found = await client.get(EVENTS.namespace_path(namespace), params=query)
        return [each["message"] for each in found["items"]]

    async with controlling(client, "job"):
        for name in ("j", "barrier"):
            await client.post(JOBS.namespace_path(namespace), job(namespace, name, plugins={"mpi": []}))
            await eventually(lambda name=name: reports(name), "nothing is told")
            await client.patch(JOBS.path(f"{namespace}/{name}"), {"metadata": {"annotations": {"looked": "again"}}})
        (message,) = await reports("j")
        assert "spec.plugins" in message and "mpi" in message


@pytest.mark.usefixtures("crds")
async def test_why_pods_cannot_be_made_is_reported_on_their_job(client: Client, namespace: str) -> None:
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    await client.post(RESOURCE_QUOTAS.namespace_path(namespace), quota)
    status = {"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}}
    # No other controller runs that would do it.
    await client.patch(RESOURCE_QUOTAS.path(f"{namespace}/none", "status"), status)

    async def reports() -> list[str]:
        query = {"fieldSelector": "involvedObject.name=j,involvedObject.kind=Job,reason=FailedCreate"}
        found = await client.get(EVENTS.namespace_path(namespace), params=query)
        return [each["message"] for each in found["items"]]

    async with controlling(client, "job"):
        it = await JobOnServer.create(client, job(namespace, replicas=3))
        await it.admit(pods=0)
        await eventually(reports, "nothing is told")
        (message,) = await reports()
        assert message.startswith("Error creating Pod: ")
        assert "exceeded quota: none" in message
        assert message.endswith(" (and 2 more)")
        await client.delete(RESOURCE_QUOTAS.path(f"{namespace}/none"))
        await eventually(lambda: it.has_pods(3), "the pods are not made")


@pytest.mark.usefixtures("crds")
async def test_a_namespace_that_goes_is_no_line_an_object(
    client: Client, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with controlling(client, "job") as controllers:
        its = [await JobOnServer.create(client, job(namespace, f"j{number}")) for number in range(5)]
        groups = [POD_GROUPS.path(f"{namespace}/j{number}-{it.uid}") for number, it in enumerate(its)]
        for path in groups:
            await eventually(lambda path=path: client.get(path), "there is no PodGroup")
        await client.delete(f"/api/v1/namespaces/{namespace}")  # no garbage collector runs: it stays so
        caplog.clear()
        for path in groups:
            await client.patch(path, {"status": {"phase": "Inqueue"}})
        assert controllers.loop is not None
        queue = controllers.loop.reconciling.queue
        await until(lambda: queue.failing == len(its), what="no pod was tried")
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.INFO and namespace in r.getMessage()] == []


@pytest.mark.usefixtures("crds")
async def test_pods_without_a_queue_are_in_that_of_their_namespace(client: Client, namespace: str) -> None:
    note = {"scheduling.volcano.sh/queue-name": "team"}
    await client.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"annotations": note}})
    async with controlling(client):
        it = await JobOnServer.create(client, job(namespace))
        await client.post(PODS.namespace_path(namespace), pod(namespace, "bare"))
        bare = (await client.get(PODS.path(f"{namespace}/bare")))["metadata"]["uid"]
        for name in (f"j-{it.uid}", f"podgroup-{bare}"):
            path = POD_GROUPS.path(f"{namespace}/{name}")
            await eventually(lambda path=path: client.get(path), f"there is no PodGroup {name}")
            assert (await client.get(path))["spec"]["queue"] == "team"


@pytest.mark.usefixtures("crds")
async def test_an_eviction_is_noticed_and_our_own_deleting_is_not(client: Client, namespace: str) -> None:
    async with controlling(client):
        policies = [{"event": "PodEvicted", "action": "AbortJob"}]
        it = await JobOnServer.create(client, job(namespace, replicas=3, minAvailable=1, policies=policies))
        await it.admit(3)
        path = JOBS.path(f"{namespace}/j")
        there = await client.get(path)
        there["spec"]["tasks"][0]["replicas"] = 2
        await client.patch(path, {"spec": {"tasks": there["spec"]["tasks"]}})
        await eventually(lambda: it.has_pods(2), "the surplus stays")
        await it.become("Running")
        await it.comes_to("Running")
        await client.delete(PODS.path(f"{namespace}/j-w-0"))
        await it.comes_to("Aborted")


@pytest.mark.usefixtures("crds")
async def test_an_order_is_carried_out_and_cleared_away(client: Client, namespace: str) -> None:
    async with controlling(client):
        it = await JobOnServer.create(client, job(namespace))
        await it.admit()
        target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": it.uid}
        order = {"apiVersion": COMMANDS.api_version, "kind": "Command", "metadata": {"name": "o"}, "target": target}
        await client.post(COMMANDS.namespace_path(namespace), {**order, "action": "AbortJob"})
        await it.comes_to("Aborted")

        async def cleared() -> bool:
            return await found(client, COMMANDS, f"{namespace}/o") is None

        await eventually(cleared, "the command stays")


@pytest.mark.usefixtures("crds")
async def test_a_job_gets_its_pods_through_faults(
    client: Client, through: Client, proxy: FaultProxy, namespace: str
) -> None:
    refused = proxy.on("POST", r"/pods$", answer(500), times=3)
    conflict = proxy.on("PATCH", r"/jobs/j/status$", answer(409), times=1)
    async with controlling(through):
        it = await JobOnServer.create(client, job(namespace))
        await it.admit()
        await it.become("Running")
        await it.comes_to("Running")
        assert (refused.hits, conflict.hits) == (3, 1)


@pytest.mark.usefixtures("crds")
async def test_bare_pods_and_sets_get_their_groups(client: Client, namespace: str) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod(namespace, "x")["spec"]}
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "rs", "annotations": {"scheduling.volcano.sh/group-min-member": "2"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    await client.post(REPLICA_SETS.namespace_path(namespace), owner)
    uid = (await client.get(REPLICA_SETS.path(f"{namespace}/rs")))["metadata"]["uid"]
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": uid, "controller": True}
    async with controlling(client, "podgroup"):
        for name, owners in (("bare", []), ("one", [reference]), ("two", [reference])):
            made = pod(namespace, name)
            made["metadata"]["ownerReferences"] = owners
            await client.post(PODS.namespace_path(namespace), made)

        async def names() -> dict[str, str]:
            listed = await client.get(PODS.namespace_path(namespace))
            key = "scheduling.k8s.io/group-name"
            return {p["metadata"]["name"]: p["metadata"].get("annotations", {}).get(key, "") for p in listed["items"]}

        async def all_named() -> bool:
            return all((await names()).values())

        await eventually(all_named, "a pod stays without a group")
        named = await names()
        assert named["one"] == named["two"] == f"podgroup-{uid}" != named["bare"]
        group = await client.get(POD_GROUPS.path(f"{namespace}/podgroup-{uid}"))
        assert group["spec"]["minMember"] == 2 and group["spec"]["minResources"]["cpu"] == "2"
        await client.patch(REPLICA_SETS.path(f"{namespace}/rs"), {"spec": {"replicas": 0}})

        async def gone() -> bool:
            return await found(client, POD_GROUPS, f"{namespace}/podgroup-{uid}") is None

        await eventually(gone, "the group of an empty set stays")


@pytest.mark.usefixtures("crds")
async def test_queues_are_made_closed_and_counted(client: Client, namespace: str) -> None:
    metrics = Metrics()
    name = f"q-{namespace}"
    async with controlling(client, "queue", metrics=metrics):
        await eventually(lambda: _state_is(client, "root", "Open"), "there is no root")
        await eventually(lambda: _state_is(client, "default", "Open"), "there is no default queue")
        await client.post(
            QUEUES.list_path, {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": name}}
        )
        group = {
            "apiVersion": POD_GROUPS.api_version,
            "kind": "PodGroup",
            "metadata": {"name": "g"},
            "spec": {"queue": name},
        }
        await client.post(POD_GROUPS.namespace_path(namespace), group)
        await eventually(lambda: _state_is(client, name, "Open"), "the queue has no state")
        await until(lambda: metrics.value("queue_pod_group_pending_count", name) == 1)
        queue = await client.get(QUEUES.path(name))
        assert queue["spec"]["parent"] == "root"
        target = {"apiVersion": QUEUES.api_version, "kind": "Queue", "name": name, "uid": queue["metadata"]["uid"]}
        order = {"apiVersion": COMMANDS.api_version, "kind": "Command", "metadata": {"name": "o"}, "target": target}
        await client.post(COMMANDS.namespace_path(namespace), {**order, "action": "CloseQueue"})
        await eventually(lambda: _state_is(client, name, "Closing"), "the order is not followed")
        await client.delete(POD_GROUPS.path(f"{namespace}/g"))
        await eventually(lambda: _state_is(client, name, "Closed"), "an empty queue stays open")
        await client.delete(QUEUES.path(name))
        await until(lambda: metrics.value("queue_pod_group_pending_count", name) is None)


async def _state_is(client: Client, queue: str, state: str) -> bool:
    there = await found(client, QUEUES, queue)
    return there is not None and there.get("status", {}).get("state") == state


@pytest.mark.usefixtures("crds")
async def test_volcanos_own_go_first(client: Client, namespace: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pumice.controllers")
    key = f"{namespace}/vc"
    spec = {
        "holderIdentity": "them",
        "leaseDurationSeconds": 15,
        "renewTime": stamp(time.time()).replace("Z", ".000000Z"),
    }
    lease = {"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": {"name": "vc"}, "spec": spec}
    await client.post(LEASES.namespace_path(namespace), lease)

    def reports() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.name == "pumice.controllers"]

    def turns() -> list[str]:
        return [line.split(": ")[1] for line in reports()]

    async with controlling(client, "podgroup", deference=Deference(key, check_s=0.02)) as controllers:
        await until(lambda: turns() == ["off"])
        assert controllers.loop is None
        await client.patch(LEASES.path(key), {"spec": {"holderIdentity": None}})
        await until(lambda: controllers.loop is not None)
        await client.patch(LEASES.path(key), {"spec": {"holderIdentity": "them"}})
        await until(lambda: turns() == ["off", "on", "off"])
        assert controllers.loop is None
    assert f"Lease {key}, held by them" in reports()[0]


async def test_ours_go_on_while_it_cannot_be_seen_whether_volcanos_run(
    through: Client, proxy: FaultProxy, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    """For a moment, such as after a restart of the API server: roles come up last."""
    caplog.set_level(logging.INFO, "pumice.controllers")
    blind = Deference(f"{namespace}/vc", check_s=0.02, again_s=0.02)
    refused = proxy.on("GET", "/leases/vc", answer(403, "Forbidden", "no role yet"), times=3)
    async with controlling(through, "podgroup", deference=blind) as controllers:
        await until(lambda: controllers.loop is not None)
        assert refused.hits == 3, "they do not begin blindly"
        loop = controllers.loop
        refused.times = 10**6
        await until(lambda: refused.hits > 6)
        assert controllers.loop is loop
    reports = [record.getMessage() for record in caplog.records if record.name == "pumice.controllers"]
    assert [line.split(": ")[1] for line in reports] == ["off", "on"]


async def test_a_name_that_belongs_to_another_is_left_alone(client: Client, namespace: str, crds: None) -> None:
    async with controlling(client, "job"):
        it = await JobOnServer.create(client, job(namespace))
        stranger = pod(namespace, "j-w-0")
        await client.post(PODS.namespace_path(namespace), stranger)
        await it.admit(2)
        there = await client.get(PODS.path(f"{namespace}/j-w-0"))
        assert "ownerReferences" not in there["metadata"]
