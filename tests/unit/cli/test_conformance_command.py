"""``pumice conformance``: its answer and exit codes from a checkout, and what it says where there is none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CASE = """
name: one pod, one node
kind: action
conf: |
  actions: "allocate"
  tiers: [{plugins: [{name: gang, enableJobReady: true}]}]
objects:
- {apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: q}, spec: {weight: 1}}
- apiVersion: v1
  kind: Node
  metadata: {name: n}
  status: {allocatable: {cpu: "4", memory: 8Gi, pods: 110}}
- apiVersion: scheduling.volcano.sh/v1beta1
  kind: PodGroup
  metadata: {name: g, namespace: ns}
  spec: {minMember: 1, queue: q}
  status: {phase: Inqueue}
- apiVersion: v1
  kind: Pod
  metadata: {name: p, namespace: ns, annotations: {scheduling.k8s.io/group-name: g}}
  spec: {schedulerName: volcano, containers: [{name: main, resources: {requests: {cpu: "1"}}}]}
  status: {phase: Pending}
expect:
  binds: {ns/p: NODE}
"""


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "good.yaml").write_text(CASE.replace("NODE", "n"))
    (folder / "later.yaml").write_text(CASE.replace('"allocate"', '"allocate, juggle"'))
    return folder


def conformance(*arguments: object, cwd: Path, first_on_path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, with nothing of the checkout on its path but what is installed."""
    command = [sys.executable, "-c", "from pumice.cli.main import main; main(prog_name='pumice')", "conformance"]
    env = {**os.environ, "PYTHONPATH": str(first_on_path or "")}
    return subprocess.run(
        [*command, *map(str, arguments)], cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=120
    )


def test_from_any_folder_it_runs_the_runner_of_its_checkout(cases: Path) -> None:
    ran = conformance(cases, "--json", cwd=cases)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout) == {
        "passed": 1,
        "failed": 0,
        "not_yet": 1,
        "accepted": 0,
        "cases": [
            {"file": "cases/good.yaml", "name": "one pod, one node", "status": "passed", "reason": ""},
            {"file": "cases/later.yaml", "name": "one pod, one node", "status": "not_yet", "reason": "action juggle"},
        ],
    }


def test_a_case_that_fails_is_exit_code_1(cases: Path) -> None:
    (cases / "bad.yaml").write_text(CASE.replace("NODE", "another"))
    ran = conformance(cases, cwd=cases)
    assert (ran.returncode, ran.stderr) == (1, "")
    assert ran.stdout.splitlines()[:2] == [
        "folder   passed   failed  not_yet accepted",
        "cases         1        1        1        ·",
    ]
    assert "bind of ns/p: expected 'another', found 'n'" in ran.stdout


def test_a_library_with_a_folder_of_tests_does_no_harm(cases: Path, tmp_path: Path) -> None:
    stranger = tmp_path / "library" / "tests"
    stranger.mkdir(parents=True)
    (stranger / "__init__.py").write_text("")
    assert conformance(cases, cwd=cases, first_on_path=stranger.parent).returncode == 0


def test_the_wheel_says_that_the_runner_is_in_the_checkout(cases: Path, tmp_path: Path) -> None:
    site = tmp_path / "lib" / "site-packages"
    shutil.copytree(ROOT / "src" / "pumice", site / "pumice", ignore=shutil.ignore_patterns("__pycache__"))
    ran = conformance(cases, cwd=cases, first_on_path=site)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        "error: the runner of recorded cases is part of the source checkout, not of the wheel: "
        "run this from a checkout with the package installed from it (make setup)\n"
    )
