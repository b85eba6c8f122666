"""``--starts`` of explain and schedule: when waiting jobs are expected to start, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from msgspec.structs import replace

from pumice.cli.main import main
from pumice.model.workloads.estimate import ESTIMATE_ANNOTATION
from pumice.ours.start_scores import Record
from pumice.runtime.files import snapshot_file

#: A node of 4 cores: a runs for 3 h, since 1 h; b waits for it.
TWO = """
{apiVersion: v1, kind: Node, metadata: {name: n}, status: {allocatable: {cpu: "4", memory: 8Gi, pods: "9"}}}
---
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: default}, spec: {weight: 1}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: a, namespace: ns, annotations: {pumice.dev/estimate: 3h}}
spec: {minMember: 1}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: a-0, namespace: ns, annotations: {scheduling.k8s.io/group-name: a}}
spec: {schedulerName: volcano, nodeName: n, containers: [{name: m, resources: {requests: {cpu: "3"}}}]}
status: {phase: Running, startTime: "2026-01-01T00:00:00Z"}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: b, namespace: ns, creationTimestamp: "2026-01-01T01:00:00Z", annotations: {pumice.dev/estimate: 1h}}
spec: {minMember: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: b-0, namespace: ns, annotations: {scheduling.k8s.io/group-name: b}}
spec: {schedulerName: volcano, containers: [{name: m, resources: {requests: {cpu: "3"}}}]}
"""
GANG = str(Path(__file__).parents[4] / "examples/debug-gang")


def test_a_job_that_never_starts_says_why_nothing_can_be_said() -> None:
    result = CliRunner().invoke(
        main, ["explain", "ml/tf", GANG, "--no-ways", "--starts", "--within", "1h", "--samples", "2"]
    )
    assert result.exit_code == 0, result.output
    assert "start  not known: in 2 of 2 simulations it does not start" in result.stdout


def test_json_has_intervals_in_seconds() -> None:
    result = CliRunner().invoke(
        main, ["explain", "--all", GANG, "--starts", "--within", "1h", "--samples", "2", "--json"]
    )
    found = json.loads(result.stdout)["starts"]
    assert found["samples"] == 2 and found["until_s"] == 3600 and found["compared"] is None
    assert found["jobs"]["ml/tf"]["middle_s"] is None and found["jobs"]["ml/tf"]["interval_80_s"] == [None, None]


@pytest.mark.parametrize(
    ("words", "problem"),
    [(("--samples", "0"), "0 is not in the range 1<=x<=200"), (("--within", "soon"), "found 'soon', wanted a time")],
)
def test_wrong_bounds_are_named(words: tuple[str, ...], problem: str) -> None:
    result = CliRunner().invoke(main, ["explain", "ml/tf", GANG, "--starts", *words])
    assert result.exit_code == 2 and problem in result.stderr


def test_schedule_says_expected_starts_too(tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(TWO)
    words = ["schedule", str(file), "--starts", "--within", "4h", "--samples", "2"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert "ns/b  in about 2 h (80 %: 2 h to 2 h; 95 %: 2 h to 2 h)" in result.stdout
    assert "not yet compared with what happened" in result.stdout
    found = json.loads(CliRunner().invoke(main, [*words, "--json"]).stdout)["starts"]["jobs"]["ns/b"]
    assert found["middle_s"] == pytest.approx(7200, abs=5) and len(found["simulated_s"]) == 5


def test_a_snapshot_says_how_often_earlier_predictions_were_right(tmp_path: Path) -> None:
    file = tmp_path / "cycle.pumice"
    CliRunner().invoke(main, ["simulate", str(Path(GANG).parent / "demo"), "--save-cycle", "12", str(file)])
    cycle = snapshot_file.read_cycle(file)
    notes = Record(50, 41, 48).to_notes()
    snapshot_file.write_cycle(file, replace(cycle, snapshot=replace(cycle.snapshot, notes=notes)))
    words = ["explain", "--all", str(file), "--starts", "--within", "1h", "--samples", "1"]
    result = CliRunner().invoke(main, words)
    assert "of 50 earlier predictions 82 % within 80 % and 96 % within 95 %" in " ".join(result.stdout.split())
    compared = json.loads(CliRunner().invoke(main, [*words, "--json"]).stdout)["starts"]["compared"]
    assert compared == {"known": 50, "within_80": 41, "within_95": 48}


def exported(path: Path, *, estimate: str = "", ended: int = 0) -> str:
    """Write TWO as ``kubectl get … -o json`` prints it. ``estimate``: of the job that runs; ``ended``: jobs like it
    that have run for 90 minutes."""
    items = list(yaml.safe_load_all(TWO))
    for item in items:
        if item["metadata"]["name"] == "a":
            item["metadata"]["annotations"] = {ESTIMATE_ANNOTATION: estimate} if estimate else {}
    group, pod = items[2], items[3]
    for i in range(ended):
        like, its = json.loads(json.dumps((group, pod)))
        like["metadata"]["name"] = its["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = f"a-{i}"
        its["metadata"]["name"] = f"a-{i}-0"
        times = {"startedAt": "2025-12-31T01:00:00Z", "finishedAt": "2025-12-31T02:30:00Z"}
        state = {"terminated": {"exitCode": 0, **times}}
        its["status"] = {
            "phase": "Succeeded",
            "startTime": times["startedAt"],
            "containerStatuses": [{"name": "m", "state": state}],
        }
        items += [like, its]
    path.write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": json.loads(json.dumps(items, default=str))})
    )
    return str(path)


@pytest.mark.parametrize(
    ("given", "hours", "said"),
    [
        ({"estimate": "3h"}, 2.0, "by estimates and no ended jobs"),
        ({"ended": 9}, 0.5, "run times of 9 ended jobs"),
        ({}, None, "expected to end by age alone: 1 (ns/a)"),
    ],
)
def test_an_export_of_a_cluster_says_when_a_job_starts(
    tmp_path: Path, given: dict[str, Any], hours: float | None, said: str
) -> None:
    words = ["explain", "b", exported(tmp_path / "all.json", **given), "--no-ways", "--starts", "--within", "60d"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0 and said in " ".join(result.stdout.split()), result.output
    middle = json.loads(CliRunner().invoke(main, [*words, "--json"]).stdout)["start"]["jobs"]["ns/b"]["middle_s"]
    assert middle == pytest.approx(3600 * hours, abs=5) if hours is not None else middle > 0
