"""``pumice explain`` on files and standard input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.answers.codes import Code
from pumice.answers.explanation import Explanation, Part, Verdict
from pumice.answers.ways import Cost, Way
from pumice.cli.answers.explanation import print_explanation
from pumice.cli.main import main
from pumice.runtime.files.snapshot_file import Cycle, write_cycle
from pumice.sim.scenes.inputs import read_inputs
from pumice.testing.build import budget, cluster

ROOT = Path(__file__).parents[3]
GANG = str(ROOT / "examples/debug-gang")


def test_a_gang_that_lacks_room_is_explained_with_a_way_out() -> None:
    result = CliRunner().invoke(main, ["explain", "ml/tf", GANG])
    assert result.exit_code == 0
    assert "1 Shortage  6 of 8 pods fit; the other 2 ask for 1 core each" in result.stdout
    assert "2 more nodes like n0" in result.stdout and "minMember 6 instead of 8" in result.stdout


def test_json_has_the_schema_and_the_proof() -> None:
    result = CliRunner().invoke(main, ["explain", "tf", GANG, "--json", "--no-ways"])
    found = json.loads(result.stdout)
    assert found["schema"] == "pumice.explain/1"
    assert [part["code"] for part in found["reason"]] == ["Shortage"]
    assert found["proof"]["minimal"] is True and found["proof"]["cut"] is False
    assert found["proof"]["smallest"] is True
    assert found["ways_out"] == []


@pytest.mark.parametrize(
    ("is_checked", "is_smallest", "words"),
    [
        (True, True, "2 things are in its way (7 trials, smallest set)"),
        (True, False, "2 things are in its way (7 trials, each is needed, a smaller set may exist)"),
        (False, False, "2 things are in its way (7 trials, not proven that each is needed)"),
    ],
)
def test_an_answer_says_how_much_of_its_reason_is_proven(
    capsys: pytest.CaptureFixture[str], *, is_checked: bool, is_smallest: bool, words: str
) -> None:
    parts = (Part(Code.TAINT, "", "a taint"), Part(Code.ROOM, "cpu", "no room"))
    found = Explanation(
        "ns/j", Verdict.NOT_NOW, "q", 1, 1, 1, parts, trials=7, is_checked=is_checked, is_smallest=is_smallest
    )
    print_explanation(found, "digest", str)
    assert words in capsys.readouterr().out


def test_an_answer_says_that_a_way_has_more_commands_than_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    commands = tuple(f"kubectl uncordon n{number}" for number in range(6))
    way = Way(("uncordon all nodes",), commands, (), Cost())
    print_explanation(Explanation("ns/j", Verdict.NEVER, "q", 1, 1, 1, ways=(way,)), "digest", str)
    out = capsys.readouterr().out
    assert "kubectl uncordon n3" in out and "kubectl uncordon n4" not in out
    assert "and 2 more commands: --json has all" in out


@pytest.mark.parametrize(
    ("job", "folder", "verdict", "meaning"),
    [
        ("ml/tf", "debug-gang", "never", "as things are it would not start even without all other jobs"),
        ("ml/tf", "debug-gang-min-6", "starts", "it gets nodes in this cycle"),
        ("demo/etl-1", "demo", "not now", "it starts once enough of the other jobs have ended"),
    ],
)
def test_json_says_what_the_first_word_means(job: str, folder: str, verdict: str, meaning: str) -> None:
    result = CliRunner().invoke(main, ["explain", job, str(ROOT / "examples" / folder), "--json", "--no-ways"])
    found = json.loads(result.stdout)
    assert found["verdict"] == verdict and found["verdict_means"].startswith(meaning)


def test_a_job_that_is_not_there_is_wrong_input() -> None:
    result = CliRunner().invoke(main, ["explain", "ml/tff", GANG])
    assert result.exit_code == 2
    assert "did you mean ml/tf?" in result.stderr


def test_manifests_come_from_standard_input() -> None:
    files = sorted(Path(GANG).glob("*.yaml"))
    text = "\n---\n".join(file.read_text() for file in files)
    conf = str(Path(GANG) / "volcano-scheduler.conf")
    result = CliRunner().invoke(main, ["explain", "ml/tf", "-", "--conf", conf], input=text)
    assert result.exit_code == 0 and "Shortage" in result.stdout


def test_a_snapshot_is_explained_as_the_files_that_it_was_made_of(tmp_path: Path) -> None:
    """Also with objects that have a table by kind, which a snapshot keeps apart from pods and nodes."""
    conf = (Path(GANG) / "volcano-scheduler.conf").read_text()
    found = read_inputs([GANG])
    objects = [*found.scene.objects, budget("b", {"app": "x"}, namespace="ml")]
    for work in found.scene.works:
        group, pods = work.expand(found.newest)
        objects += [group, *pods]
    path = tmp_path / "cycle.pumice"
    write_cycle(path, Cycle(cluster(*objects).snapshot(found.newest), found.newest, conf))
    of_snapshot, of_files = (CliRunner().invoke(main, ["explain", "ml/tf", of, "--json"]) for of in (str(path), GANG))
    assert of_snapshot.exit_code == 0, of_snapshot.output
    assert json.loads(of_snapshot.stdout) == json.loads(of_files.stdout)


def test_all_waiting_jobs_are_grouped_by_code() -> None:
    result = CliRunner().invoke(main, ["explain", "--all", GANG, "--json"])
    found = json.loads(result.stdout)
    assert found["schema"] == "pumice.explain-all/1"
    assert [(group["code"], group["jobs"]) for group in found["waiting"]] == [("Shortage", ["ml/tf"])]
    assert "1 job waits" in CliRunner().invoke(main, ["explain", "--all", GANG]).stdout


def test_a_job_without_files_is_wrong_input() -> None:
    assert CliRunner().invoke(main, ["explain", GANG]).exit_code == 2


def test_a_job_of_a_snapshot_is_explained(tmp_path: Path) -> None:
    saved = str(tmp_path / "cycle.pumice")
    assert CliRunner().invoke(main, ["simulate", GANG, "--save-cycle", "2", saved]).exit_code in (0, 1)
    result = CliRunner().invoke(main, ["explain", "ml/tf", saved, "--no-ways"])
    assert result.exit_code == 0 and "Shortage" in result.stdout


def test_schedule_names_reasons_first_and_shows_one_job_or_queue() -> None:
    everything = CliRunner().invoke(main, ["schedule", GANG]).stdout
    assert "jobs that wait by reason: 1 Shortage" in everything.split("ml/tf")[0]
    assert "ml/tf" in CliRunner().invoke(main, ["schedule", GANG, "--job", "tf", "--queue", "default"]).stdout
    assert "ml/tf" not in CliRunner().invoke(main, ["schedule", GANG, "--queue", "prod"]).stdout


def test_schedule_reads_standard_input() -> None:
    text = "\n---\n".join(file.read_text() for file in sorted(Path(GANG).glob("*.yaml")))
    result = CliRunner().invoke(main, ["schedule", "-"], input=text)
    assert result.exit_code == 0 and "ml/tf" in result.stdout


def test_a_job_of_a_namespace_that_is_not_seen_is_not_there() -> None:
    seen = CliRunner().invoke(main, ["explain", "tf", GANG, "--json", "--no-ways", "--for-namespaces", "ml,x"])
    assert json.loads(seen.stdout)["job"] == "ml/tf"
    for words in (["ml/tf", "--for-namespaces", "x"], ["tf", "--for-namespaces="]):
        result = CliRunner().invoke(main, ["explain", words[0], GANG, "--no-ways", *words[1:]])
        assert result.exit_code == 2 and "found no job" in result.stderr and "did you mean" not in result.stderr
    result = CliRunner().invoke(main, ["explain", "--all", GANG, "--for-namespaces", "ml"])
    assert result.exit_code == 2 and "wanted one JOB" in result.stderr


def test_a_job_that_runs_is_not_said_to_start(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: x}\n"
        "spec: {nodeName: n1, schedulerName: volcano, containers: [{name: c}]}\nstatus: {phase: Running}\n---\n"
        "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: '4', pods: '9'}}\n"
    )
    found = CliRunner().invoke(main, ["explain", "x/podgroup-x-p", str(file)])
    assert "\nruns  each of its pods has a node\n" in found.stdout and "Other" not in found.stdout


def test_a_pod_without_a_group_is_shown_by_its_own_name(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop, uid: 4f1c}\n"
        "spec: {schedulerName: volcano, containers: [{name: c, resources: {requests: {cpu: '8'}}}]}\n---\n"
        "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: '4', pods: '9'}}\n"
    )
    for words in (["schedule", str(file)], ["schedule", "--job", "shop/web", str(file)]):
        listed = CliRunner().invoke(main, words).stdout
        assert "\nshop/web  queue default" in listed and "podgroup-" not in listed
    found = CliRunner().invoke(main, ["explain", "shop/web", str(file), "--no-ways"])
    assert found.stdout.startswith("shop/web  ")
    as_json = json.loads(CliRunner().invoke(main, ["explain", "shop/web", str(file), "--no-ways", "--json"]).stdout)
    assert (as_json["job"], as_json["shown"]) == ("shop/podgroup-4f1c", "shop/web")
    both = json.loads(CliRunner().invoke(main, ["schedule", str(file), "--json"]).stdout)
    assert both["shown"] == {"shop/podgroup-4f1c": "shop/web"} and "shop/podgroup-4f1c" in both["hints"]


def test_each_part_of_a_shortage_has_its_amounts_and_a_record_says_for_how_long(tmp_path: Path) -> None:
    demo, folder = str(ROOT / "examples/demo"), str(tmp_path / "record")
    assert CliRunner().invoke(main, ["simulate", demo, "--record", folder]).exit_code == 0
    result = CliRunner().invoke(main, ["explain", "demo/giant", demo, "--no-ways", "--record", folder])
    assert result.exit_code == 0, result.output
    assert "1 Shortage   the cluster has 96 GPUs, it asks for 104" in result.stdout
    assert "2 Shortage   cluster: 384 of 921.6 cores (1.2 × 768) promised to 6 jobs, asks for 728" in result.stdout
    assert "; of the cycles recorded: " in result.stdout and " Overcommit" in result.stdout
    wrong = CliRunner().invoke(main, ["explain", "--all", demo, "--record", folder])
    assert wrong.exit_code == 2 and "--record: wanted one JOB and files" in wrong.stderr
