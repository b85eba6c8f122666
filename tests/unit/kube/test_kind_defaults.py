"""The grouping loop on the embedded API server: defaults by kind of owner are read from their ConfigMap."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress

import pytest

from pumice.apiserver.api.http import Api
from pumice.apiserver.api.server import serving
from pumice.kube.api.access import Access
from pumice.kube.api.client import Client
from pumice.kube.api.kinds import KAI_POD_GROUPS, PODS, PRIORITY_CLASSES
from pumice.kube.controllers.kai_grouping import GroupingLoop
from pumice.kube.controllers.kinds import CONFIG_MAPS
from pumice.runtime.controllers.kai.groups import GroupingSettings
from pumice.runtime.serving.listening import Place
from tests.unit.apiserver.worlds import START, cluster

PATIENCE_S = 60.0
SETTINGS = GroupingSettings(kind_defaults="default/kinds")


async def class_of_group(client: Client, name: str) -> str:
    """Create a pod, and return the priority class of the group that it gets."""
    spec = {"schedulerName": "kai-scheduler", "containers": [{"name": "c", "image": "i"}]}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    await client.post(PODS.namespace_path("default"), made)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for group in (await client.get(KAI_POD_GROUPS.namespace_path("default")))["items"]:
            if f"-{name}-" in group["metadata"]["name"]:
                return str(group["spec"]["priorityClassName"])
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 0.01)
    raise AssertionError("no group was made")


@pytest.mark.parametrize("types", [json.dumps([{"typeName": "Pod", "priorityName": "of-pods"}]), "[", None])
async def test_a_pod_gets_the_class_of_its_kind(types: str | None, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(Api(cluster()), Place()) as url, Client(Access(url)) as client:
        await client.post(PRIORITY_CLASSES.list_path, {"metadata": {"name": "of-pods"}, "value": 7})
        if types is not None:
            body = {"metadata": {"name": "kinds"}, "data": {"types": types}}
            await client.post(CONFIG_MAPS.namespace_path("default"), body)
        task = asyncio.create_task(GroupingLoop(client, SETTINGS, lambda: START).run())
        try:
            found = await class_of_group(client, "one")
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    if types is not None and types != "[":
        assert found == "of-pods"
    else:
        assert found == "train"
        assert "ConfigMap default/kinds: " in caplog.text and "no kind of owner has defaults" in caplog.text
