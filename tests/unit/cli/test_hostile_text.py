"""Names are text: whatever they hold, nothing moves a cursor, starts a line, or is no text at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.kit import GOOD, run

ESCAPE = "\x1b[31mred\x1b]0;title\x07\x9b2J\r\n error: made up\u202e\u2028"
LINES_OF_ALL = "bell \x07 back \x08 delete \x7f csi \x9b31m line \x85 left \u202e tag \U000e0001"


def manifests(hostile: str) -> str:
    """Every place where a user's text may reach the output."""
    objects = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n", "labels": {hostile: hostile}},
            "spec": {"taints": [{"key": hostile, "value": hostile, "effect": "NoSchedule"}]},
            "status": {"allocatable": {"cpu": "1", "pods": "9", f"kubernetes.io/{hostile}": "3"}},
        },
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "g", "annotations": {"volcano.sh/sla-waiting-time": hostile}},
            "spec": {
                "minMember": 1,
                "queue": "default",
                "priorityClassName": hostile,
                "minTaskMember": {hostile: 1},
                "minResources": {f"kubernetes.io/{hostile}": "9"},
            },
            "status": {
                "conditions": [{"type": "Unschedulable", "status": "True", "reason": hostile, "message": hostile}]
            },
        },
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "lost"},
            "spec": {"minMember": 1, "queue": hostile},
        },
        *(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "annotations": {"scheduling.k8s.io/group-name": group}},
                "spec": {
                    "schedulerName": scheduler,
                    "nodeName": node,
                    "containers": [{"image": hostile, "resources": {"requests": {f"kubernetes.io/{hostile}": "5"}}}],
                    "nodeSelector": {hostile: hostile},
                },
            }
            for name, group, scheduler, node in (
                ("waits", "g", "volcano", ""),
                ("groupless", hostile, "volcano", ""),
                ("foreign", "lost", hostile, ""),
                ("away", "g", "volcano", hostile),
            )
        ),
    ]
    return "\n---\n".join(json.dumps(obj) for obj in objects)


@pytest.mark.parametrize("hostile", [ESCAPE, LINES_OF_ALL], ids=["escapes", "of every kind"])
@pytest.mark.parametrize("command", ["schedule", "simulate"])
@pytest.mark.parametrize("how", [(), ("--json",)], ids=["text", "json"])
def test_no_name_reaches_the_terminal_as_more_than_text(
    tmp_path: Path, command: str, how: tuple[str, ...], hostile: str
) -> None:
    (tmp_path / "a.yaml").write_text(manifests(hostile))
    result = run(command, tmp_path / "a.yaml", *how)
    for text in (result.out, result.err):
        assert [line for line in text.split("\n") if not line.isprintable()] == []
    assert "error: made up" not in [line[:14] for line in result.err.split("\n")]
    if how:
        assert result.json["problems"]


def test_json_means_what_it_meant(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(manifests(ESCAPE))
    waiting = run("schedule", tmp_path / "a.yaml", "--json").json["unscheduled"]
    assert waiting["default/foreign"] == f"belongs to another scheduler: {ESCAPE}"


@pytest.mark.parametrize("name", ["a\x1b[31m.yaml", "a\nerror: made up.yaml", "a\udcff.yaml"], ids=ascii)
def test_names_of_files_are_text_too(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(GOOD + "---\nkind: [\n")
    for how in ((), ("--json",)):
        result = run("schedule", tmp_path, *how)
        assert result.code == 1
        for text in (result.out, result.err):
            assert [line for line in text.split("\n") if not line.isprintable()] == []
    result = run("simulate", tmp_path / name, "--report", tmp_path / "r.html", "--events", tmp_path / "e.jsonl")
    assert result.code == 1
    assert "a" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("half", ["\\ud800", "\\uDfff", "\\ud83d\\u0041"])
@pytest.mark.parametrize("file", ["a.json", "a.yaml"])
def test_half_a_character_is_named(tmp_path: Path, half: str, file: str) -> None:
    """As JSON may write it: nothing that is UTF-8 can hold it."""
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / file).write_text(
        '{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"g"},'
        f'"spec":{{"queue":"{half}"}}}}'
    )
    result = run("schedule", tmp_path, "--json")
    assert result.code == 1
    (said,) = result.lines("error")
    assert file in said
    assert result.json["binds"] == {"ns/good-0": "n1"}


def test_a_pair_of_halves_is_a_character(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "a.json").write_text(
        '{"apiVersion":"v1","kind":"Node","metadata":{"name":"n2","labels":{"a":"\\ud83d\\ude00"}},'
        '"status":{"allocatable":{"cpu":"1"}}}'
    )
    assert run("schedule", tmp_path, "--json").code == 0
