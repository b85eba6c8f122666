"""What is wrong with a way in is said in one line; no server is asked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.kube.api.credentials import find_access, in_cluster_access
from pumice.kube.api.errors import AccessError

URL = "https://127.0.0.1:1"


def config(user: dict[str, Any], cluster: dict[str, Any] | None = None) -> str:
    return yaml.safe_dump(
        {
            "current-context": "it",
            "clusters": [{"name": "it", "cluster": cluster if cluster is not None else {"server": URL}}],
            "users": [{"name": "it", "user": user}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        }
    )


def plugin(code: str) -> dict[str, Any]:
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": sys.executable, "args": ["-c", code]}}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("", "'NoneType' object", id="empty"),
        pytest.param("a: [", "while parsing", id="no YAML"),
        pytest.param("[]", "list", id="a list"),
        pytest.param("{}", "current-context", id="no context"),
        pytest.param(config({}, {}), "it names no server", id="no server"),
        pytest.param(
            config({}, {"server": URL, "certificate-authority": "/nowhere/ca"}), "/nowhere/ca", id="no CA file"
        ),
        pytest.param(
            config({}, {"server": URL, "certificate-authority-data": "eA=="}), "certificate authority", id="a bad CA"
        ),
        pytest.param(
            config({"client-certificate-data": "eA==", "client-key-data": "eA=="}), "client certificate", id="a bad key"
        ),
        pytest.param(config({"tokenFile": "/nowhere/token"}), "/nowhere/token", id="no token file"),
        pytest.param(config({"token": "a\nb: c"}), "control characters", id="a token that makes headers"),
        pytest.param(
            config({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin"}}),
            "'no-such-plugin'",
            id="no plugin",
        ),
        pytest.param(config(plugin("import sys; sys.exit('log in first')")), "log in first", id="plugin fails"),
        pytest.param(config(plugin("print('{}')")), "exec: malformed response", id="plugin says nothing"),
    ],
)
async def test_bad_kubeconfigs(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(AccessError) as caught:
        await find_access(str(path))
    said = str(caught.value)
    assert said.startswith(f"kubeconfig {path}: ")
    assert why in said
    assert said.isprintable()


async def test_a_kubeconfig_that_is_named_must_be_there(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    for access in (find_access(str(missing)), find_access(environ={"KUBECONFIG": str(missing)})):
        with pytest.raises(AccessError, match=r"^kubeconfig .*/missing: no such file$"):
            await access


async def test_nothing_to_go_by(tmp_path: Path) -> None:
    with pytest.raises(
        AccessError, match=r"^no kubeconfig: none was given, .*config does not exist, and this is not running"
    ):
        await find_access(environ={"HOME": str(tmp_path)})


async def test_where_a_way_in_is_looked_for(tmp_path: Path) -> None:
    home = tmp_path / ".kube" / "config"
    home.parent.mkdir()
    home.write_text(config({"token": "home"}))
    named = tmp_path / "named"
    named.write_text(config({"token": "named"}))
    at_home = await find_access(environ={"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "127.0.0.1"})
    by_variable = await find_access(environ={"HOME": str(tmp_path), "KUBECONFIG": str(named)})
    assert await at_home.headers(False) == {"Authorization": "Bearer home"}
    assert await by_variable.headers(False) == {"Authorization": "Bearer named"}
    assert by_variable.whence == f"kubeconfig {named}"
    assert by_variable.url == URL


async def test_a_pod_without_service_account(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
    with pytest.raises(AccessError, match=r"^the service account of this pod: Service token file does not exist"):
        await in_cluster_access(environ, tmp_path)
