"""``pumice pages``: where it may listen, and what it refuses. The pages themselves: tests/unit/web and tests/web."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.cli.main import main

GANG = str(Path(__file__).parents[3] / "examples/debug-gang")


@pytest.mark.parametrize(
    ("listen", "says"),
    [
        pytest.param("0.0.0.0:0", "pages are for this machine only; wanted a loopback address", id="every address"),
        pytest.param(":8470", "pages are for this machine only; wanted a loopback address", id="no address"),
        pytest.param("127.0.0.1", "found '127.0.0.1', wanted address:port", id="no port"),
    ],
)
def test_other_addresses_are_refused(listen: str, says: str) -> None:
    result = CliRunner().invoke(main, ["pages", GANG, "--listen", listen])
    assert result.exit_code == 2 and says in result.stderr


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(main, ["pages", GANG, "--listen", f"127.0.0.1:{port}"])
    assert result.exit_code == 2 and f"port {port} is in use" in result.stderr


@pytest.mark.parametrize("command", ["run", "serve"])
def test_pages_of_a_scheduler_without_a_certificate_are_for_this_machine(command: str) -> None:
    given = ["--kubeconfig", "none"] if command == "run" else ["--schedule", "--port", "0"]
    result = CliRunner().invoke(main, [command, *given, "--pages", "0.0.0.0:80"])
    assert result.exit_code == 2 and "wanted a loopback address, or pumice run with --tls-cert-file" in result.stderr


def test_pages_of_a_server_need_its_scheduler() -> None:
    result = CliRunner().invoke(main, ["serve", "--pages", "127.0.0.1:0"])
    assert result.exit_code == 2 and "--pages need --schedule" in result.stderr


@pytest.mark.parametrize(("namespaces", "names"), [("ml", ["ml/tf"]), ("x,y", []), ("", [])])
def test_jobs_are_printed_of_the_namespaces_that_are_seen(namespaces: str, names: list[str]) -> None:
    result = CliRunner().invoke(main, ["pages", GANG, "--print", "jobs", "--for-namespaces", namespaces])
    assert [row["name"] for row in json.loads(result.stdout)["data"]["rows"]] == names
    result = CliRunner().invoke(main, ["pages", GANG, "--print", "nodes", "--for-namespaces", namespaces])
    assert result.exit_code == 2 and "wanted --print jobs" in result.stderr
