"""Watches: what they tell, where they begin, and how they end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pumice.apiserver.api.http import Limits
from pumice.apiserver.cluster import Cluster
from pumice.apiserver.objects import Deletion, Options
from pumice.apiserver.store import Store
from tests.unit.apiserver.conftest import Client
from tests.unit.apiserver.worlds import cluster, create, pod, target

PODS = "/api/v1/namespaces/default/pods"
PATIENCE_S = 30


class Lines:
    """The events of one watch, as they come."""

    def __init__(self, content: Any) -> None:
        self._content = content

    async def next(self) -> dict[str, Any]:
        line = await asyncio.wait_for(self._content.readline(), PATIENCE_S)
        assert line, "the watch ended"
        found: dict[str, Any] = json.loads(line)
        return found

    async def reports(self, count: int) -> list[tuple[str, str]]:
        events = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]

    async def ended(self) -> bool:
        return not await asyncio.wait_for(self._content.readline(), PATIENCE_S)


@asynccontextmanager
async def watching(
    client: Client, path: str = PODS, accept: str = "application/json", **params: Any
) -> AsyncIterator[Lines]:
    query = {"watch": "1", **{key: str(value) for key, value in params.items()}}
    async with client.get(path, params=query, headers={"Accept": accept}) as answer:
        assert answer.status == 200, await answer.text()
        yield Lines(answer.content)


def labelled(world: Cluster, name: str, **labels: str) -> None:
    where = target(world, "pods", name)
    world.objects.change(where, lambda old: {**old, "metadata": {**old["metadata"], "labels": labels}}, Options())


def deleted(world: Cluster, name: str) -> None:
    world.objects.delete(target(world, "pods", name), Deletion())


async def test_from_a_version_on(client: Client, world: Cluster) -> None:
    create(world, pod("a"))
    version = world.store.version
    create(world, pod("b"))
    async with watching(client, resourceVersion=version) as lines:
        labelled(world, "a", x="1")
        deleted(world, "b")
        assert await lines.reports(3) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


async def test_without_a_version_all_that_is_there_comes_first(client: Client, world: Cluster) -> None:
    create(world, pod("a"))
    async with watching(client) as lines:
        assert await lines.reports(1) == [("ADDED", "a")]
        create(world, pod("b"))
        assert await lines.reports(1) == [("ADDED", "b")]


async def test_initial_events_end_with_a_bookmark(client: Client, world: Cluster) -> None:
    create(world, pod("a"))
    how = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with watching(client, **how) as lines:
        assert await lines.reports(1) == [("ADDED", "a")]
        end = await lines.next()
        assert (end["type"], end["object"]["kind"]) == ("BOOKMARK", "Pod")
        assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert end["object"]["metadata"]["resourceVersion"] == str(world.store.version)


@pytest.mark.parametrize(
    "how",
    [
        {"sendInitialEvents": "true", "allowWatchBookmarks": "true"},
        {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"},
    ],
    ids=["without a match", "without bookmarks"],
)
async def test_initial_events_want_their_options(client: Client, how: dict[str, str]) -> None:
    async with client.get(PODS, params={"watch": "1", **how}) as answer:
        assert answer.status == 422


async def test_what_comes_into_a_selection_is_added_and_what_leaves_it_deleted(client: Client, world: Cluster) -> None:
    create(world, pod("a"))
    async with watching(client, labelSelector="in=yes") as lines:
        labelled(world, "a", other="1")
        labelled(world, "a", **{"in": "yes"})
        labelled(world, "a", **{"in": "yes", "more": "1"})
        labelled(world, "a", **{"in": "no"})
        deleted(world, "a")
        create(world, pod("b", labels={"in": "yes"}))
        assert await lines.reports(4) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "b")]


async def test_a_watch_has_no_events_of_other_namespaces(client: Client, world: Cluster) -> None:
    async with watching(client) as lines, watching(client, "/api/v1/pods") as everywhere:
        create(world, pod("far"), "kube-public")
        create(world, pod("near"))
        assert await lines.reports(1) == [("ADDED", "near")]
        assert await everywhere.reports(2) == [("ADDED", "far"), ("ADDED", "near")]


async def test_tables_bring_their_columns_once(client: Client, world: Cluster) -> None:
    create(world, pod("a"))
    async with watching(client, accept="application/json;as=Table;v=v1;g=meta.k8s.io") as lines:
        create(world, pod("b"))
        first, second = await lines.next(), await lines.next()
    assert [row["cells"][0] for event in (first, second) for row in event["object"]["rows"]] == ["a", "b"]
    assert first["object"]["columnDefinitions"]
    assert second["object"]["columnDefinitions"] is None


async def test_time_is_up(client: Client, world: Cluster) -> None:
    async with watching(client, timeoutSeconds=1, allowWatchBookmarks="true") as lines:
        last = await lines.next()
        assert (last["type"], last["object"]["metadata"]["resourceVersion"]) == ("BOOKMARK", str(world.store.version))
        assert await lines.ended()


@pytest.mark.parametrize("ahead", [False, True], ids=["too old", "to come"])
async def test_a_version_that_cannot_be_continued_is_410(ahead: bool, client: Client, world: Cluster) -> None:
    version = world.store.version + 100 if ahead else 0
    if not ahead:
        world.store.loaded(world.store.version + 10)
        version = world.store.version - 5
    async with client.get(PODS, params={"watch": "1", "resourceVersion": str(version)}) as answer:
        assert (answer.status, (await answer.json())["reason"]) == (410, "Expired")


async def test_a_kind_that_goes_ends_its_watches(client: Client, world: Cluster) -> None:
    async with watching(client, "/apis/scheduling.volcano.sh/v1beta1/queues") as lines:
        world.objects.delete(
            target(world, "customresourcedefinitions.apiextensions.k8s.io", "queues.scheduling.volcano.sh"), Deletion()
        )
        create(world, pod("a"))
        assert await lines.ended()


class TestBookmarks:
    @pytest.fixture
    def limits(self) -> Limits:
        return Limits(bookmark_s=0.05)

    async def test_they_come_while_nothing_happens(self, client: Client, world: Cluster) -> None:
        async with watching(client, allowWatchBookmarks="true") as lines:
            create(world, pod("far"), "kube-public")
            for _ in range(2):
                event = await lines.next()
                assert (event["type"], event["object"]["metadata"]["resourceVersion"]) == (
                    "BOOKMARK",
                    str(world.store.version),
                )

    async def test_a_watch_without_them_sleeps_between(
        self, client: Client, world: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It looks once a period, of which its second has twenty, and not as often as the processor allows."""
        looks, since = [], world.store.since
        monkeypatch.setattr(world.store, "since", lambda *args: looks.append(args) or since(*args))
        async with watching(client, timeoutSeconds=1) as lines:
            assert await lines.ended()
        assert 1 <= len(looks) <= 30


class TestSlowWatchers:
    @pytest.fixture
    def world(self) -> Cluster:
        return cluster(store=Store(history_max=10))

    async def test_one_that_falls_behind_is_reported(self, client: Client, world: Cluster) -> None:
        async with watching(client) as lines:
            for i in range(30):  # at once: the watch has no chance to read
                create(world, pod(f"p{i}"))
            event = await lines.next()
            assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
            assert await lines.ended()
