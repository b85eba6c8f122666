"""All kinds at once against a real server: the barrier, what holds it up and what does not, one line a trouble."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from pumice.kube.api.access import bearer
from pumice.kube.api.client import Client
from pumice.kube.api.kinds import (
    DISRUPTION_BUDGETS,
    FOLLOWED,
    HYPER_NODES,
    NAMESPACES,
    NODE_SHARDS,
    NUMA_TOPOLOGIES,
    RESOURCE_QUOTAS,
)
from pumice.kube.api.retry_policy import RetryPolicy
from pumice.kube.informers.all_kinds import InformerSet
from pumice.model.devices.numa import Numatopology
from tests.kube.objects import crd, create, hypernode, install_crd, node, pod, remove_crd
from tests.kube.proxy import FaultProxy, answer, lose_request
from tests.kube.reflecting import FAST, Mirror
from tests.kube.server import ApiServer
from tests.kube.waiting import PATIENCE_S, until


@asynccontextmanager
async def informers(client: Client, retry_policy: RetryPolicy = FAST) -> AsyncIterator[tuple[InformerSet, Mirror]]:
    mirror = Mirror()
    it = InformerSet(client, mirror.take, retry_policy=retry_policy)
    task = asyncio.create_task(it.run())
    try:
        yield it, mirror
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def synced(it: InformerSet) -> None:
    await asyncio.wait_for(it.synced(), PATIENCE_S)


async def test_every_kind_is_there_after_the_barrier(client: Client, crds: None, namespace: str) -> None:
    quota = {"metadata": {"name": "q", "namespace": namespace}, "spec": {"hard": {"pods": "10"}}}
    budget = {"metadata": {"name": "b", "namespace": namespace}, "spec": {"minAvailable": 1}}
    shard = {"apiVersion": NODE_SHARDS.api_version, "kind": "NodeShard", "metadata": {"name": "s"}}
    await client.post(RESOURCE_QUOTAS.namespace_path(namespace), quota)
    await client.post(DISRUPTION_BUDGETS.namespace_path(namespace), budget)
    await client.post(NODE_SHARDS.list_path, {**shard, "spec": {"nodesDesired": ["n"]}})
    numa = {"apiVersion": NUMA_TOPOLOGIES.api_version, "kind": "Numatopology", "metadata": {"name": f"{namespace}-n"}}
    await client.post(NUMA_TOPOLOGIES.list_path, {**numa, "spec": {"policies": {"CPUManagerPolicy": "static"}}})
    await create(client, node(f"{namespace}-n"), pod(namespace, "p"))
    async with informers(client) as (it, mirror):
        await synced(it)
        assert it.trouble() == []
        found = it.objects(NUMA_TOPOLOGIES)[f"{namespace}-n"].value
        assert isinstance(found, Numatopology)
        assert found.cpu_policy == "static"
        assert {"b", "p", "q"} == mirror.names(namespace)
        assert f"{namespace}-n" in mirror.names()
        assert f"{namespace}/q" in it.objects(RESOURCE_QUOTAS)
        assert f"{namespace}/b" in it.objects(DISRUPTION_BUDGETS)
        assert namespace in it.objects(NAMESPACES)
        assert it.objects(NODE_SHARDS)["s"].value["spec"] == {"nodesDesired": ["n"]}  # type: ignore[index]
        await client.delete(DISRUPTION_BUDGETS.path(f"{namespace}/b"))
        await until(lambda: f"{namespace}/b" not in it.objects(DISRUPTION_BUDGETS))


async def test_kinds_that_are_not_installed_hold_nobody_up(
    client: Client, crds: None, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pumice.kube")
    kinds = (HYPER_NODES, NUMA_TOPOLOGIES, NODE_SHARDS)
    for kind in kinds:
        await remove_crd(client, kind.full_name)
    await create(client, pod(namespace, "p"))
    async with informers(client) as (it, mirror):
        await synced(it)
        assert "p" in mirror.names(namespace)
        off = [
            "hypernodes.topology.volcano.sh is not installed: network topology is off until it appears",
            "nodeshards.shard.volcano.sh is not installed: node sharding is off until it appears",
            "numatopologies.nodeinfo.volcano.sh is not installed: NUMA awareness is off until it appears",
        ]
        assert it.trouble() == off
        for kind in kinds:
            await install_crd(client, crd(kind.group, kind.version, kind.kind, kind.plural, namespaced=False))
        await client.post(HYPER_NODES.list_path, hypernode("h", "n"))
        await until(lambda: "h" in mirror.names())
        await until(lambda: it.trouble() == [])
    reports = [r.getMessage() for r in caplog.records if "installed" in r.getMessage()]
    assert sorted(reports) == sorted([*off, *(f"{kind.full_name} is installed now: on" for kind in kinds)])
    for kind in kinds:
        await remove_crd(client, kind.full_name)


async def test_what_may_not_be_read_is_reported_and_pods_are_waited_for(server: ApiServer, proxy: FaultProxy) -> None:
    async with Client(bearer(proxy.url, server.token("nobody"))) as nobody, informers(nobody) as (it, mirror):
        await until(lambda: len(it.trouble()) == len(FOLLOWED))
        assert all(line.startswith("no right to list and watch ") for line in it.trouble())
        waited = {kind for kind, reflector in it.reflectors.items() if not reflector.synced.is_set()}
        assert waited == {kind for kind in FOLLOWED if kind.needed}
        assert mirror.events == []


async def test_one_slow_kind_holds_the_barrier_and_one_bad_one_only_itself(
    through: Client, client: Client, crds: None, proxy: FaultProxy, namespace: str
) -> None:
    await create(client, pod(namespace, "p"))
    pods = proxy.on("GET", r"^/api/v1/pods\?", answer(500, "InternalError"), times=10**6)
    async with informers(through) as (it, mirror):
        await until(lambda: sum(not r.synced.is_set() for r in it.reflectors.values()) == 1)
        barrier = asyncio.create_task(it.synced())
        assert len(it.trouble()) == 1
        assert "HTTP 500 InternalError" in it.trouble()[0]
        assert not barrier.done()
        pods.times = 0
        await asyncio.wait_for(barrier, PATIENCE_S)
        assert mirror.names(namespace) == {"p"}
        assert it.trouble() == []


async def test_rights_that_come_up_late_keep_nobody_waiting(through: Client, crds: None, proxy: FaultProxy) -> None:
    """As after a restart of the API server, or a first install. Waited out one by one they took minutes."""
    for kind in FOLLOWED:
        proxy.on("GET", rf"^{kind.list_path}\?", answer(403, "Forbidden", "no role yet"), times=4)
    async with informers(through, RetryPolicy()) as (it, _):
        await synced(it)
        await until(lambda: it.trouble() == [])


async def test_an_outage_is_one_line_not_one_a_kind(
    through: Client, crds: None, proxy: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    async with informers(through) as (it, _):
        await synced(it)
        down = proxy.on("GET", "", lose_request(), times=10**6)
        proxy.cut("watch=1")
        await until(lambda: down.hits > 4 * len(FOLLOWED))
        assert len(it.trouble()) == 1
        down.times = 0
        await until(lambda: it.trouble() == [])
    reports = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert len(reports) == 1
    assert reports[0].startswith("the API server does not answer: ")
