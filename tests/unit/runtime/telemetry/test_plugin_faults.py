"""Plugins that fail, as an operator sees it: the log, the count, and what ``pumice schedule`` says."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.framework.cycle.trace import Fault
from pumice.runtime.telemetry.plugin_faults import Culprit, FaultLog, by_culprit


def fault(subject: str, problem: str = "KeyError: 'rack'", line: int = 12) -> Fault:
    return Fault(subject, "rack-pack", "predicate", "RackPack.fits", f"plugins/rack_pack.py:{line}", problem)


CULPRIT = Culprit("rack-pack", "predicate", "RackPack.fits", "plugins/rack_pack.py:12")
TEXT = "plugin rack-pack, RackPack.fits at predicate (plugins/rack_pack.py:12): KeyError: 'rack'"


@pytest.mark.parametrize(
    ("subjects", "whom"),
    [
        pytest.param(["ns/a"], "ns/a", id="one job"),
        pytest.param(["ns/a", "ns/b", "ns/a"], "ns/a, ns/b", id="one of two jobs twice"),
        pytest.param([f"ns/{i}" for i in range(9)], "ns/0, ns/1, ns/2 and 6 more", id="many jobs"),
    ],
)
def test_one_sentence_names_the_plugin_and_the_skipped_jobs(subjects: list[str], whom: str) -> None:
    assert dict(by_culprit(map(fault, subjects))) == {CULPRIT: f"{TEXT}; skipped: {whom}"}


def test_a_culprit_is_logged_when_it_begins_to_fail_and_counted_each_time(caplog: pytest.LogCaptureFixture) -> None:
    log = FaultLog()
    with caplog.at_level(logging.ERROR, "pumice.plugins"):
        for faults in ([fault("a"), fault("b")], [fault("a")], [fault("a"), fault("a", line=40)], [], [fault("c")]):
            log.take(faults)
    assert log.counts == {CULPRIT: 5, CULPRIT._replace(where="plugins/rack_pack.py:40"): 1}
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [
        f"{TEXT}; skipped: a, b",
        f"{TEXT.replace('12', '40')}; skipped: a",
        f"{TEXT}; skipped: c",
    ]
    assert caplog.records[0].__dict__["fields"]["where"] == CULPRIT.where


PLUGIN = """
from pumice.api import Session, Task, Node, Unfit, plugin, points

@plugin("rack-pack")
@points.predicate
def fits(ssn: Session, task: Task, node: Node) -> Unfit | None:
    raise KeyError(node.name)
"""
CONF = 'actions: "enqueue, allocate"\ntiers: [{plugins: [{name: gang}, {name: rack-pack}]}]\n'
MANIFESTS = """
apiVersion: v1
kind: Node
metadata: {name: n}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: default}
spec: {weight: 1}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: g, namespace: ml}
spec: {minMember: 1, queue: default}
---
apiVersion: v1
kind: Pod
metadata: {name: g-0, namespace: ml, annotations: {scheduling.k8s.io/group-name: g}}
spec:
  schedulerName: volcano
  containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "rack_pack.py").write_text(PLUGIN)
    (tmp_path / "policy.conf").write_text(CONF)
    (tmp_path / "all.yaml").write_text(MANIFESTS)
    return tmp_path


def schedule(folder: Path, *more: str) -> str:
    arguments = ["schedule", folder / "all.yaml", "--conf", folder / "policy.conf", "--plugins-dir", folder / "plugins"]
    result = CliRunner().invoke(main, [*map(str, arguments), *more])
    assert result.exit_code == 1, result.output  # any job may have been skipped for a fault
    return result.output


def test_schedule_says_it_in_one_sentence(folder: Path) -> None:
    words = " ".join(schedule(folder).split())
    where = folder / "plugins" / "rack_pack.py"
    assert words.count("a plugin failed: plugin rack-pack") == 1
    assert f"fits at predicate ({where}:7): KeyError: 'n'; skipped: ml/g" in words


def test_schedule_has_each_fault_as_json(folder: Path) -> None:
    (found,) = json.loads(schedule(folder, "--json"))["plugin_faults"]
    assert (found["subject"], found["plugin"], found["point"], found["hook"]) == (
        "ml/g",
        "rack-pack",
        "predicate",
        "fits",
    )
    assert found["where"] == f"{folder / 'plugins' / 'rack_pack.py'}:7" and found["problem"] == "KeyError: 'n'"
