"""Several ``pumice run`` on one real API server, each with the nodes of its NodeShard."""

from __future__ import annotations

import signal
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from pumice.kube.api.client import Client
from pumice.kube.api.errors import ApiError
from pumice.kube.api.kinds import NODE_SHARDS, NODES, POD_GROUPS, PODS, QUEUES
from tests.kube.objects import create, node
from tests.kube.running import Running, eventually, running
from tests.kube.scheduling import gang_pod, pod_group
from tests.kube.server import ApiServer

SHARDS = ("a", "b", "c")


@pytest.fixture(scope="module")
def server(own_server: ApiServer) -> ApiServer:
    return own_server


def flags(namespace: str, shard: str) -> tuple[str, ...]:
    return (
        f"--leader-elect-resource-namespace={namespace}",
        f"--scheduler-name={shard}",
        "--scheduler-sharding-mode=hard",
        f"--scheduler-sharding-name={shard}",
    )


async def add_pods(client: Client, namespace: str, shard: str, first: int, count: int) -> None:
    """Add pods of the PodGroup that has the shard's name."""
    pods = [gang_pod(namespace, f"{shard}-{first + i}", shard) for i in range(count)]
    for each in pods:
        each["spec"]["schedulerName"] = shard
    await create(client, *pods)


async def placed(client: Client, namespace: str, count: int) -> dict[str, str]:
    """Wait until so many pods are on nodes; each with its node."""

    async def found() -> dict[str, str]:
        items = (await client.get(PODS.namespace_path(namespace)))["items"]
        on = {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in items}
        return on if sum(map(bool, on.values())) >= count else {}

    return await eventually(found, f"{count} pods are not bound")


@pytest.mark.parametrize(
    ("nodes", "pods"),
    [
        pytest.param(10, 40, id="small"),
        pytest.param(500, 2000, id="full", marks=pytest.mark.long),
    ],
)
async def test_hard_shards_bind_on_their_own_nodes_and_a_standby_takes_over(
    client: Client, crds: None, namespace: str, server: ApiServer, tmp_path: Path, nodes: int, pods: int
) -> None:
    queue = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": "default"}, "spec": {"weight": 1}}
    with suppress(ApiError):  # it is there already
        await client.post(QUEUES.list_path, queue)
    await create(client, *(node(f"{s}-n{i}") for s in SHARDS for i in range(nodes)))
    for shard in SHARDS:
        desired = {"spec": {"nodesDesired": [f"{shard}-n{i}" for i in range(nodes)]}}
        head = {"apiVersion": NODE_SHARDS.api_version, "kind": "NodeShard", "metadata": {"name": shard}}
        await client.post(NODE_SHARDS.list_path, head | desired)
        await client.post(POD_GROUPS.namespace_path(namespace), pod_group(namespace, shard, 1))
        await add_pods(client, namespace, shard, 0, pods)
    with ExitStack() as stack:

        def start(shard: str) -> Running:
            words = flags(namespace, shard)
            return stack.enter_context(running(tmp_path, server.kubeconfig(), *words, quick_lease=shard == "a"))

        first = start("a")
        for shard in SHARDS[1:]:
            start(shard)
        found = await placed(client, namespace, 3 * pods)
        assert all(where.startswith(f"{name[0]}-") for name, where in found.items())

        async def in_use() -> bool:
            status = (await client.get(NODE_SHARDS.path("a"))).get("status", {})
            return len(status.get("nodesInUse", ())) == nodes

        await eventually(in_use, "the NodeShard does not say what is in use")
        await first.ended(signal.SIGKILL)
        start("a")
        await add_pods(client, namespace, "a", pods, 10)
        found = await placed(client, namespace, 3 * pods + 10)
        assert all(where.startswith(f"{name[0]}-") for name, where in found.items())
    for kind in (NODES, NODE_SHARDS):
        for obj in (await client.get(kind.list_path))["items"]:
            await client.delete(kind.path(obj["metadata"]["name"]))
