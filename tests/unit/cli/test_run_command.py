"""The command line of ``pumice run``: Volcano's flags, and one line for what is wrong. Nothing is scheduled here."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pumice.cli import run_flags
from tests.unit.cli.kit import GOOD, Result, run


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    """The command sets up logging for the whole process: as it was, afterwards."""
    root, ours = logging.getLogger(), logging.getLogger("pumice")
    handlers, levels = list(root.handlers), (root.level, ours.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])


@pytest.fixture
def nowhere(tmp_path: Path) -> str:
    """A flag with a kubeconfig that leads to a port where no server listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "it", "user": {"token": "t"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    return f"--kubeconfig={path}"


def reached(result: Result) -> bool:
    """Whether every flag was taken: the only complaint is about the server."""
    (error,) = result.lines("error")
    return result.code == 2 and "does not answer" in error


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(("-v", "4"), id="-v 4"),
        pytest.param(("-v=4",), id="-v=4"),
        pytest.param(("--v=4",), id="--v=4"),
        pytest.param(("--leader-elect=false", "--priority-class"), id="booleans as Go writes them"),
        pytest.param(("--schedule-period=500ms", "--leader-elect-retry-period=1s"), id="durations"),
        pytest.param(("--scheduler-name=a", "--scheduler-name=b"), id="two names"),
        pytest.param(("--enable-healthz=true", "--healthz-address=:0", "--listen-address=[::1]:0"), id="addresses"),
        pytest.param(("--lock-object-namespace=x", "--kube-api-qps=5", "--kube-api-burst=7"), id="old names"),
        pytest.param(("--node-selector=pool:batch,pool:gpu", "--node-selector=a.b/c:"), id="node labels"),
        pytest.param(("--feature-gates=PriorityClass=false,SchedulingGatesQueueAdmission=true",), id="gates"),
        pytest.param(
            ("--scheduler-sharding-mode=none", "--leader-elect-resource-lock=leases"), id="values that ask for nothing"
        ),
        pytest.param(("--scheduler-sharding-mode=hard", "--scheduler-sharding-name=a"), id="nodes of its shard"),
        pytest.param(("--scheduler-sharding-mode=SOFT",), id="nodes of its shard first"),
        pytest.param(("--leader-elect=true", "-v=3", "2>&1"), id="as Volcano's chart ends its arguments"),
    ],
)
def test_flags_of_volcanos_scheduler(nowhere: str, flags: tuple[str, ...]) -> None:
    assert reached(run("run", nowhere, *flags))


def test_flags_without_meaning_are_taken_with_a_note(nowhere: str) -> None:
    result = run("run", nowhere, *(f"--{name}=1" for name in run_flags.MEANINGLESS))
    assert reached(result)
    notes = result.lines("note")
    assert [note.split()[0] for note in notes] == [f"--{name}" for name in run_flags.MEANINGLESS]


