"""Several ``pumice run`` on one real API server, each with the nodes of its NodeShard."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Sequence
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
from tests.kube.waiting import PATIENCE_S

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
    """Wait until all pods, so many, are on nodes; each with its node."""
    path = PODS.namespace_path(namespace)

    async def none_waits() -> bool:
        # One pod is enough to know: a list of thousands would take the processor from the schedulers.
        return not (await client.get(path, params={"fieldSelector": "spec.nodeName=", "limit": "1"}))["items"]

    await eventually(none_waits, f"{count} pods are not bound", PATIENCE_S + count / 20)
    found = {each["metadata"]["name"]: each["spec"]["nodeName"] for each in (await client.get(path))["items"]}
    assert len(found) == count
    return found


async def set_up(client: Client, namespace: str, shards: Sequence[str], nodes: int, pods: int) -> None:
    """Create NodeShards, and the nodes and pods of each."""
    queue = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": "default"}, "spec": {"weight": 1}}
    with suppress(ApiError):  # it is there already
        await client.post(QUEUES.list_path, queue)
    await create(client, *(node(f"{s}-n{i}") for s in shards for i in range(nodes)))
    for shard in shards:
        desired = {"spec": {"nodesDesired": [f"{shard}-n{i}" for i in range(nodes)]}}
        head = {"apiVersion": NODE_SHARDS.api_version, "kind": "NodeShard", "metadata": {"name": shard}}
        await client.post(NODE_SHARDS.list_path, head | desired)
        await client.post(POD_GROUPS.namespace_path(namespace), pod_group(namespace, shard, 1))
        await add_pods(client, namespace, shard, 0, pods)


async def tear_down(client: Client, namespace: str) -> None:
    # Pods too: those of nodes that are gone count in their queue.
    await client.delete(PODS.namespace_path(namespace))
    for kind in (NODES, NODE_SHARDS):
        for obj in (await client.get(kind.list_path))["items"]:
            await client.delete(kind.path(obj["metadata"]["name"]))


async def figures_of(scheduler: Running) -> dict[str, float]:
    """Return the memory and the processor that a process took, in MB and seconds, as it says itself."""
    lines = (await scheduler.page("/metrics")).splitlines()
    found = dict(line.split() for line in lines if line.startswith("process_"))
    memory, cpu = found["process_resident_memory_bytes"], found["process_cpu_seconds_total"]
    return {"MB": round(float(memory) / 1e6), "CPU s": round(float(cpu), 1)}


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
    """``-s`` shows how long it took."""
    await set_up(client, namespace, SHARDS, nodes, pods)
    begun = time.monotonic()
    with ExitStack() as stack:

        def start(shard: str) -> Running:
            words = flags(namespace, shard)
            return stack.enter_context(running(tmp_path, server.kubeconfig(), *words, quick_lease=shard == "a"))

        first = start("a")
        await first.says(" leads: Lease", seconds=120.0)
        standby, others = start("a"), [start(shard) for shard in SHARDS[1:]]
        found = await placed(client, namespace, 3 * pods)
        bound_s = time.monotonic() - begun
        assert all(where.startswith(f"{name[0]}-") for name, where in found.items())

        async def in_use() -> bool:
            status = (await client.get(NODE_SHARDS.path("a"))).get("status", {})
            return len(status.get("nodesInUse", ())) == nodes

        await eventually(in_use, "the NodeShard does not say what is in use")
        await standby.says("API server ", seconds=120.0)
        print(f"{3 * pods} pods in {bound_s:.1f} s; first, {[await figures_of(each) for each in (first, *others)]}")
        await first.ended(signal.SIGKILL)
        killed = time.monotonic()
        await add_pods(client, namespace, "a", pods, 10)
        after = await placed(client, namespace, 3 * pods + 10)
        print(f"the standby had bound 10 more {time.monotonic() - killed:.1f} s after the leader was killed")
        assert all(where.startswith(f"{name[0]}-") for name, where in after.items())
        assert found.items() <= after.items(), "no pod was bound a second time"
        # A second bind of a pod is a conflict, which the API server refuses and the scheduler logs.
        assert not any(each.said("already assigned") for each in (first, standby, *others))
    await tear_down(client, namespace)


async def test_a_soft_shard_uses_nodes_of_others_only_when_its_own_are_full(
    client: Client, crds: None, namespace: str, server: ApiServer, tmp_path: Path
) -> None:
    """Each node holds 16 pods: of 20, the own node takes 16. Its shard is not the first by name."""
    await set_up(client, namespace, ("x", "y", "z"), 1, 0)
    await add_pods(client, namespace, "y", 0, 20)
    words = [each.replace("=hard", "=soft") for each in flags(namespace, "y")]
    with running(tmp_path, server.kubeconfig(), *words):
        found = Counter((await placed(client, namespace, 20)).values())
    assert found["y-n0"] == 16 and found.total() == 20
    await tear_down(client, namespace)
