"""``pumice run`` under KAI's policy on a real API server: its queues and gangs, and what is written back."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.kube.api.client import Client
from pumice.kube.api.errors import ApiError
from pumice.kube.api.kinds import BIND_REQUESTS, KAI_POD_GROUPS, KAI_QUEUES, NODES, PODS
from tests.kube.objects import KAI_CRDS, crd, create, install_crd, node, pod
from tests.kube.running import Running, eventually, running
from tests.kube.server import ApiServer
from tests.kube.waiting import until

Obj = dict[str, Any]
GPU = "nvidia.com/gpu"


@pytest.fixture(scope="module")
def server(own_server: ApiServer) -> ApiServer:
    return own_server


class World:
    """A namespace with what is scheduled in it; queues and nodes go with the test."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client, self.namespace = client, namespace

    async def nodes(self, *gpus: int) -> None:
        for i, count in enumerate(gpus):
            made = node(f"{self.namespace}-n{i}")
            for amounts in made["status"].values():
                amounts[GPU] = str(count)
            await create(self.client, made)

    async def queue(self, name: str, quota: float = -1, parent: str = "", **spec: Any) -> None:
        free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
        resources = {"cpu": free, "memory": free, "gpu": {**free, "quota": quota}}
        made = {"parentQueue": parent, "resources": resources, **spec}
        await self.client.post(KAI_QUEUES.list_path, {**_of(KAI_QUEUES), "metadata": {"name": name}, "spec": made})

    async def gang(
        self, name: str, queue: str, size: int, gpus: int = 1, annotations: Obj | None = None, **spec: Any
    ) -> None:
        metadata = {"namespace": self.namespace, "name": name}
        group = {**_of(KAI_POD_GROUPS), "metadata": metadata, "spec": {"minMember": size, "queue": queue, **spec}}
        await self.client.post(KAI_POD_GROUPS.namespace_path(self.namespace), group)
        said = {"pod-group-name": name, **(annotations or {})}
        await self.pods(*(f"{name}-{i}" for i in range(size)), gpus=gpus, annotations=said)

    async def pods(self, *names: str, gpus: int = 1, **metadata: Any) -> None:
        each = [gpu_pod(self.namespace, name, gpus, **metadata) for name in names]
        await create(self.client, *each)

    async def where(self) -> dict[str, str]:
        """Where each pod is that is not leaving, as the server has it."""
        found = await self.client.get(PODS.namespace_path(self.namespace))
        stays = [each for each in found["items"] if "deletionTimestamp" not in each["metadata"]]
        return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in stays}

    async def bound(self, gang: str, size: int, what: str = "", *, exactly: bool = False) -> dict[str, str]:
        """Wait until a gang, or the pod of exactly this name, has its nodes."""

        async def on() -> dict[str, str]:
            pods = await self.where()
            ours = [name for name in pods if name == gang or (name.startswith(f"{gang}-") and not exactly)]
            found = {name: pods[name] for name in ours if pods[name]}
            return found if len(found) == size else {}

        return await eventually(on, f"{gang} is not bound: {what}")

    async def group(self, name: str) -> Obj:
        found: Obj = await self.client.get(KAI_POD_GROUPS.path(f"{self.namespace}/{name}"))
        return found

    async def group_if_there(self, name: str) -> Obj:
        try:
            return await self.group(name)
        except ApiError:
            return {}

    async def one_that_waits(self, *gangs: str) -> str:
        """The only one of these gangs that has no node, once the others have theirs."""
        pods = await self.where()
        waits = [gang for gang in gangs if not pods.get(f"{gang}-0")]
        return waits[0] if len(waits) == 1 else ""

    async def requests(self, gang: str, size: int) -> list[Obj]:
        """Wait for the BindRequests of a gang."""

        async def there() -> list[Obj]:
            found = (await self.client.get(BIND_REQUESTS.namespace_path(self.namespace)))["items"]
            ours = [each for each in found if each["spec"]["podName"].startswith(f"{gang}-")]
            return ours if len(ours) == size else []

        return await eventually(there, f"nobody asked for {gang}")

    async def other_request(self, before: Obj) -> Obj:
        """Another BindRequest of the same name, if there is one."""
        found = (await self.client.get(BIND_REQUESTS.namespace_path(self.namespace)))["items"]
        same = [each for each in found if each["metadata"]["name"] == before["metadata"]["name"]]
        return next((each for each in same if each["metadata"]["uid"] != before["metadata"]["uid"]), {})

    async def binds(self, request: Obj) -> None:
        """What KAI's binder does when all goes well."""
        key, node = f"{self.namespace}/{request['spec']['podName']}", request["spec"]["selectedNode"]
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": key.partition("/")[2]}, "target": target}
        await self.client.post(PODS.path(key, "binding"), body)
        path = BIND_REQUESTS.path(f"{self.namespace}/{request['metadata']['name']}", "status")
        await self.client.patch(path, {"status": {"phase": "Succeeded"}})

    async def why(self, gang: str) -> Obj:
        """Wait until a gang says why it waits."""

        async def said() -> Obj:
            listed = (await self.group(gang)).get("status", {}).get("schedulingConditions") or [{}]
            return dict(listed[-1])

        return await eventually(said, f"{gang} says nothing")

    async def resources(self, gang: str, requested: Obj) -> Obj:
        """Wait until a gang says that its pods ask for so much; what it says they hold."""

        async def said() -> Obj:
            status: Obj = (await self.group(gang)).get("status", {}).get("resourcesStatus") or {}
            return status if status.get("requested") == requested else {}

        return await eventually(said, f"{gang} does not say what it asks for")

    async def usage(self, queue: str, **wanted: Any) -> Obj:
        """Wait until a queue's status says this."""

        async def said() -> Obj:
            status: Obj = (await self.client.get(KAI_QUEUES.path(queue))).get("status", {})
            return status if all(status.get(key) == value for key, value in wanted.items()) else {}

        return await eventually(said, f"{queue} does not say {wanted}")


