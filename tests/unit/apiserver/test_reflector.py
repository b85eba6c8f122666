"""The reflector that follows a real API server follows this one, with no special case."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pumice.apiserver.api.http import Api
from pumice.apiserver.api.server import serving
from pumice.apiserver.cluster import Cluster
from pumice.apiserver.objects import Deletion
from pumice.kube.api.access import Access
from pumice.kube.api.client import Client
from pumice.kube.api.kinds import POD_GROUPS, PODS
from pumice.model.pod import Pod
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.serving.listening import Place
from tests.kube.reflecting import reflecting
from tests.kube.waiting import happens, until
from tests.unit.apiserver.worlds import cluster, create, group, node, pod, target


@pytest.fixture
async def api(world: Cluster) -> AsyncIterator[Client]:
    async with serving(Api(world), Place()) as url, Client(Access(url)) as opened:
        yield opened


@pytest.mark.parametrize("streaming", [True, False], ids=["initial events", "pages"])
async def test_objects_are_mirrored(world: Cluster, api: Client, streaming: bool) -> None:
    for i in range(1200):  # three pages
        create(world, pod(f"p{i}"))
    async with reflecting(api, PODS, Pod, streaming=streaming) as (reflector, mirror):
        await happens(reflector.synced)
        assert len(mirror.objects) == 1200
        create(world, pod("late"))
        world.objects.delete(target(world, "pods", "p7"), Deletion())
        await until(lambda: "late" in mirror.names("default") and "p7" not in mirror.names("default"))
        assert reflector.lists == 1
        assert reflector.streaming is streaming


async def test_what_can_be_read_in_part_is_reported_and_counts(world: Cluster, api: Client) -> None:
    """It is among the objects that cannot be read for as long as it is so, and among those that are known."""
    wrong = {**pod("a"), "spec": {**pod("a")["spec"], "nodeName": "n", "tolerations": [{"operator": "Perhaps"}]}}
    wrong["metadata"] |= {"namespace": "default", "uid": "a"}
    async with reflecting(api, PODS, Pod) as (reflector, mirror):
        await happens(reflector.synced)
        world.store.put("pods", "default/a", wrong)
        await until(lambda: mirror.names("default") == {"a"})
        (unparsable,) = reflector.unparsable.current()
        assert (unparsable.key, unparsable.uid) == ("default/a", "a")
        assert unparsable.why.endswith("; it still counts")
        world.store.put("pods", "default/a", {**wrong, "spec": {**wrong["spec"], "tolerations": []}})
        await until(lambda: not reflector.unparsable.current())
        assert mirror.names("default") == {"a"}


async def test_a_gap_in_the_history_is_listed_over(world: Cluster, api: Client) -> None:
    create(world, pod("gone"))
    create(world, pod("stays"))
    async with reflecting(api, PODS, Pod) as (reflector, mirror):
        await happens(reflector.synced)
        world.store.loaded(world.store.version + 1)  # nothing before this is kept
        world.objects.delete(target(world, "pods", "gone"), Deletion())
        create(world, pod("new"))
        await until(lambda: mirror.names("default") == {"stays", "new"})
        assert reflector.lists == 2


async def test_what_pumice_writes_comes_back(world: Cluster, api: Client) -> None:
    create(world, node("n"))
    await api.post(POD_GROUPS.namespace_path("default"), group("g", minMember=1))
    await api.post(PODS.namespace_path("default"), pod("a", annotations={"pumice.dev/duration": "1h"}))
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "a"},
        "target": {"kind": "Node", "name": "n"},
    }
    async with reflecting(api, PODS, Pod) as (_, pods), reflecting(api, POD_GROUPS, PodGroup) as (_, groups):
        await until(lambda: groups.names("default") == {"g"})
        await api.post(PODS.path("default/a", "binding"), binding)
        await until(lambda: "default/a" in pods.objects and pods.objects["default/a"].phase == "Running")  # type: ignore[union-attr]
        await api.delete(PODS.path("default/a"))
        await until(lambda: not pods.objects)
    assert await api.served(POD_GROUPS)
    assert not await api.served(POD_GROUPS, "status")


def test_worlds_are_equal() -> None:
    """Two clusters that are given equal input are equal: uids, names and times follow from it."""
    first, second = cluster(), cluster()
    for world in (first, second):
        template = pod("")
        template["metadata"] = {"generateName": "a-"}
        create(world, template)
    assert [row.raw for row in first.store.rows("pods")] == [row.raw for row in second.store.rows("pods")]
