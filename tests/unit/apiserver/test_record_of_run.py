"""``pumice run --record`` on the API of ``pumice serve``: the record is run again, and has nothing that is secret."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

from pumice.runtime.record.frames import frames_of
from pumice.runtime.record.recorder import files_of
from tests.forked import Forked
from tests.tied import tied
from tests.unit.apiserver.commands import PATIENCE_S, serving_command
from tests.unit.apiserver.test_serve_schedule import JOBS, job, user_of
from tests.unit.cli.kit import run

SECRET = "hunter2"  # what must not be found


def with_environment(body: dict[str, Any]) -> dict[str, Any]:
    """Return a job whose pods have a secret in their environment, arguments and annotation of kubectl."""
    template = body["spec"]["tasks"][0]["template"]
    container = template["spec"]["containers"][0]
    container |= {"env": [{"name": "PASSWORD", "value": SECRET}], "args": [f"--password={SECRET}"]}
    whole = {"kubectl.kubernetes.io/last-applied-configuration": f"PASSWORD={SECRET}"}
    template["metadata"] = {"annotations": whole}
    body["metadata"]["annotations"] |= whole
    return body


async def test_a_scheduler_that_ran_is_run_again_byte_for_byte(tmp_path: Path) -> None:
    record = tmp_path / "record"
    with serving_command(tmp_path, "--nodes", "2x4gpu") as served:
        flags = ["--leader-elect=false", "--enable-metrics=false", "--enable-healthz=false", "--controllers=on"]
        scheduler = ["run", "--kubeconfig", str(served.kubeconfig), *flags, "--schedule-period=100ms"]
        with Forked([*scheduler, "--record", str(record)], tmp_path) as running, tied(running):
            async with user_of(served) as user:
                secret = {"metadata": {"name": "s"}, "stringData": {"password": SECRET}}
                await user.create("/api/v1/namespaces/default/secrets", secret)
                await user.create(JOBS, with_environment(job("fits", pods=2)))
                await user.create(JOBS, with_environment(job("large", pods=5)))
                await user.sees("/api/v1/pods", "Running", 2)
                await user.delete(f"{JOBS}/fits")
                await user.create(JOBS, with_environment(job("next", pods=4)))
                await user.sees(JOBS, "Running")
            running.send_signal(signal.SIGINT)
            assert running.wait(PATIENCE_S) == 0
        assert served.stop(signal.SIGINT) == 0
    reports = await asyncio.to_thread(run, "replay", record, "--json")
    assert reports.code == 0, reports
    assert reports.json["cycles"] >= 2 and reports.json["differ"] == [] and reports.json["ends"] == []
    texts = b"".join(text for path in files_of(record) for text in frames_of(path.read_bytes()))
    for name in (b"default/fits-w-0", b"default/large-", b"default/next-w-3"):
        assert name in texts  # what is looked for below would be found
    assert SECRET.encode() not in texts
