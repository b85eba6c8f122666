"""``pumice whatif``: what changes, exit codes, and wrong changes in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pumice.cli.main import main

ROOT = Path(__file__).parents[3]
GANG = str(ROOT / "examples/debug-gang")


def ask(*changes: str) -> Result:
    return CliRunner().invoke(main, ["whatif", GANG, *changes])


def found(*changes: str) -> dict[str, object]:
    result: dict[str, object] = json.loads(ask(*changes, "--json").stdout)
    return result


def test_nodes_that_are_added_place_the_gang_and_the_exit_code_says_so() -> None:
    result = ask("--add-nodes", "2x1cpu")
    assert result.exit_code == 1
    assert "placed  ml/tf  8 pods" in result.stdout and "default: 0 → 8 cores" in result.stdout


def test_a_change_that_changes_no_decision_exits_with_0() -> None:
    result = ask("--drain", "n0")
    assert result.exit_code == 0
    assert "nothing changes" in result.stdout and "waits  ml/tf  Shortage: 5 of 8 pods fit" in result.stdout


def test_several_changes_are_made_together() -> None:
    assert found("--set", "job/ml/tf.minMember=7", "--add-nodes", "1xn0")["placed"] == {"ml/tf": 7}
    assert found("--set", "job/ml/tf.minMember=7")["placed"] == {}


def test_a_limit_of_a_queue_is_set(tmp_path: Path) -> None:
    path = tmp_path / "now.conf"
    names = "".join(f"  - name: {name}\n" for name in ("gang", "predicates", "proportion"))
    path.write_text(f'actions: "enqueue, allocate"\ntiers:\n- plugins:\n{names}')
    changes = ("--from-conf", str(path), "--add-nodes", "2xn0", "--set", "queue/default.capability.cpu=4")
    waiting = found(*changes)["waiting"]
    assert isinstance(waiting, list)
    assert [each["code"] for each in waiting] == ["QueueLimit"]


def test_a_job_whose_pods_are_created_once_it_is_admitted_is_named(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(
        """
{apiVersion: v1, kind: Node, metadata: {name: n0}, status: {allocatable: {cpu: "8", memory: 32Gi, pods: "110"}}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: team}
spec: {weight: 1, capability: {cpu: "2"}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: later, namespace: ml}
spec: {minMember: 4, queue: team, minResources: {cpu: "4"}}
status: {phase: Pending}
"""
    )
    words = ["whatif", str(tmp_path), "--set", "queue/team.capability.cpu=4"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 1
    assert "1 job admitted, 0 jobs still wait\nadmitted  ml/later" in result.stdout
    said = json.loads(CliRunner().invoke(main, [*words, "--json"]).stdout)
    assert (said["admitted"], said["not_admitted"], said["changes_something"]) == (["ml/later"], [], True)


def test_an_object_that_is_there_is_changed_by_apply(tmp_path: Path) -> None:
    node = {"name": "n0", "labels": {"kubernetes.io/hostname": "n0"}}
    room = {"cpu": "3", "memory": "16Gi", "pods": "110"}
    path = tmp_path / "node.json"
    status = {"allocatable": room, "capacity": room}
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": node, "status": status}))
    assert found("--apply", str(path))["placed"] == {"ml/tf": 8}


DEMO = str(ROOT / "examples/demo")
PODGROUP = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: NAME, namespace: demo}
spec: {minMember: 12, queue: QUEUE}
"""


def applied(tmp_path: Path, text: str, *more: str) -> Result:
    (tmp_path / "new.yaml").write_text(text)
    return CliRunner().invoke(main, ["whatif", DEMO, "--apply", str(tmp_path / "new.yaml"), *more])


def test_an_applied_object_may_name_objects_of_the_cluster(tmp_path: Path) -> None:
    group = PODGROUP.replace("NAME", "giant").replace("QUEUE", "batch")
    result = applied(tmp_path, group)
    assert result.exit_code == 0 and "has 0 pods" not in result.stderr
    wrong = applied(tmp_path, group.replace("batch", "bach"))
    assert wrong.exit_code == 2 and "Queue bach does not exist; did you mean batch?" in wrong.stderr


def test_an_applied_job_of_the_default_queue_leaves_that_queue_as_it_is(tmp_path: Path) -> None:
    limited = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: default}
