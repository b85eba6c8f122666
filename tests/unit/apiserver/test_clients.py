"""Every kind that is served, through the clients that users have: written, read, listed, watched, changed and deleted
by the ``kubernetes`` client (its dynamic part, which rests on discovery), by lightkube and by kr8s."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import kr8s.asyncio
import pytest
from kr8s.asyncio.objects import APIObject, new_class
from kubernetes.aio import client as typed
from kubernetes.aio.dynamic import DynamicClient
from lightkube import AsyncClient, KubeConfig
from lightkube.core.exceptions import LoadResourceError
from lightkube.core.resource_registry import resource_registry
from lightkube.generic_resource import create_global_resource, create_namespaced_resource
from lightkube.types import PatchType

from pumice.apiserver.api.kubeconfig import write_kubeconfig
from pumice.apiserver.cluster import Cluster
from pumice.apiserver.kinds.resources import Resource
from tests.unit.apiserver.bodies import body
from tests.unit.apiserver.conftest import Client

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning"),  # kr8s, of versions newer than itself
]
WATCH_S = 10


@pytest.fixture(autouse=True, scope="module")
def swept() -> Iterator[None]:
    """Clients leave connections of ended watches to the collector of garbage: not to that of another test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture
def config(client: Client, tmp_path: Path) -> Path:
    """The kubeconfig as ``pumice serve`` writes it."""
    write_kubeconfig(tmp_path / "config", str(client._base_url).rstrip("/"))
    return tmp_path / "config"


async def test_kubernetes(world: Cluster, client: Client) -> None:
    configuration = typed.Configuration()
    configuration.host = str(client._base_url).rstrip("/")
    async with typed.ApiClient(configuration) as api, DynamicClient(api) as dynamic:
        for resource in world.registry.resources():
            kind = await dynamic.resources.get(api_version=resource.api_version, kind=resource.kind)
            place = place_of(resource)
            made = await kind.create(body=body(resource), **place)
            name = made.metadata.name
            assert name in [one.metadata.name for one in (await kind.get(**place)).items]
            assert (await kind.get(name=name, **place)).metadata.uid == made.metadata.uid
            async with aclosing(kind.watch(timeout=WATCH_S, **place)) as events:
                await wait_for(name, (event["raw_object"]["metadata"]["name"] async for event in events))
            label = {"metadata": {"labels": {"seen": "yes"}}}
            changed = await kind.patch(name=name, body=label, content_type="application/merge-patch+json", **place)
            assert changed.metadata.labels.seen == "yes"
            await kind.delete(name=name, **place)


async def test_lightkube(world: Cluster, config: Path) -> None:
    async with AsyncClient(config=KubeConfig.from_file(config)) as api:
        for resource in world.registry.resources():
            kind, place = lightkube_class(resource), place_of(resource)
            made = await api.create(kind.from_dict(body(resource)))
            name = made.metadata.name
            assert (await api.get(kind, name, **place)).metadata.uid == made.metadata.uid
            assert name in [one.metadata.name async for one in api.list(kind, **place)]
            async with aclosing(api.watch(kind, server_timeout=WATCH_S, **place)) as events:
                await wait_for(name, (one.metadata.name async for _, one in events))
            changed = await api.patch(
                kind, name, {"metadata": {"labels": {"seen": "yes"}}}, patch_type=PatchType.MERGE, **place
            )
            assert changed.metadata.labels["seen"] == "yes"
            await api.replace(changed)
            await api.delete(kind, name, **place)


async def test_kr8s(world: Cluster, config: Path) -> None:
    api = await kr8s.asyncio.api(kubeconfig=str(config))
    for resource in world.registry.resources():
        kind, place = kr8s_class(resource), place_of(resource)
        made = await kind(body(resource), api=api)
        await made.create()
        assert made.name in [one.name async for one in kind.list(api=api, **place)]
        async with aclosing(api.async_watch(kind, **place)) as events:
            await wait_for(made.name, (one.name async for _, one in events))
        await made.label(seen="yes")
        await made.refresh()
        assert made.labels["seen"] == "yes"
        await made.delete()


async def wait_for(name: str, names: AsyncIterator[str]) -> None:
    """A watch without a version begins with what is there."""
    async with asyncio.timeout(WATCH_S):
        async for found in names:
            if found == name:
                return
    raise AssertionError(f"the watch did not tell of {name}")


def place_of(resource: Resource) -> dict[str, Any]:
    return {"namespace": "default"} if resource.namespaced else {}


def lightkube_class(resource: Resource) -> Any:
    try:
        return resource_registry.load(resource.api_version, resource.kind)
    except (LoadResourceError, ImportError):
        make = create_namespaced_resource if resource.namespaced else create_global_resource
        return make(resource.group, resource.version, resource.kind, resource.plural)


def kr8s_class(resource: Resource) -> type[APIObject]:
    return new_class(resource.kind, resource.api_version, namespaced=resource.namespaced, plural=resource.plural)
