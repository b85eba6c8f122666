"""Ways in to a real server: every kind of credentials, their renewal, and one clear line for each way that fails."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.kube.api import credentials
from pumice.kube.api.client import Client
from pumice.kube.api.credentials import find_access, in_cluster_access
from pumice.kube.api.errors import AccessError
from pumice.kube.api.kinds import NODES
from tests.kube.server import ApiServer, free_port


def kubeconfig(folder: Path, api: ApiServer, user: dict[str, Any], **changes: str) -> str:
    """A kubeconfig in ``folder``; ``changes`` are made to its cluster."""
    path = folder / "kubeconfig"
    cluster = {"server": api.url, "certificate-authority": str(api.ca_file), **changes}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": cluster}],
        "users": [{"name": "it", "user": user}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


def plugin(folder: Path, token: str) -> dict[str, Any]:
    """An exec plugin that answers what its file says, and counts how often it was asked."""
    answer, script, runs = folder / "answer.json", folder / "plugin.py", folder / "runs"
    say(folder, token)
    script.write_text(
        f"import pathlib; pathlib.Path({str(runs)!r}).open('a').write('x')\n"
        f"print(pathlib.Path({str(answer)!r}).read_text())\n"
    )
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(script)],
            "interactiveMode": "Never",
        }
    }


def say(folder: Path, token: str) -> None:
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": token},
    }
    (folder / "answer.json").write_text(json.dumps(credential))


async def nodes_of(path: str) -> Any:
    async with Client(await find_access(path)) as client:
        assert (await client.version()).startswith("v1.")
        return await client.get(NODES.list_path)


@pytest.mark.parametrize("way", ["token", "token file", "certificate", "certificate data", "exec"])
async def test_ways_in(server: ApiServer, tmp_path: Path, way: str) -> None:
    (tmp_path / "token").write_text(f"{server.token()}\n")
    files = {name: server.folder / f"client.{name}" for name in ("crt", "key")}
    data = {name: base64.b64encode(path.read_bytes()).decode() for name, path in files.items()}
    user: dict[str, dict[str, Any]] = {
        "token": {"token": server.token()},
        "token file": {"tokenFile": str(tmp_path / "token")},
        "certificate": {"client-certificate": str(files["crt"]), "client-key": str(files["key"])},
        "certificate data": {"client-certificate-data": data["crt"], "client-key-data": data["key"]},
        "exec": plugin(tmp_path, server.token()),
    }
    assert "items" in await nodes_of(kubeconfig(tmp_path, server, user[way]))


async def test_the_name_in_the_certificate_is_checked(server: ApiServer, tmp_path: Path) -> None:
    user = {"token": server.token()}
    assert "items" in await nodes_of(kubeconfig(tmp_path, server, user, **{"tls-server-name": "localhost"}))
    with pytest.raises(AccessError, match=r"does not answer: .*certificate verify failed"):
        await nodes_of(kubeconfig(tmp_path, server, user, **{"tls-server-name": "nobody.test"}))


async def test_an_exec_plugin_is_asked_again_after_a_401(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "_AGAIN_S", -1.0)
    path = kubeconfig(tmp_path, server, plugin(tmp_path, "ended"))
    async with Client(await find_access(path)) as client:
        say(tmp_path, server.token())
        assert "items" in await client.get(NODES.list_path)
        assert "items" in await client.get(NODES.list_path)
    assert (tmp_path / "runs").read_text() == "xx"


async def test_a_service_account_token_that_is_rotated(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, port = server.url.removeprefix("https://").split(":")
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    (tmp_path / "ca.crt").write_bytes(server.ca_file.read_bytes())
    (tmp_path / "token").write_text("ended")
    access = await in_cluster_access(environ, tmp_path)
    (tmp_path / "token").write_text(server.token())
    assert await access.headers(False) == {"Authorization": "bearer ended"}
    monkeypatch.setattr(credentials, "_REFRESH_S", -1.0)
    assert await access.headers(False) == {"Authorization": f"bearer {server.token()}"}
    async with Client(access) as client:
        assert "items" in await client.get(NODES.list_path)


async def test_a_wrong_token_is_reported_in_one_line(server: ApiServer, tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, server, {"token": "ended"})
    with pytest.raises(AccessError) as caught:
        await nodes_of(path)
    assert str(caught.value) == (
        f"the API server {server.url} (from kubeconfig {path}) does not accept these credentials,"
        " perhaps they have expired: Unauthorized"
    )


async def test_an_expired_certificate_is_reported_in_one_line(server: ApiServer, tmp_path: Path) -> None:
    certificate, key = server.expired_certificate(tmp_path)
    user = {"client-certificate": str(certificate), "client-key": str(key)}
    with pytest.raises(AccessError, match=r"does not accept these credentials, perhaps they have expired: Unauth"):
        await nodes_of(kubeconfig(tmp_path, server, user))


async def test_a_server_that_is_not_there_is_reported_in_one_line(server: ApiServer, tmp_path: Path) -> None:
    url = f"https://127.0.0.1:{free_port()}"
    path = kubeconfig(tmp_path, server, {"token": "t"}, server=url)
    with pytest.raises(AccessError) as caught:
        await nodes_of(path)
    assert str(caught.value).startswith(
        f"the API server {url} (from kubeconfig {path}) does not answer: Cannot connect"
    )
    assert "\n" not in str(caught.value)
