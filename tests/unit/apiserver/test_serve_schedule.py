"""``pumice serve --schedule``: one process that takes objects, schedules them and runs them."""

from __future__ import annotations

import asyncio
import json
import signal
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from pumice.kube.writers.start_annotations import BETWEEN_80, RECORD, START
from tests.unit.apiserver.commands import PATIENCE_S, Served, serving_command
from tests.unit.cli.kit import run

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
LEASES = "/apis/coordination.k8s.io/v1/leases"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases/volcano"


def job(name: str, pods: int, gpus: int = 2, duration: str = "1h") -> dict[str, Any]:
    """A gang that is whole with all its pods."""
    container = {"name": "main", "image": "i:1", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    task = {"name": "w", "replicas": pods, "template": {"spec": {"containers": [container]}}}
    metadata = {"name": name, "annotations": {"pumice.dev/duration": duration}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"minAvailable": pods, "tasks": [task]},
    }


class User:
    """What a client of the server does."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def create(self, path: str, body: dict[str, Any]) -> list[str]:
        """Create an object. Return the warnings of the server."""
        async with self._session.post(path, json=body) as answer:
            assert answer.status == 201, await answer.text()
            return answer.headers.getall("Warning", [])

    async def patch(self, path: str, patch: dict[str, Any]) -> None:
        headers = {"Content-Type": "application/merge-patch+json"}
        async with self._session.patch(path, json=patch, headers=headers) as answer:
            assert answer.status == 200, await answer.text()

    async def delete(self, path: str) -> None:
        async with self._session.delete(path) as answer:
            assert answer.status == 200, await answer.text()

    async def text(self, path: str, status: int = 200) -> str:
        async with self._session.get(path) as answer:
            assert answer.status == status, await answer.text()
            return await answer.text()

    async def get(self, path: str) -> Any:
        return json.loads(await self.text(path))

    async def sees(self, path: str, wanted: str, count: int = 1, after: Callable[[], object] = lambda: None) -> None:
        """Watch until so many objects are in this phase, or held by this holder; ``after`` is done while it watches."""
        known: dict[str, str] = {}
        async with self._session.get(path, params={"watch": "1"}) as answer:
            after()
            async for line in answer.content:
                obj = json.loads(line)["object"]
                known[obj["metadata"]["name"]] = _state(obj)
                if list(known.values()).count(wanted) == count:
                    return
        raise AssertionError(f"the watch ended, and of these are not {count} {wanted!r}: {known}")

    async def waits_for(self, path: str, wanted: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """Watch until an object is as wanted; that."""
        async with self._session.get(path, params={"watch": "1"}) as answer:
            async for line in answer.content:
                obj: dict[str, Any] = json.loads(line)["object"]
                if wanted(obj):
                    return obj
        raise AssertionError("the watch ended")


def _state(obj: dict[str, Any]) -> str:
    status, spec = obj.get("status") or {}, obj.get("spec") or {}
    return str(spec.get("holderIdentity", status.get("phase") or (status.get("state") or {}).get("phase")))


@asynccontextmanager
async def user_of(served: Served) -> AsyncIterator[User]:
    config = json.loads(served.kubeconfig.read_text().partition("\n")[2])
    token = config["users"][0]["user"].get("token")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    bounds = aiohttp.ClientTimeout(total=PATIENCE_S)
    async with aiohttp.ClientSession(
        served.url, headers=headers, connector=aiohttp.TCPConnector(ssl=context), timeout=bounds
    ) as session:
        yield User(session)


async def test_a_gang_runs_whole_and_a_larger_one_waits_whole(tmp_path: Path) -> None:
    with serving_command(tmp_path, "--nodes", "2x4gpu", "--schedule") as served:
        async with user_of(served) as user:
            await user.create(JOBS, job("fits", pods=2))
            await user.create(JOBS, job("large", pods=5))
            await user.sees("/api/v1/pods", "Running", 2)
            await user.sees(JOBS, "Running")
            pods = (await user.get("/api/v1/pods"))["items"]
            bound = {pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")}
            assert bound == {"fits-w-0", "fits-w-1"}
            assert 'volcano_queue_pod_group_completed_count{queue_name="default"} 0' in await user.text("/metrics")
        assert served.stop(signal.SIGINT) == 0


async def test_the_example_of_a_sweep_runs_as_an_indexed_job_to_its_end(tmp_path: Path) -> None:
    example = yaml.safe_load(Path("examples/sweep-job.yaml").read_text())
    example["metadata"]["annotations"]["pumice.dev/duration"] = "1s"
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    with serving_command(tmp_path, "--nodes", "2:cpu=4,memory=16Gi", "--schedule") as served:
        async with user_of(served) as user:
            await user.create(jobs, example)
            done = await user.waits_for(jobs, lambda job: "completionTime" in job.get("status", {}))
            assert done["status"]["completedIndexes"] == "0-3" and done["status"]["succeeded"] == 4
            pods = (await user.get("/api/v1/pods"))["items"]
            assert {pod["spec"]["schedulerName"] for pod in pods} == {"volcano"} and len(pods) == 4
            assert all(pod["spec"]["nodeName"] for pod in pods)
        assert served.stop(signal.SIGINT) == 0


@pytest.mark.slow
async def test_its_scheduler_answers_questions(tmp_path: Path) -> None:
    with serving_command(tmp_path, "--nodes", "2x4gpu", "--schedule") as served:
        async with user_of(served) as user:
            await user.create(JOBS, job("large", pods=5))
            groups = "/apis/scheduling.volcano.sh/v1beta1/podgroups"
            await user.waits_for(groups, lambda each: each.get("status", {}).get("conditions"))
            assert "large" in await user.text("/jobs")
        reports = await asyncio.to_thread(run, "explain", "large", "--server", served.url, "--no-ways")
        assert reports.code == 0 and "Shortage" in reports.out, reports
        reports = await asyncio.to_thread(run, "whatif", "--server", served.url, "--add-nodes", "1x4gpu")
        assert reports.code in (0, 1) and "digest" in reports.out, reports
        async with user_of(served) as user:
            assert "lacks the plugin reflectjoborder" in await user.text("/get-job-order", status=501)
        assert served.stop(signal.SIGINT) == 0


async def test_accelerated_jobs_end_and_make_room(tmp_path: Path) -> None:
    """Three hours, one job after the other, in three seconds of the pods."""
    with serving_command(tmp_path, "--nodes", "1x4gpu", "--schedule", "--speed", "3600") as served:
        async with user_of(served) as user:
            for number in range(3):
                await user.create(JOBS, job(f"j{number}", pods=2))
            await user.sees(JOBS, "Completed", 3)


async def test_with_a_token_and_a_certificate(tmp_path: Path) -> None:
    with serving_command(tmp_path, "--nodes", "1x4gpu", "--schedule", "--listen", "0.0.0.0") as served:
        async with user_of(served) as user:
            await user.create(JOBS, job("a", pods=2))
            await user.sees("/api/v1/pods", "Running", 2)
        assert served.stop(signal.SIGTERM) == 0


async def test_the_next_start_goes_on(tmp_path: Path) -> None:
    """The Lease is given back in the end; a job that waited is placed on the nodes that came."""
    how = ("--data", str(tmp_path / "data"), "--schedule")
    with serving_command(tmp_path, *how, "--nodes", "1x2gpu") as served:
        async with user_of(served) as user:
            await user.create(JOBS, job("a", pods=2))
            await user.sees("/apis/scheduling.volcano.sh/v1beta1/podgroups", "Pending")
            await user.sees(LEASES, "", after=lambda: served.process.send_signal(signal.SIGINT))
        assert served.stop() == 0
    with serving_command(tmp_path, *how, "--nodes", "2x2gpu") as served:
        async with user_of(served) as user:
            await user.sees("/api/v1/pods", "Running", 2)


async def test_after_a_crash_the_lease_is_its_own(tmp_path: Path) -> None:
    """Who held it died with the server: the next one does not wait for it to run out."""
    how = ("--data", str(tmp_path / "data"), "--schedule", "--nodes", "1x4gpu")
    with serving_command(tmp_path, *how) as served:
        async with user_of(served) as user:
            await user.sees(LEASES, "pumice-serve")
        served.process.kill()
    with serving_command(tmp_path, *how) as served:
        async with user_of(served) as user:
            await user.create(JOBS, job("a", pods=2))
            await user.sees("/api/v1/pods", "Running", 2)
            (lease,) = (await user.get(LEASES))["items"]
            assert lease["spec"]["leaseTransitions"] == 0


async def test_leadership_that_is_lost_is_sought_again(tmp_path: Path) -> None:
    """As when another scheduler took the Lease while this machine slept."""
    with serving_command(tmp_path, "--nodes", "1x4gpu", "--schedule") as served:
        async with user_of(served) as user:
            await user.sees(LEASES, "pumice-serve")
            await user.patch(LEASE, {"spec": {"holderIdentity": "another", "leaseDurationSeconds": 1}})
            await user.sees(LEASES, "pumice-serve")
            await user.create(JOBS, job("a", pods=2))
            await user.sees("/api/v1/pods", "Running", 2)
        assert served.stop() == 0


async def test_losing_the_scheduler_does_not_end_the_server(tmp_path: Path) -> None:
    """The namespace of its Lease is deleted: it is made again, and what waits is placed."""
    with serving_command(tmp_path, "--nodes", "1x4gpu", "--schedule") as served:
        async with user_of(served) as user:
            await user.sees(LEASES, "pumice-serve")
            await user.delete("/api/v1/namespaces/volcano-system")
            await user.create(JOBS, job("a", pods=2))
            await user.sees("/api/v1/pods", "Running", 2)
            await user.sees(LEASES, "pumice-serve")
        assert served.stop() == 0


@pytest.mark.slow
async def test_expected_starts_are_written_on_groups_that_wait(tmp_path: Path) -> None:
    groups = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
    with serving_command(tmp_path, "--nodes", "1x4gpu", "--schedule", "--annotate-starts", "10s") as served:
        async with user_of(served) as user:
            runs, waits = job("runs", pods=2), job("waits", pods=2)
            runs["spec"]["runningEstimate"] = "2h"
            await user.create(JOBS, runs)
            await user.sees("/api/v1/pods", "Running", 2)
            await user.create(JOBS, waits)
            found = await user.waits_for(groups, lambda group: START in (group["metadata"].get("annotations") or {}))
            assert found["metadata"]["name"].startswith("waits")
            written = found["metadata"]["annotations"]
            assert written[BETWEEN_80].startswith(written[START]) and RECORD not in written
        assert served.stop() == 0


@pytest.mark.parametrize(
    ("args", "reports"),
    [
        pytest.param(("--scheduler-conf", "conf"), "need --schedule", id="conf without scheduler"),
        pytest.param(("--plugins-dir", "."), "need --schedule", id="plugins without scheduler"),
        pytest.param(("--annotate-starts", "5m"), "need --schedule", id="starts without scheduler"),
        pytest.param(
            ("--schedule", "--annotate-starts", "5s"), "found 5 s, wanted at least 10 s", id="starts too often"
        ),
        pytest.param(("--schedule", "--scheduler-conf", "conf"), "alocate", id="a conf that is wrong"),
        pytest.param(("--schedule", "--scheduler-conf", "none"), "none: cannot be read", id="no conf"),
        pytest.param(("--schedule", "-v", "loud"), "wanted a number such as 4", id="verbosity"),
    ],
)
def test_what_is_refused(tmp_path: Path, args: tuple[str, ...], reports: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf").write_text('actions: "enqueue, alocate"\n')
    said = run("serve", "--port", "0", "--kubeconfig", "kubeconfig", *args)
    assert said.code == 2
    assert reports in said.lines("error")[0]
    assert not (tmp_path / "kubeconfig").exists()


async def test_under_kais_policy_pods_are_grouped_and_its_queues_say_what_they_have(tmp_path: Path) -> None:
    conf = tmp_path / "kai.conf"
    conf.write_text("dialect: kai\n")
    with serving_command(tmp_path, "--nodes", "1x4gpu", "--schedule", "--scheduler-conf", str(conf)) as served:
        async with user_of(served) as user:
            limits = {"limits": {"nvidia.com/gpu": "3"}}
            spec = {"schedulerName": "kai-scheduler", "containers": [{"name": "c", "image": "i", "resources": limits}]}
            for name in ("a", "b"):
                await user.create("/api/v1/namespaces/default/pods", {"metadata": {"name": name}, "spec": spec})
            await user.sees("/api/v1/pods", "Running")
            groups = "/apis/scheduling.run.ai/v2alpha2/podgroups"
            waits = await user.waits_for(groups, lambda each: each.get("status", {}).get("schedulingConditions"))
            assert waits["spec"]["queue"] == "default-queue"
            queues, wanted = "/apis/scheduling.run.ai/v2/queues", "3"
            await user.waits_for(queues, lambda each: _allocated(each).get("nvidia.com/gpu") == wanted)
        assert served.stop(signal.SIGINT) == 0


async def test_under_kais_policy_pods_share_a_gpu(tmp_path: Path) -> None:
    conf = tmp_path / "kai.conf"
    conf.write_text("dialect: kai\n")
    spec = {"schedulerName": "kai-scheduler", "containers": [{"name": "c", "image": "i"}]}
    with serving_command(tmp_path, "--nodes", "1x2gpu", "--schedule", "--scheduler-conf", str(conf)) as served:
        async with user_of(served) as user:
            for name in ("a", "b", "c"):
                metadata = {"name": name, "annotations": {"gpu-fraction": "0.5"}}
                await user.create("/api/v1/namespaces/default/pods", {"metadata": metadata, "spec": spec})
            await user.sees("/api/v1/namespaces/default/pods", "Running", 3)
            reserved = (await user.get("/api/v1/namespaces/kai-resource-reservation/pods"))["items"]
    assert sorted(each["metadata"]["annotations"]["run.ai/reserve_for_gpu_index"] for each in reserved) == ["0", "1"]


def _allocated(queue: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = queue.get("status", {}).get("allocated", {})
    return found