spec: {weight: 1, capability: {cpu: "2"}}
---
apiVersion: v1
kind: Node
metadata: {name: n0}
status: {allocatable: {cpu: "8", memory: 32Gi, pods: "110"}}
"""
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster" / "all.yaml").write_text(limited)
    path = tmp_path / "job.yaml"
    path.write_text(PODGROUP.replace("NAME", "a").replace("QUEUE", "default").replace("12", "1"))
    pod = {"name": "a-0", "namespace": "demo", "annotations": {"scheduling.k8s.io/group-name": "a"}}
    asks = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "4"}}}]}
    spec = {**asks, "schedulerName": "volcano"}
    (tmp_path / "pod.json").write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": pod, "spec": spec}))
    conf = tmp_path / "now.conf"
    conf.write_text(
        'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: capacity}]\n'
    )
    words = ["whatif", str(tmp_path / "cluster"), "--from-conf", str(conf), "--json"]
    said = json.loads(
        CliRunner().invoke(main, [*words, "--apply", str(path), "--apply", str(tmp_path / "pod.json")]).stdout
    )
    assert [(each["job"], each["code"]) for each in said["waiting"]] == [("demo/a", "QueueLimit")]


def test_another_policy_is_a_change(tmp_path: Path) -> None:
    path = tmp_path / "other.conf"
    path.write_text('actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: predicates\n')
    assert found("--conf", str(path))["placed"] == {"ml/tf": 6}


def test_a_job_that_is_removed_is_gone() -> None:
    assert found("--remove", "job/ml/tf")["waiting"] == []


def test_the_digest_is_compared() -> None:
    digest = found("--add-nodes", "2x1cpu")["digest"]
    assert isinstance(digest, dict)
    assert ask("--add-nodes", "2x1cpu", "--expect", digest["after"]).exit_code == 0
    assert ask("--add-nodes", "2x1cpu", "--expect", digest["before"]).exit_code == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("--set queue/defalt.weight=3", "there is no queue 'defalt'; did you mean default?"),
        ("--set job/ml/tf.minMember=-3", "minMember=-3: wanted a whole number from 1"),
        ("--set job/ml/tff.minMember=3", "did you mean ml/tf?"),
        ("--set queue/default.capability.cpu=-1", "wanted an amount of a resource, 0 or more"),
        ("--set queue/default.capability.cpu=1x", "'1x' is not a quantity"),
        ("--set queue/default.size=1", "wanted a field of queue: capability"),
        ("--set queue/default", "wanted queue/NAME.FIELD=VALUE"),
        ("--set queue/default.capabilty.cpu=4", "did you mean capability?"),
        ("--add-nodes 2xn9", "--add-nodes 2xn9: no node is named 'n9'"),
        ("--add-nodes two", "wanted COUNTxNAME or COUNTxSIZE"),
        ("--add-nodes 0xn0", "wanted COUNTxNAME or COUNTxSIZE"),
        ("--drain gpu-7", "--drain gpu-7: there is no node 'gpu-7'; there are n0, n1, n2, n3 and 2 more"),
        ("--drain rack=r9", "no node has the label rack=r9"),
        ("--remove thing/x", "wanted job/NAME, node/NAME"),
        ("--set node/n0.unschedulable=maybe", "wanted true or false"),
    ],
)
def test_a_change_that_cannot_be_is_wrong_input(change: str, words: str) -> None:
    result = ask(*change.split())
    assert result.exit_code == 2
    assert words in result.stderr and result.stderr.count("error:") == 1


def test_no_change_is_wrong_input() -> None:
    assert ask().exit_code == 2


AHEAD = """
apiVersion: v1
kind: Node
metadata: {name: n0, labels: {kubernetes.io/hostname: n0}}
status: {allocatable: {cpu: "2", memory: 8Gi, pods: 110}, capacity: {cpu: "2", memory: 8Gi, pods: 110}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: default}
spec: {weight: 1}
"""
GROUP = """
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: NAME, namespace: ns, annotations: {ESTIMATE}}
spec: {minMember: 1, queue: default}
status: {phase: PHASE}
---
apiVersion: v1
kind: Pod
metadata:
  name: NAME-0
  namespace: ns
  annotations: {scheduling.k8s.io/group-name: NAME}
  creationTimestamp: "2026-01-01T00:00:00Z"
spec: {schedulerName: volcano, NODE containers: [{name: main, resources: {requests: {cpu: "2"}}}]}
status: {POD}
"""


def a_group(name: str, estimate: str, *, runs: bool) -> str:
    text = GROUP.replace("NAME", name).replace("PHASE", "Running" if runs else "Inqueue")
    text = text.replace("{ESTIMATE}", f"{{pumice.dev/estimate: {estimate}}}" if estimate else "{}")
    text = text.replace("NODE", "nodeName: n0," if runs else "")
    return text.replace("POD", 'phase: Running, startTime: "2026-01-01T00:00:00Z"' if runs else "phase: Pending")


@pytest.mark.parametrize(("estimate", "starts"), [("1h", 3600.0), ("", None)])
def test_until_says_when_jobs_start_by_estimates(tmp_path: Path, estimate: str, starts: float | None) -> None:
    path = tmp_path / "now.yaml"
    path.write_text(AHEAD + a_group("old", estimate, runs=True) + a_group("new", "10m", runs=False))
    words = ["whatif", str(path), "--add-nodes", "1xn0", "--until", "6h"]
    result = CliRunner().invoke(main, [*words, "--json"])
    assert result.exit_code == 1, result.output
    ahead = json.loads(result.stdout)["ahead"]
    new = next(each for each in ahead["jobs"] if each["job"] == "ns/new")
    assert new["before"]["starts_s"] == (None if starts is None else pytest.approx(starts, abs=2.0))
    assert new["after"]["starts_s"] == pytest.approx(0.0, abs=1.0)
    assert new["after"]["ends_s"] == pytest.approx(600.0, abs=2.0)
    assert ahead["without_estimate"] == ([] if estimate else ["ns/old"])
    text = CliRunner().invoke(main, words).stdout
    assert "1 job" in text and ("taken to run on: 1 job (ns/old)" in text) == (not estimate)


def test_a_job_that_is_removed_starts_and_ends_at_no_other_time(tmp_path: Path) -> None:
    path = tmp_path / "now.yaml"
    path.write_text(AHEAD + a_group("old", "1h", runs=True) + a_group("new", "10m", runs=False))
    text = CliRunner().invoke(main, ["whatif", str(path), "--remove", "job/ns/old", "--until", "6h"]).stdout
    assert "1 job starts or ends at another time" in text and "ns/old" not in text.partition("within 6 h")[2]