def _of(kind: Any) -> Obj:
    return {"apiVersion": kind.api_version, "kind": kind.kind}


def gpu_pod(namespace: str, name: str, gpus: int, **metadata: Any) -> Obj:
    made = pod(namespace, name, schedulerName="kai-scheduler", tolerations=[{"operator": "Exists"}])
    made["metadata"] |= metadata
    if gpus:
        amounts = made["spec"]["containers"][0]["resources"]
        amounts["requests"][GPU] = str(gpus)
        amounts["limits"] = {GPU: str(gpus)}
    return made


@pytest.fixture
async def world(client: Client, crds: None, namespace: str) -> AsyncIterator[World]:
    made = World(client, namespace)
    yield made
    for kind in (PODS, KAI_POD_GROUPS):
        for obj in (await client.get(kind.namespace_path(namespace)))["items"]:
            with suppress(ApiError):
                await client.delete(kind.path(f"{namespace}/{obj['metadata']['name']}"))
    for kind in (NODES, KAI_QUEUES):
        for obj in (await client.get(kind.list_path))["items"]:
            await client.delete(kind.path(obj["metadata"]["name"]))


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "kai.conf"
    path.write_text("dialect: kai\n")
    return path


@pytest.fixture
def flags(conf: Path, namespace: str) -> tuple[str, ...]:
    return f"--scheduler-conf={conf}", f"--leader-elect-resource-namespace={namespace}"


@pytest.fixture
def scheduler(server: ApiServer, flags: tuple[str, ...], tmp_path: Path) -> Iterator[Running]:
    """The scheduler itself."""
    with running(tmp_path, server.kubeconfig(), *flags) as it:
        yield it


async def test_a_gang_is_bound_whole_and_its_queue_says_what_it_has(world: World, scheduler: Running) -> None:
    await world.nodes(4, 4)
    await world.queue("top")
    await world.queue("team", parent="top")
    await world.gang("whole", "team", 3, gpus=2)
    await world.bound("whole", 3, scheduler.text)
    amounts = {"cpu": "3", "memory": "3Gi", GPU: "6"}
    status = await world.usage("top", allocated=amounts, childQueues=["team"])
    assert status["requested"] == amounts and status["allocatedNonPreemptible"] == {"cpu": "0", "memory": "0"}
    assert (await world.resources("whole", amounts))["allocated"] == amounts
    assert "kai.scheduler/last-start-timestamp" in (await world.group("whole"))["metadata"]["annotations"]
    await world.gang("large", "team", 3, gpus=2)
    condition = await world.why("large")
    assert condition["type"] == "UnschedulableOnNodePool" and condition["nodePool"] == "default"
    assert condition["reasons"][0]["reason"] == "PodSchedulingErrors", condition
    assert (await world.where())["large-0"] == ""
    assert "allocated" not in await world.resources("large", amounts)


