"""CronJobs and JobFlows on a real API server, whose definitions and status subresources are the shipped ones."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pumice.kube.api.client import Client
from pumice.kube.api.kinds import EVENTS, Kind
from pumice.kube.controllers.kinds import CRON_JOBS, JOB_FLOWS, JOB_TEMPLATES, JOBS
from tests.kube.controllers.test_controllers import Obj, controlling, eventually, job

_MINUTE_S = 60.0


class Clock:
    """The server's, and what a test lets pass on top of it."""

    def __init__(self) -> None:
        # In the middle of the present minute, so that no minute begins but those that a test lets pass.
        self.ahead_s = _MINUTE_S / 2 - time.time() % _MINUTE_S

    def __call__(self) -> float:
        return time.time() + self.ahead_s


class Made:
    """What controllers make in a namespace."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client, self.namespace = client, namespace

    async def create(self, kind: Kind, name: str, spec: Obj) -> None:
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec}
        await self.client.post(kind.namespace_path(self.namespace), body)

    async def status(self, kind: Kind, name: str) -> Obj:
        found: Obj = (await self.client.get(kind.path(f"{self.namespace}/{name}"))).get("status", {})
        return found

    async def ends(self, name: str) -> None:
        """A Job completes, as its own controller would have it."""
        state = {"phase": "Completed", "lastTransitionTime": "2026-01-15T08:00:00Z"}
        path = JOBS.path(f"{self.namespace}/{name}", "status")
        await self.client.patch(path, {"status": {"state": state}})

    async def jobs(self) -> list[str]:
        found = (await self.client.get(JOBS.namespace_path(self.namespace)))["items"]
        return sorted(each["metadata"]["name"] for each in found)

    async def come_to(self, *names: str) -> None:
        async def so() -> bool:
            return await self.jobs() == list(names)

        await eventually(so, f"the Jobs are not {names}")

    async def says(self, kind: Kind, name: str, look: Any) -> None:
        """Wait until a status is as wanted."""

        async def so() -> bool:
            return bool(look(await self.status(kind, name)))

        await eventually(so, f"{kind.kind} {name} does not say so")


@pytest.fixture
def made(client: Client, crds: None, namespace: str) -> Made:
    return Made(client, namespace)


async def test_a_cron_job_replaces_the_job_that_still_runs(client: Client, made: Made) -> None:
    clock = Clock()
    template = {"spec": job(made.namespace)["spec"]}
    spec = {"schedule": "* * * * *", "concurrencyPolicy": "Replace", "jobTemplate": template}
    async with controlling(client, "cronjob", clock=clock):
        await made.create(CRON_JOBS, "c", spec)
        clock.ahead_s += _MINUTE_S
        await made.client.patch(CRON_JOBS.path(f"{made.namespace}/c"), {"metadata": {"labels": {"looked": "at"}}})
        await made.says(CRON_JOBS, "c", lambda status: status.get("active"))
        (first,) = await made.jobs()
        assert (await made.status(CRON_JOBS, "c"))["active"][0]["name"] == first
        clock.ahead_s += _MINUTE_S
        await made.client.patch(CRON_JOBS.path(f"{made.namespace}/c"), {"metadata": {"labels": {"looked": "again"}}})
        await made.says(CRON_JOBS, "c", lambda status: [job["name"] for job in status.get("active", ())] != [first])
        (second,) = await made.jobs()
        assert int(second.rpartition("-")[2]) > int(first.rpartition("-")[2]), "named after their minutes"
        await made.ends(second)
        await made.says(CRON_JOBS, "c", lambda status: not status.get("active") and status.get("lastSuccessfulTime"))
    reports = (await client.get(EVENTS.namespace_path(made.namespace)))["items"]
    assert {"SuccessfulCreate", "SuccessfulDelete"} <= {event["reason"] for event in reports}


async def test_jobs_of_a_flow_follow_each_other_and_go_with_it(client: Client, made: Made) -> None:
    flows = [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]
    async with controlling(client, "jobflow"):
        await made.create(JOB_FLOWS, "f", {"flows": flows, "jobRetainPolicy": "delete"})
        for name in ("a", "b"):
            await made.create(JOB_TEMPLATES, name, job(made.namespace)["spec"])
        await made.come_to("f-a")
        await made.says(JOB_TEMPLATES, "a", lambda status: status.get("jobDependsOnList") == ["f-a"])
        await made.ends("f-a")
        await made.come_to("f-a", "f-b")
        await made.says(JOB_FLOWS, "f", lambda status: status.get("completedJobs") == ["f-a"])
        await made.ends("f-b")
        await made.come_to()
        await made.says(JOB_FLOWS, "f", lambda status: status["state"]["phase"] == "Succeed")
