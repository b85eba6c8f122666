"""CronJobs and JobFlows on the embedded API server: from the object to its Jobs, and back into its status."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from pumice.apiserver.api.http import Api
from pumice.apiserver.api.server import serving
from pumice.kube.api.access import Access
from pumice.kube.api.client import Client
from pumice.kube.controllers.kinds import CRON_JOBS, JOB_FLOWS, JOB_TEMPLATES, JOBS
from pumice.kube.controllers.loop import ControlLoop, ControlSettings
from pumice.runtime.serving.listening import Place
from tests.unit.apiserver.worlds import START, cluster

PATIENCE_S = 60.0
_TASKS = [{"name": "w", "replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}]


class At:
    """A server with the controllers at work."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def create(self, kind: Any, name: str, **spec: Any) -> None:
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec}
        await self.client.post(kind.namespace_path("default"), body)

    async def ends(self, name: str) -> None:
        """A Job completes, as its own controller would have it."""
        state = {"phase": "Completed", "lastTransitionTime": "2027-01-15T08:00:00Z"}
        await self.client.patch(JOBS.path(f"default/{name}", "status"), {"status": {"state": state}})

    async def jobs(self) -> list[str]:
        found = (await self.client.get(JOBS.namespace_path("default")))["items"]
        return sorted(each["metadata"]["name"] for each in found)

    async def comes_to(self, look: Callable[[], Any], wanted: Any) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while (found := await look()) != wanted:
            assert time.monotonic() < deadline, f"found {found}, wanted {wanted}"
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), 0.01)


@asynccontextmanager
async def controlling() -> AsyncIterator[At]:
    async with serving(Api(cluster()), Place()) as url, Client(Access(url)) as client:
        loop = ControlLoop(client, ControlSettings(controllers=("cronjob", "jobflow")), lambda: START + 90.0)
        task = asyncio.create_task(loop.run())
        try:
            yield At(client)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def test_a_cron_job_makes_the_job_that_is_due_and_says_so() -> None:
    async with controlling() as at:
        await at.create(CRON_JOBS, "c", schedule="* * * * *", jobTemplate={"spec": {"tasks": _TASKS}})
        name = f"c-{int(START + 60) // 60}"
        await at.comes_to(at.jobs, [name])

        async def active() -> Any:
            status = (await at.client.get(CRON_JOBS.path("default/c"))).get("status", {})
            return [each["name"] for each in status.get("active", ())]

        await at.comes_to(active, [name])
        await at.ends(name)
        await at.comes_to(active, [])


async def test_jobs_of_a_flow_follow_each_other() -> None:
    async with controlling() as at:
        flows = [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]
        await at.create(JOB_FLOWS, "f", flows=flows, jobRetainPolicy="delete")
        await at.create(JOB_TEMPLATES, "a", tasks=_TASKS)  # a flow hears of its templates, whenever they come
        await at.create(JOB_TEMPLATES, "b", tasks=_TASKS)
        await at.comes_to(at.jobs, ["f-a"])

        async def made_of_a() -> Any:
            return (await at.client.get(JOB_TEMPLATES.path("default/a"))).get("status", {}).get("jobDependsOnList")

        await at.comes_to(made_of_a, ["f-a"])
        await at.ends("f-a")
        await at.comes_to(at.jobs, ["f-a", "f-b"])
        await at.ends("f-b")
        await at.comes_to(at.jobs, [])
        assert (await at.client.get(JOB_FLOWS.path("default/f")))["status"]["state"]["phase"] == "Succeed"