async def test_what_is_due_is_taken_back(world: World, scheduler: Running) -> None:
    await world.nodes(4)
    await world.queue("top")
    await world.queue("a", quota=2, parent="top")
    await world.queue("b", quota=2, parent="top")
    for i in range(4):
        await world.gang(f"over{i}", "a", 1)
        await world.bound(f"over{i}", 1, scheduler.text)
    await world.gang("due", "b", 2)
    await world.bound("due", 2, scheduler.text)
    assert len(await world.where()) == 4
    await world.usage("a", allocated={"cpu": "2", "memory": "2Gi", GPU: "2"})


async def test_pods_are_grouped_by_what_owns_them(
    world: World, server: ApiServer, flags: tuple[str, ...], tmp_path: Path
) -> None:
    await install_crd(world.client, crd("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs"))
    await world.nodes(4)
    job: Obj = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "train", "namespace": world.namespace, "labels": {"kai.scheduler/queue": "team"}},
        "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 2}}},
    }
    raw = await world.client.post(f"/apis/kubeflow.org/v1/namespaces/{world.namespace}/pytorchjobs", job)
    owner = {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": "train",
        "uid": json.loads(raw)["metadata"]["uid"],
    }
    await world.queue("team")
    with running(tmp_path, server.kubeconfig(), *flags, "--controllers=on") as it:
        for name, role in (("train-master-0", "master"), ("train-worker-0", "worker")):
            metadata = {"labels": {"training.kubeflow.org/replica-type": role}}
            await world.pods(name, ownerReferences=[{**owner, "controller": True}], **metadata)
        await world.pods("alone", gpus=0)
        await world.bound("alone", 1, it.text, exactly=True)
        name = f"pg-train-{owner['uid']}"
        group = await eventually(lambda: world.group_if_there(name), "no group was made")
        subs = [(each["name"], each["minMember"]) for each in group["spec"]["subGroups"]]
        assert (group["spec"]["queue"], group["spec"]["minMember"], subs) == ("team", 3, [("master", 1), ("worker", 2)])
        assert not any(where for pod, where in (await world.where()).items() if pod.startswith("train"))
        labels = {"labels": {"training.kubeflow.org/replica-type": "worker"}}
        await world.pods("train-worker-1", ownerReferences=[{**owner, "controller": True}], **labels)
        await world.bound("train", 3, it.text)
        default: Obj = await world.client.get(KAI_QUEUES.path("default-queue"))
        assert default["spec"]["parentQueue"] == "default-parent-queue"


async def test_kais_binder_is_asked_and_one_that_fails_is_not_asked_for_ever(
    world: World, server: ApiServer, flags: tuple[str, ...], tmp_path: Path
) -> None:
    await world.nodes(4)
    await world.queue("team")
    await world.gang("g", "team", 2)
    with running(tmp_path, server.kubeconfig(), *flags, "--bind-requests", "--bind-backoff-limit=0") as it:
        requests = await world.requests("g", 2)
        assert not any((await world.where()).values()), "nobody but the binder binds"
        for request in requests:
            assert request["spec"]["receivedGPU"] == {"count": 1, "portion": "1"}
            await world.binds(request)
        await world.bound("g", 2, it.text)
        await world.gang("bad", "team", 1)
        (request,) = await world.requests("bad", 1)
        status = {"status": {"phase": "Failed", "reason": "no such device"}}
        await world.client.patch(BIND_REQUESTS.path(f"{world.namespace}/bad-0", "status"), status)
        again = await eventually(lambda: world.other_request(request), f"it is not asked again: {it.text}")
        await world.binds(again)
        await world.bound("bad", 1, it.text)
        assert any("no such device" in each["message"] for each in it.log)


async def test_a_scheduler_of_a_pool_sees_that_pool_alone(
    world: World, server: ApiServer, flags: tuple[str, ...], tmp_path: Path
) -> None:
    label = "kai.scheduler/node-pool"
    await world.nodes(1, 1)
    await world.client.patch(NODES.path(f"{world.namespace}-n1"), {"metadata": {"labels": {label: "a"}}})
    await world.queue("team")
    await world.client.patch(KAI_QUEUES.path("team"), {"metadata": {"labels": {label: "a"}}})
    for name in ("ours", "full", "theirs"):
        await world.gang(name, "team", 1)
        pool = {} if name == "theirs" else {label: "a"}
        path = KAI_POD_GROUPS.path(f"{world.namespace}/{name}")
        await world.client.patch(path, {"metadata": {"labels": pool}})
    with running(tmp_path, server.kubeconfig(), *flags, "--partition-label-value=a") as it:
        waits = await eventually(lambda: world.one_that_waits("ours", "full"), it.text)
        assert (await world.why(waits))["nodePool"] == "a"
        placed = {name: where for name, where in (await world.where()).items() if where}
        assert list(placed.values()) == [f"{world.namespace}-n1"] and "theirs-0" not in placed


