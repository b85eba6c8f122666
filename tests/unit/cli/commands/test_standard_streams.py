"""The file ``-``: standard input where a command reads a file, standard output where it writes one."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pumice.cli.main import main
from pumice.cli.policies import watched_policy
from pumice.kube.scheduler.reload import ConfFile
from tests.tidy import repo
from tests.unit.cli.kit import GOOD, run

CONF = 'actions: "enqueue, allocate"\ntiers: [{plugins: [{name: gang}, {name: binpack}]}]\n'


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.yaml"
    path.write_text(GOOD)
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("schedule", "{cluster}", "--conf", "-"),
        ("simulate", "{cluster}", "--conf", "-"),
        ("explain", "ns/good", "{cluster}", "--conf", "-"),
        ("next", "{cluster}", "--conf", "-"),
        ("whatif", "{cluster}", "--conf", "-"),
        ("whatif", "{cluster}", "--from-conf", "-", "--remove", "job/ns/good"),
        ("compare", "default", "-", "{cluster}", "--repeats", "1"),
        ("check-conf", "-"),
        ("sweep", "{cluster}", "--policy", "-", "--workers", "1", "--out", "{cluster}.sweep"),
    ],
    ids=" ".join,
)
def test_a_policy_is_read_from_standard_input(cluster: Path, words: tuple[str, ...]) -> None:
    given = [word.format(cluster=cluster) for word in words]
    assert run(*given, stdin=CONF).code in (0, 1)
    wrong = run(*given, stdin=CONF.replace("gang", "gnag"))
    assert wrong.code == 2 and wrong.lines("error")[0].startswith("standard input: tiers[0].plugins[0]: unknown")


@pytest.mark.parametrize(
    "words",
    [
        ("schedule", "-"),
        ("simulate", "-"),
        ("explain", "ns/good", "-"),
        ("next", "-"),
        ("whatif", "-", "--remove", "job/ns/good"),
        ("whatif", "{cluster}", "--apply", "-"),
        ("compare", "default", "default", "-", "--repeats", "1", "--json"),
        ("sweep", "-", "--policy", "default", "--workers", "1", "--out", "{cluster}.sweep"),
    ],
    ids=" ".join,
)
def test_manifests_are_read_from_standard_input(cluster: Path, words: tuple[str, ...]) -> None:
    found = run(*(word.format(cluster=cluster) for word in words), stdin=GOOD)
    assert found.code in (0, 1) and "error" not in found.err


@pytest.mark.parametrize(
    "words",
    [
        *(("schedule", "-"), ("simulate", "-"), ("next", "-"), ("whatif", "-", "--remove", "job/ns/good")),
        *(("simulate", "-", "--json"), ("schedule", "-", "--json"), ("pages", "-", "--print", "overview")),
        *(("compare", "default", "default", "-", "--repeats", "1", "--json"), ("top", "-"), ("top", "-", "--json")),
        ("sweep", "-", "--policy", "default", "--workers", "1", "--out", "{cluster}.sweep"),
    ],
    ids=" ".join,
)
def test_messages_name_standard_input_and_no_other_file(cluster: Path, words: tuple[str, ...]) -> None:
    found = run(*(word.format(cluster=cluster) for word in words), stdin=f"{GOOD}\n---\na: [\n")
    assert found.code == 1, "a document could not be used"
    assert any(line.startswith("standard input document ") for line in found.lines("error"))
    assert "stdin.yaml" not in found.out + found.err


def test_nothing_usable_on_standard_input_is_said_of_it() -> None:
    found = run("simulate", "-", stdin="")
    assert found.code == 2
    assert found.lines("error") == ["standard input: found nothing usable, wanted manifests or a trace"]
    assert run("schedule", "-", stdin="").lines("error") == found.lines("error")
    assert run("simulate", "swf:-", stdin="").lines("error")[0].startswith("trace: standard input: found no row")


def test_a_policy_of_a_sweep_from_standard_input_is_one_of_several(cluster: Path) -> None:
    words = ("--policy", "default,-", "--set", "binpack.binpack.weight=1,2", "--workers", "1")
    words += ("--out", f"{cluster}.sweep")
    only_ours = ("sweep", cluster, "--policy", "-", *words[2:], "--json")
    found = run(*only_ours, stdin=CONF)
    assert found.code == 0 and [each["policy"] for each in found.json["settings"]] == ["standard input"] * 2
    assert "default: " in run("sweep", cluster, *words, stdin=CONF).err  # it has no binpack
    line = "{actions: allocate, tiers: [{plugins: [{name: binpack}]}]}"
    assert run(*only_ours, stdin=line).json["universes"] == 2


@pytest.mark.parametrize("command", ["run", "serve"])
def test_a_scheduler_reads_its_policy_from_standard_input_once(command: str) -> None:
    begun: dict[str, ConfFile] = {}

    @click.command()
    @click.option("--scheduler-conf", type=click.Path(path_type=Path))
    def scheduler(scheduler_conf: Path) -> None:
        begun["conf"] = watched_policy(scheduler_conf, "")

    found = CliRunner().invoke(scheduler, ["--scheduler-conf", "-"], input=CONF)
    assert found.exit_code == 0, found.output
    conf = begun["conf"]
    assert conf.current.where == "standard input" and "binpack" in conf.current.text and not conf.look()
    at_work = ("--schedule",) if command == "serve" else ()
    wrong = run(command, *at_work, "--scheduler-conf", "-", stdin=CONF.replace("gang", "gnag"))
    assert wrong.code == 2 and wrong.lines("error")[0].startswith("standard input: tiers[0].plugins[0]: unknown")


SWF = "1 0 0 60 1 -1 -1 1 60 -1 1 1 1 1 1 1 -1 -1\n"
TABLE = "id,arrival,duration,gpus\na,0,60,1\n"


@pytest.mark.parametrize(
    ("source", "content"), [("swf:-", SWF), ("-", SWF), ("csv:-", TABLE), ("csv(gpus=gpus):-", TABLE)]
)
def test_a_trace_is_read_from_standard_input(source: str, content: str) -> None:
    found = run("simulate", source, "--nodes", "2:cpu=64,gpu=4,memory=1Ti", "--json", stdin=content)
    assert found.code == 0 and found.json["completed"] == 1, found.err
    twice = run("simulate", source, "-", "--nodes", "1x4gpu", stdin=content)
    assert twice.code == 2 and "standard input (-) can be read once" in twice.err


@pytest.mark.parametrize(
    "content", ["", "{}", "[" * 9, "x" * 200_000, f'{{"kind": "{"x" * 200_000}"}}', "\0\xff", ",\n,"]
)
def test_other_content_of_standard_input_is_wrong_input(content: str) -> None:
    assert run("simulate", "-", stdin=content).code in (1, 2)


def test_a_pod_list_or_a_node_list_to_fill_is_read_from_standard_input(tmp_path: Path) -> None:
    pods, nodes = tmp_path / "pods.csv", tmp_path / "nodes.csv"
    rows = "".join(f"p{i},1000,1024,1,1000,\n" for i in range(9))
    pods.write_text(f"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n{rows}")
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,4,T4\nn1,64000,262144,4,T4\n")
    more = ("--policies", "bestfit", "--repeats", "1", "--json")
    found = [
        run("fill", trace, "--nodes", listed, *more, stdin=content)
        for trace, listed, content in (
            (pods, nodes, None), ("-", nodes, pods.read_text()), (pods, "-", nodes.read_text())
        )
    ]  # fmt: skip
    assert [each.code for each in found] == [0, 0, 0], found[1].err
    assert [each.json["policies"][0]["allocation"] for each in found] == [
        found[0].json["policies"][0]["allocation"]
    ] * 3
    for words, said in (
        (("fill", "-"), "wanted --nodes"),
        (("fill", "-", "--nodes", "-"), "standard input (-) can be read once"),
        (("fill", pods, "--nodes", nodes, "--all-nodes"), "wanted one of them"),
    ):
        wrong = run(*words, stdin="")
        assert wrong.code == 2 and said in wrong.err


def test_standard_input_is_read_once(cluster: Path) -> None:
    for words in (("schedule", "-", "--conf", "-"), ("compare", "-", "-", cluster), ("compare", "default", "-", "-")):
        found = run(*words, stdin=CONF)
        assert found.code == 2 and "standard input (-) can be read once" in found.err


def test_a_plan_from_standard_input_names_files_of_the_current_folder(
    cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(cluster.parent)
    plan = "inputs: cluster.yaml\npolicies: [default]\nseeds: 0..1\nshake: 1s\n"
    found = run("sweep", "-", "--workers", "1", "--out", "out", "--json", stdin=plan)
    assert found.code == 0 and found.json["universes"] == 2


def test_a_saved_world_is_read_from_standard_input(tmp_path: Path) -> None:
    from pumice.runtime.policy.languages import builtin_registry
    from pumice.sim.fuzz.case import draw

    world = json.dumps(draw(3, builtin_registry(), [], {}).to_json())
    assert run("fuzz", "--replay", "-", stdin=world).out.startswith("1 worlds, no law broken")


@pytest.mark.parametrize(
    ("words", "begins"),
    [
        (("simulate", "{cluster}", "--report", "-"), b"<!doctype html>"),
        (("simulate", "{cluster}", "--events", "-"), b"{"),
        (("simulate", "{cluster}", "--perfetto", "-"), b"{"),
        (("simulate", "{cluster}", "--save-cycle", "1", "-"), b"PK"),
        (("compare", "default", "default", "{cluster}", "--repeats", "1", "--report", "-"), b"<!doctype html>"),
        (
            (
                "sweep",
                "{cluster}",
                *("--policy", "default", "--set", "nodeorder.leastrequested.weight=1,2", "--nodes", "1x4gpu,2x4gpu"),
                *("--workers", "1", "--out", "{cluster}.sweep", "--heat-map", "-"),
            ),
            b"<!doctype html>",
        ),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_a_file_is_written_to_standard_output_and_nothing_else(
    cluster: Path, words: tuple[str, ...], begins: bytes
) -> None:
    given = [word.format(cluster=cluster) for word in words]
    found = CliRunner().invoke(main, given, prog_name="pumice")
    assert found.exit_code == 0, found.stderr
    assert found.stdout_bytes.lower().startswith(begins.lower()) and "wrote -" not in found.stderr


def test_a_recorded_cycle_is_written_to_standard_output(tmp_path: Path) -> None:
    record, saved = tmp_path / "record", tmp_path / "cycle.pumice"
    run("simulate", repo.ROOT / "examples" / "gang.yaml", "--nodes", "4x8gpu", "--record", record)
    found = CliRunner().invoke(main, ["replay", str(record), "--cycle", "1", "--save", "-"], prog_name="pumice")
    saved.write_bytes(found.stdout_bytes)
    assert found.exit_code == 0 and run("schedule", saved).code == 0


def test_standard_output_is_written_once(cluster: Path) -> None:
    for words in (
        ("simulate", cluster, "--save-cycle", "1", "-", "--json"),
        ("compare", "default", "default", cluster, "--report", "-", "--json"),
        ("sweep", cluster, "--policy", "default", "--heat-map", "-", "--json"),
    ):
        found = run(*words)
        assert found.code == 2 and "standard output (-) can be used once" in found.err
