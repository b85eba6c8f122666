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


def test_an_object_that_is_there_is_changed_by_apply(tmp_path: Path) -> None:
    node = {"name": "n0", "labels": {"kubernetes.io/hostname": "n0"}}
    room = {"cpu": "3", "memory": "16Gi", "pods": "110"}
    path = tmp_path / "node.json"
    status = {"allocatable": room, "capacity": room}
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": node, "status": status}))
    assert found("--apply", str(path))["placed"] == {"ml/tf": 8}


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
        ("--add-nodes 2xn9", "no node has that name"),
        ("--add-nodes two", "wanted COUNTxNAME or COUNTxSIZE"),
        ("--add-nodes 0xn0", "wanted COUNTxNAME or COUNTxSIZE"),
        ("--drain m0", "there is no node 'm0'"),
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
