"""What the next cycle would do, of a cycle that was run."""

from __future__ import annotations

import json
from pathlib import Path

from pumice.answers.codes import Code
from tests.unit.answers.test_whatif_trees import QUEUE
from tests.unit.cli.kit import GOOD, run
from tests.unit.cli.test_native_groups import node
from tests.unit.volcano.gangs.test_tree_placement import group, pods

MORE = """
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: large, namespace: ns}
spec: {minMember: 1, queue: team-a}
---
apiVersion: v1
kind: Pod
metadata: {name: large-0, namespace: ns, annotations: {scheduling.k8s.io/group-name: large}}
spec: {schedulerName: volcano, containers: [{name: main, resources: {requests: {cpu: "9"}}}]}
status: {phase: Pending}
"""


def test_bound_admitted_and_waiting_jobs_are_named(tmp_path: Path) -> None:
    path = tmp_path / "now.yaml"
    path.write_text(GOOD + MORE)
    found = run("next", path, "--json")
    assert found.code == 0 and found.json["schema"] == "pumice.next/1"
    assert found.json["bound"] == {"ns/good": {"n1": 1}} and found.json["admitted"] == ["ns/good", "ns/large"]
    assert [(each["job"], each["code"]) for each in found.json["waiting"]] == [("ns/large", Code.ROOM.value)]
    text = run("next", path).out
    assert "1 pod bound, 2 jobs admitted, 1 job waiting" in text and "bound     ns/good  1 pod on n1 (1)" in text


def test_a_native_gang_is_bound_and_not_named_as_admitted(tmp_path: Path) -> None:
    """Kubernetes' own PodGroups have no phase, so no cycle admits them."""
    objects = [QUEUE, node("n", 2), group("a", 1, ""), *pods("volcano", "a", 1)]
    path = tmp_path / "now.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    found = run("next", path, "--json").json
    assert found["bound"] == {"ml/a": {"n": 1}} and found["admitted"] == []
    assert "1 pod bound" in (text := run("next", path).out) and "admitted" not in text


def test_a_server_is_asked_about_no_files(tmp_path: Path) -> None:
    said = run("next", tmp_path, "--server", "http://127.0.0.1:1")
    assert said.code == 2 and "wanted no files" in said.err