def test_an_environment_without_meaning_is_taken_with_a_note(nowhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in run_flags.MEANINGLESS_ENVIRONMENT:
        monkeypatch.setenv(name, "1")
    result = run("run", nowhere)
    assert reached(result)
    assert [note.split()[0] for note in result.lines("note")] == list(run_flags.MEANINGLESS_ENVIRONMENT)


@pytest.mark.parametrize(
    ("flag", "why"),
    [
        pytest.param("--leader-elect-resource-lock=endpoints", "only Leases are supported", id="another lock"),
        pytest.param("--feature-gates=SchedulingGatesQueueAdmission=false", "not supported", id="a gate that is on"),
        pytest.param(
            "--feature-gates=DynamicResourceAllocation=true", "unknown feature gate", id="a gate of Kubernetes"
        ),
    ],
)
def test_unsupported_flag_that_changes_decisions_is_refused(nowhere: str, flag: str, why: str) -> None:
    result = run("run", nowhere, flag)
    assert result.code == 2
    (error,) = result.lines("error")
    assert why in error


def test_record_of_a_shard_is_refused(nowhere: str, tmp_path: Path) -> None:
    result = run("run", nowhere, "--scheduler-sharding-mode=hard", f"--record={tmp_path / 'record'}")
    assert result.code == 2
    assert "not supported yet with --scheduler-sharding-mode" in result.lines("error")[0]


def test_one_of_several_schedulers_is_refused(nowhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would schedule all pods, on all nodes."""
    monkeypatch.setenv("MULTI_SCHEDULER_ENABLE", "true")
    assert reached(run("run", nowhere)), "it is the only one"
    monkeypatch.setenv("SCHEDULER_NUM", "3")
    assert "MULTI_SCHEDULER_ENABLE" in run("run", nowhere).lines("error")[0]


LOOPBACK, EVERYWHERE = (
    [("127.0.0.1", 8080, False), ("127.0.0.1", 11251, False)],
    [("", 8080, False), ("", 11251, False)],
)


@pytest.mark.parametrize(
    ("flags", "places"),
    [
        pytest.param((), LOOPBACK, id="untold, on loopback"),
        pytest.param(("--enable-metrics=true", "--enable-healthz=true"), EVERYWHERE, id="Volcano's flags"),
        pytest.param(("--enable-healthz",), [LOOPBACK[0], EVERYWHERE[1]], id="one of them"),
        pytest.param(
            ("--enable-metrics", "--listen-address=127.0.0.1:9"), [("127.0.0.1", 9, False), LOOPBACK[1]], id="address"
        ),
        pytest.param(("--enable-metrics=false", "--enable-healthz=false"), [], id="none"),
        pytest.param(
            ("--listen-address=:9", "--healthz-address=:9"), [("", 9, False)], id="every page is at every address"
        ),
    ],
)
def test_where_pages_are_served(
    nowhere: str, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], places: list[tuple[str, int, bool]]
) -> None:
    assert [tuple(place) for place in _wanted(nowhere, monkeypatch, *flags).places] == places


def _wanted(nowhere: str, monkeypatch: pytest.MonkeyPatch, *flags: str) -> Any:
    """What the command line came to; nothing is run."""
    found: list[Any] = []

    async def take(wanted: Any, *others: Any) -> None:
        found.append(wanted)

    monkeypatch.setattr("pumice.cli.commands.run._run", take)
    assert run("run", nowhere, *flags).code == 0
    return found[0]


@pytest.mark.parametrize(
    ("flags", "over_tls"),
    [
        pytest.param((), [False, True], id="health, as in Volcano"),
        pytest.param(("--metrics-tls",), [True, True], id="both"),
        pytest.param(("--listen-address=:9", "--healthz-address=:9"), [True], id="at one address"),
    ],
)
def test_what_is_served_over_tls(
    nowhere: str, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], over_tls: list[bool]
) -> None:
    files = ("--tls-cert-file=x.crt", "--tls-private-key-file=x.key")
    assert [tls for _, _, tls in _wanted(nowhere, monkeypatch, *files, *flags).places] == over_tls


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        pytest.param(("--kubeconfig=/nowhere",), "no such file", id="no kubeconfig"),
        pytest.param(("--master=127.0.0.1",), "wanted http:// or https://", id="no address"),
        pytest.param(("--leader-elect=maybe",), "wanted true or false", id="no boolean"),
        pytest.param(("-v", "loud"), "wanted a number", id="no level"),
        pytest.param(("--listen-address=8080",), "wanted address:port", id="no port"),
        pytest.param(("--listen-address=:99999",), "wanted address:port", id="port too high"),
        pytest.param(("--schedule-period=0",), "wanted a time above 0", id="no period"),
        pytest.param(("--leader-elect-retry-period=1h",), "retry-period < --leader-elect", id="lease times"),
        pytest.param(("--scheduler-conf=/nowhere",), "cannot be read", id="no conf"),
        pytest.param(("--scheduler-cnof=x",), "--scheduler-cnof", id="misspelt"),
        pytest.param(("2>file",), "unexpected extra argument", id="another redirection"),
        pytest.param(("--node-selector=pool=batch",), "wanted label:value", id="no label"),
        pytest.param(("--feature-gates=PriorityClass",), "wanted Name=true", id="no value for a gate"),
        pytest.param(("--disable-default-scheduler-config",), "found no --scheduler-conf", id="no conf is wanted"),
        pytest.param(("--tls-cert-file=x.crt",), "--tls-private-key-file", id="a certificate without key"),
        pytest.param(("--metrics-tls",), "wanted --tls-cert-file", id="TLS without certificate"),
        pytest.param(("--default-priorities-configmap-name=x",), "wanted both or none of", id="half of a ConfigMap"),
    ],
)
def test_wrong_input_is_one_line(nowhere: str, flags: tuple[str, ...], said: str) -> None:
    """Alone, too: no policy is shown before it."""
    result = run("run", nowhere, *flags)
    assert result.code == 2
    (error,) = result.lines("error")
    assert said in error
    assert result.err.splitlines() == [f"error: {error}"]


def test_it_says_which_server_does_not_answer(nowhere: str) -> None:
    result = run("run", nowhere, "--master=http://127.0.0.1:1")
    assert "the API server http://127.0.0.1:1 " in result.lines("error")[0]


# -- plugins of one's own

PLUGIN = """
from __future__ import annotations
from pumice.columns.views import Node, TaskClass
from pumice.framework.plugin import points
from pumice.framework.plugin.plugin import plugin
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.filter_result import Unfit

@plugin("nobody")
@points.predicate
def nobody(ssn: Session, cls: TaskClass, node: Node, *, why: str = "closed") -> Unfit | None:
    return Unfit(f"node(s) are {why}")
"""
CONF = """
actions: "enqueue, allocate"
tiers: [{plugins: [{name: gang}, {name: predicates}, {name: nobody, arguments: {why: taken}}]}]
"""


@pytest.fixture
def own(tmp_path: Path) -> tuple[str, Path]:
    """The flag with a folder of plugins, and a policy file that names one."""
    folder, conf = tmp_path / "plugins", tmp_path / "scheduler.conf"
    folder.mkdir()
    (folder / "nobody.py").write_text(PLUGIN)
    conf.write_text(CONF)
    return f"--plugins-dir={folder}", conf


def test_plugins_of_a_folder_may_be_named(nowhere: str, own: tuple[str, Path]) -> None:
    flag, conf = own
    assert reached(run("run", nowhere, flag, f"--scheduler-conf={conf}"))
    assert "nobody" in run("run", nowhere, f"--scheduler-conf={conf}").lines("error")[0]


def test_plugins_of_a_folder_decide(own: tuple[str, Path], tmp_path: Path) -> None:
    flag, conf = own
    manifests = tmp_path / "all.yaml"
    manifests.write_text(GOOD)
    assert run("check-conf", conf, flag).code == 0
    result = run("schedule", manifests, f"--conf={conf}", flag, "--json").json
    assert result["unscheduled"] == {"ns/good-0": "0/1 nodes are unavailable: 1 node(s) are taken."}
    assert run("simulate", manifests, f"--conf={conf}", flag, "--json").json["binds"] == 0
    conf.write_text(CONF.replace(", {name: nobody, arguments: {why: taken}}", ""))
    assert run("simulate", manifests, f"--conf={conf}", flag, "--json").json["binds"] == 1


@pytest.mark.parametrize(
    "command",
    [("run",), ("schedule", "x.yaml"), ("simulate", "x.yaml"), ("check-conf", "x.conf")],
    ids=lambda command: command[0],
)
def test_plugins_that_cannot_be_loaded_are_one_line_each(
    own: tuple[str, Path], nowhere: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    flag, _ = own
    monkeypatch.chdir(tmp_path)
    Path("x.conf").write_text(CONF)
    Path("x.yaml").write_text(GOOD)
    (tmp_path / "plugins" / "worse.py").write_text("1 / 0")
    result = run(*command, flag, *((nowhere,) if command == ("run",) else ()))
    assert result.code == 2
    assert result.lines("error") == [f"{tmp_path}/plugins/worse.py: line 1: ZeroDivisionError: division by zero"]