async def test_the_roles_that_are_shipped_are_enough(
    world: World, server: ApiServer, flags: tuple[str, ...], tmp_path: Path
) -> None:
    await world.nodes(4)
    for obj in yaml.safe_load_all((KAI_CRDS.parent / "rbac.yaml").read_text()):
        await grant(world, obj, "scheduler")
    with running(tmp_path, server.kubeconfig("scheduler"), *flags, "--controllers=auto", "-v=4") as it:
        await world.pods("alone")
        await world.bound("alone", 1, it.text, exactly=True)
        await world.gang("never", "default-queue", 9)
        await world.why("never")
        await world.usage("default-queue", childQueues=[])
        assert await it.ended(signal.SIGTERM) == 0
        assert "orbidden" not in it.text, it.text
        assert "no right" not in it.text, it.text


async def grant(world: World, obj: Obj, user: str) -> None:
    """Make a role, or bind it to the user; what belongs to a namespace, in its own or the test's."""
    kind, metadata = obj["kind"], obj["metadata"]
    if "subjects" in obj:
        obj["subjects"] = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]
    there = metadata.pop("namespace", world.namespace).replace("kai-scheduler", world.namespace)
    if there != world.namespace and not kind.startswith("Cluster"):
        with suppress(ApiError):
            await world.client.post("/api/v1/namespaces", {"metadata": {"name": there}})
    within = "" if kind.startswith("Cluster") else f"namespaces/{there}/"
    await world.client.post(f"/apis/rbac.authorization.k8s.io/v1/{within}{kind.lower()}s", obj)


@pytest.mark.parametrize("late", [False, True], ids=["at once", "while the first is in flight"])
async def test_two_halves_share_a_device_that_one_pod_reserves(
    world: World, server: ApiServer, flags: tuple[str, ...], tmp_path: Path, *, late: bool
) -> None:
    there = "kai-resource-reservation"
    with suppress(ApiError):
        await world.client.post("/api/v1/namespaces", {"metadata": {"name": there}})
    await world.nodes(1)
    await world.queue("team")
    half = {"gpu-fraction": "0.5"}
    for name in ("a",) if late else ("a", "b"):
        await world.gang(name, "team", 1, gpus=0, annotations=half)

    async def reserved() -> Obj:
        listed: list[Obj] = (await world.client.get(PODS.namespace_path(there)))["items"]
        return listed[0] if listed else {}

    with running(tmp_path, server.kubeconfig(), *flags, "--gpu-reservation-image=holder") as it:
        holder = await eventually(reserved, f"nothing was reserved: {it.text}")
        if late:  # the first has no label yet: its group is known from the decision alone
            await world.gang("b", "team", 1, gpus=0, annotations=half)
            await until(lambda: len(it.said("1 to bind")) == 2, what=it.text)
        index = {"metadata": {"annotations": {"run.ai/reserve_for_gpu_index": "0"}}}
        await world.client.patch(PODS.path(f"{there}/{holder['metadata']['name']}"), index)
        for name in ("a", "b"):
            await world.bound(name, 1, it.text)
        pods = (await world.client.get(PODS.namespace_path(world.namespace)))["items"]
        group = holder["metadata"]["labels"]["runai-gpu-group"]
        assert {each["metadata"]["labels"]["runai-gpu-group"] for each in pods} == {group}
        assert {each["metadata"]["annotations"]["received-resource-type"] for each in pods} == {"Fraction"}
        assert len((await world.client.get(PODS.namespace_path(there)))["items"]) == 1
        await world.gang("c", "team", 1, gpus=0, annotations=half)
        await world.why("c")
        for each in pods:
            await world.client.delete(PODS.path(f"{world.namespace}/{each['metadata']['name']}"))

        async def gone() -> bool:
            listed = (await world.client.get(PODS.namespace_path(there)))["items"]
            return holder["metadata"]["uid"] not in {each["metadata"]["uid"] for each in listed}

        await eventually(gone, f"its device is not free: {it.text}")
    for each in (await world.client.get(PODS.namespace_path(there)))["items"]:
        await world.client.delete(PODS.path(f"{there}/{each['metadata']['name']}"))
