"""A node is locked while a pod is on its way to its cards, on a real API server."""

from __future__ import annotations

from typing import Any

from pumice.kube.api.client import Client
from pumice.kube.api.kinds import NODES, PODS
from pumice.kube.binding.node_locks import NodeLocking
from pumice.model.decisions import DEVICES
from pumice.model.devices.shared_devices import DeviceGrant
from tests.kube.objects import create, pod
from tests.kube.proxy import FaultProxy, answer
from tests.kube.scheduling import Scheduling, scheduling

NODE, LOCK = "locks-n1", "hamivgpu"
NOW, TAKEN = 1_800_000_000.0, "2027-01-15T08:00:00Z"


def to_bind(at_work: Scheduling, name: str) -> Any:
    grant = DeviceGrant(at_work.namespace, name, (("volcano.sh/bind-phase", "allocating"),), (LOCK,))
    return at_work.bind_of(name, NODE)._replace(context={DEVICES: grant})


async def lock_of(client: Client) -> str | None:
    found = (await client.get(NODES.path(NODE)))["metadata"].get("annotations") or {}
    written: str | None = found.get(LOCK)
    return written


async def test_one_pod_at_a_time_is_on_its_way_to_a_node(client: Client, namespace: str) -> None:
    """The device plugin gives the lock back; until then, or until it expires, others wait."""
    now = [NOW]
    hooks = (NodeLocking(client, clock=lambda: now[0]),)
    await create(client, pod(namespace, "a"), pod(namespace, "b"), pod(namespace, "c"))
    async with scheduling(client, client, namespace, NODE, follow=(PODS, NODES), hooks=hooks) as at_work:
        await at_work.observe("a", "b", "c")
        at_work.cluster.bind(to_bind(at_work, "a"))
        assert await at_work.bound("a") == NODE
        assert await lock_of(client) == TAKEN
        at_work.cluster.bind(to_bind(at_work, "b"))
        await at_work.given_back("b")
        (condition,) = (await at_work.pod("b"))["status"]["conditions"]
        assert f"NodeLock: node {NODE} has been locked within 5 minutes" in condition["message"]
        now[0] += 301.0
        at_work.cluster.bind(to_bind(at_work, "c"))
        assert await at_work.bound("c") == NODE
        assert await lock_of(client) == "2027-01-15T08:05:01Z"


async def test_a_bind_that_fails_gives_its_lock_back_and_nobody_elses(
    through: Client, client: Client, proxy: FaultProxy, namespace: str
) -> None:
    hooks = (NodeLocking(through, clock=lambda: NOW),)
    await create(client, pod(namespace, "a"))
    proxy.on("POST", "/binding$", answer(403, "Forbidden"), times=2)
    async with scheduling(through, client, namespace, NODE, follow=(PODS, NODES), hooks=hooks) as at_work:
        await at_work.observe("a")
        at_work.cluster.bind(to_bind(at_work, "a"))
        await at_work.given_back("a")
        assert proxy.count("PATCH", f"/nodes/{NODE}$") == 2 and await lock_of(client) is None
        (hook,) = hooks
        bind = to_bind(at_work, "a")
        await hook.prepare(bind)
        await client.patch(NODES.path(NODE), {"metadata": {"annotations": {LOCK: "somebody else's"}}})
        await hook.undo(bind)
        assert await lock_of(client) == "somebody else's"
