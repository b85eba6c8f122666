"""``pumice serve``: what it says, writes, refuses, and how it ends."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from pumice.runtime.files.private import write_private
from pumice.runtime.serving.this_machine import is_loopback
from tests.unit.apiserver.commands import PUMICE, Served, serving_command
from tests.unit.cli.kit import run

MANIFESTS = """
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: team}
spec: {containers: [{name: c, image: "i:1"}]}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: own}, status: {capacity: {cpu: "4"}}}
- {apiVersion: v1, kind: Pod, metadata: {name: broken}, spec: {containers: []}}
---
apiVersion: example.com/v1
kind: Unheard
metadata: {name: x}
"""


async def names(served: Served, path: str) -> list[str]:
    async with aiohttp.ClientSession(served.url) as session, session.get(path) as answer:
        return [item["metadata"]["name"] for item in (await answer.json())["items"]]


def config(served: Served) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(served.kubeconfig.read_text().partition("\n")[2])
    return found


def refused(folder: Path, *args: str) -> str:
    """What the command says when it does not serve."""
    reports = run("serve", "--kubeconfig", folder / "kubeconfig", *args)
    assert reports.code == 2, reports.err
    return reports.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
async def test_it_serves_and_stops(tmp_path: Path, number: int) -> None:
    with serving_command(tmp_path, "--nodes", "3x1gpu") as served:
        assert await names(served, "/api/v1/nodes") == ["node-00000", "node-00001", "node-00002"]
        assert config(served)["clusters"][0]["cluster"] == {"server": served.url}
        assert served.kubeconfig.stat().st_mode & 0o777 == 0o600
        async with aiohttp.ClientSession(served.url) as session, session.get("/api/v1/pods?watch=1") as answer:
            assert answer.status == 200
            assert served.stop(number) == 0
            assert await answer.content.read() == b""  # the watch was ended, not cut


async def test_manifests_are_there_and_what_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(MANIFESTS)
    with serving_command(tmp_path, str(tmp_path)) as served:
        assert await names(served, "/api/v1/pods") == ["a"]
        assert await names(served, "/api/v1/nodes") == ["own"]
        assert "team" in await names(served, "/api/v1/namespaces")
    fresh = [*PUMICE, "serve"]  # all others are forked
    command = [*fresh, str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = [process.stderr.readline() for _ in range(2)]
        process.kill()
    assert "document 2 item 2" in said[0] and "spec.containers" in said[0]
    assert "example.com/v1 Unheard is not served" in said[1]


async def test_the_example_is_served_whole(tmp_path: Path) -> None:
    demo = Path(__file__).resolve().parents[3] / "examples" / "demo"
    with serving_command(tmp_path, str(demo)) as served:
        assert len(await names(served, "/api/v1/nodes")) > 3
        assert await names(served, "/apis/batch.volcano.sh/v1alpha1/jobs")


async def test_data_survives(tmp_path: Path) -> None:
    how = ("--data", str(tmp_path / "data"))
    with serving_command(tmp_path, *how, "--nodes", "2x1gpu") as served:
        async with aiohttp.ClientSession(served.url) as session:
            body = {"metadata": {"name": "kept"}, "data": {"a": "b"}}
            async with session.post("/api/v1/namespaces/default/configmaps", json=body) as answer:
                assert answer.status == 201
        served.process.kill()
    assert (tmp_path / "data" / "log.jsonl").stat().st_mode & 0o077 == 0
    with serving_command(tmp_path, *how) as served:
        assert await names(served, "/api/v1/nodes") == ["node-00000", "node-00001"]
        assert await names(served, "/api/v1/configmaps") == ["kept"]
        assert "another server uses this folder" in await asyncio.to_thread(refused, tmp_path, *how)
        assert served.stop() == 0


async def test_beyond_loopback_there_is_a_token_and_a_certificate(tmp_path: Path) -> None:
    with serving_command(tmp_path, "--listen", "0.0.0.0", "--data", str(tmp_path / "data")) as served:
        assert served.url.startswith("https://127.0.0.1:")
        found = config(served)
        assert found["clusters"][0]["cluster"]["certificate-authority-data"]
        assert len(found["users"][0]["user"]["token"]) > 30
        for name in ("token", "tls.key"):
            assert (tmp_path / "data" / name).stat().st_mode & 0o077 == 0


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"port {port} is in use: --port 0" in refused(tmp_path, "--port", port)


def test_a_kubeconfig_of_somebody_else_stays(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text("mine")
    assert "was not written by pumice serve" in refused(tmp_path, "--port", "0")
    assert (tmp_path / "kubeconfig").read_text() == "mine"


@pytest.mark.parametrize(
    ("args", "reports"),
    [
        pytest.param(("nowhere.yaml",), "nowhere.yaml: no such file or folder", id="no manifest"),
        pytest.param(("--nodes", "many"), "--nodes: found 'many'", id="nodes"),
        pytest.param(("--token-file", "short"), "at least 16 printable characters", id="a short token"),
        pytest.param(("--token-file", "open"), "all users of this machine can read it", id="a token open to all"),
        pytest.param(
            ("--tls-cert", "short", "--tls-key", "open"), "can read it; chmod 600 open", id="a key open to all"
        ),
        pytest.param(("--token-file", "none"), "none: No such file or directory", id="no token file"),
        pytest.param(("--tls-cert", "short"), "go together", id="half a certificate"),
        pytest.param(
            ("--tls-cert", "short", "--tls-key", "short"), "are not a certificate and its key", id="certificate"
        ),
        pytest.param(("--listen", "no.such.host.invalid", "--token-file", "good"), "cannot listen on", id="address"),
        pytest.param(("--speed", "0"), "0 is not in the range", id="speed"),
        pytest.param(("--kubeconfig", "no/k"), "--kubeconfig: the folder no does not exist", id="no folder"),
    ],
)
def test_what_is_refused(tmp_path: Path, args: tuple[str, ...], reports: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_private(tmp_path / "short", "short")
    write_private(tmp_path / "good", "x" * 20)
    (tmp_path / "open").write_text("x" * 20)
    assert reports in refused(tmp_path, "--port", "0", *args)


@pytest.mark.parametrize(
    ("address", "loopback"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False)]
    + [("::", False), ("10.0.0.1", False), ("localhost.example.com", False)],
)
def test_loopback(address: str, loopback: bool) -> None:
    assert is_loopback(address) is loopback
