"""Wrong input: one clear message that says where, what was found and what was wanted; everything else is served."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.kit import GOOD, run

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: ns, annotations: {{scheduling.k8s.io/group-name: {group}}}}}
spec: {{schedulerName: volcano, containers: [{{name: main, resources: {{requests: {{cpu: "{cpu}"}}}}}}]}}
"""
GROUP = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {{name: {name}, namespace: ns}}
spec: {{minMember: {minimum}, queue: {queue}}}
---
"""
CIRCLE = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: x}
spec: {weight: 1, parent: y}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: y}
spec: {weight: 1, parent: x}
"""
SECOND_NODE = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "8", memory: 8Gi, pods: 110}}
"""


def pod(name: str = "bad-0", group: str = "good", cpu: str = "1") -> str:
    return POD.format(name=name, group=group, cpu=cpu)


def group(name: str, minimum: int = 1, queue: str = "team-a") -> str:
    return GROUP.format(name=name, minimum=minimum, queue=queue)


@pytest.mark.parametrize(
    ("bad", "kind", "words"),
    [
        pytest.param("a: [b: {", "error", ["bad.yaml", "YAML", "line 2"], id="no-yaml"),
        pytest.param("hello", "error", ["bad.yaml", '"hello"', "wanted an object"], id="no-object"),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nspec: {}", "error", ["metadata.name", "found nothing", "wanted"], id="missing"
        ),
        pytest.param(pod(cpu="-1"), "error", ["ns/bad-0", "requests.cpu", 'found "-1"', "wanted"], id="negative"),
        pytest.param(pod(cpu=str(10**18)), "error", ["ns/bad-0", "requests.cpu", str(10**18), "wanted"], id="huge"),
        pytest.param(
            group("bad", 10**18), "error", ["ns/bad", "spec.minMember", str(10**18), "wanted"], id="huge-minimum"
        ),
        pytest.param(
            SECOND_NODE,
            "error",
            ["good.yaml", "bad.yaml", "Node n1", "2 times with different contents", "using"],
            id="duplicate",
        ),
        pytest.param(CIRCLE, "error", ["Queue x", "x -> y -> x"], id="circle-of-queues"),
        pytest.param(
            group("bad", 5) + pod(group="bad"),
            "warning",
            ["ns/bad", "minMember is 5", "1 pod"],
            id="minimum-above-pods",
        ),
        pytest.param(pod(group="godo"), "error", ["ns/bad-0", "ns/godo", "did you mean ns/good?"], id="unknown-group"),
        pytest.param(
            group("bad", queue="team-b") + pod(group="bad"),
            "error",
            ["ns/bad", "Queue team-b", "did you mean team-a?"],
            id="unknown-queue",
        ),
        pytest.param(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}",
            "warning",
            ["bad.yaml", "Deployment"],
            id="unknown-kind",
        ),
    ],
)
@pytest.mark.parametrize("command", ["schedule", "simulate"])
def test_manifests(tmp_path: Path, command: str, bad: str, kind: str, words: list[str]) -> None:
    good, wrong = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(GOOD)
    wrong.write_text(bad)
    result = run(command, good, wrong, "--json")
    said = [line for line in result.lines(kind) if "can never run" not in line]  # a simulation finds that out
    assert len(said) == 1, result.err
    assert [word for word in words if word not in said[0]] == []
    assert result.json["binds"] == ({"ns/good-0": "n1"} if command == "schedule" else 1)
    problems = [p for p in result.json["problems"] if p["severity"] != "note"]
    assert [p["severity"] for p in problems if "can never run" not in p["what"]] == [kind]
    assert result.code == (1 if "error" in [p["severity"] for p in problems] else 0)
    assert run(command, good, wrong).code == result.code


CONF = "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n"


@pytest.mark.parametrize(
    ("conf", "said"),
    [
        pytest.param(
            CONF.replace("allocate", '"enqueue, alocate"'),
            ['actions: unknown action "alocate"; did you mean "allocate"?'],
            id="action",
        ),
        pytest.param(
            CONF.replace("gang", "gnag"),
            ['tiers[0].plugins[0]: unknown plugin "gnag"; did you mean "gang"?'],
            id="plugin",
        ),
        pytest.param(
            CONF + "  - name: binpack\n    arguments: {binpack.weigth: 3}\n",
            ['tiers[0].plugins[1] (binpack): unknown argument "binpack.weigth"; did you mean "binpack.weight"?'],
            id="argument",
        ),
        pytest.param(
            CONF + "    enabledJobOrdr: false\n",
            ['tiers[0].plugins[0] (gang): unknown switch "enabledJobOrdr"; did you mean "enableJobOrder"?'],
            id="switch",
        ),
        pytest.param(
            CONF + "    enableJobOrder: 7\n  - name: binpack\n    arguments: {binpack.weight: heavy}\n",
            [
                "tiers[0].plugins[0] (gang): enableJobOrder: found 7, wanted true or false",
                "tiers[0].plugins[1] (binpack): argument binpack.weight: found 'heavy', wanted a whole number",
            ],
            id="types",
        ),
        pytest.param("dialect: []\n" + CONF, ['dialect: found "[]", wanted one of kai, pumice, volcano'], id="dialect"),
        pytest.param("- 1\n", ["found a list, wanted a mapping with actions and tiers"], id="no-mapping"),
    ],
)
@pytest.mark.parametrize("command", ["schedule", "simulate", "check-conf"])
def test_confs(tmp_path: Path, command: str, conf: str, said: list[str]) -> None:
    good, policy = tmp_path / "good.yaml", tmp_path / "policy.conf"
    good.write_text(GOOD)
    policy.write_text(conf)
    result = run(command, policy) if command == "check-conf" else run(command, good, "--conf", policy)
    assert (result.code, result.out) == (2, "")
    assert result.lines("error") == [f"{policy}: {each}" for each in said]


def test_a_conf_that_is_no_yaml(tmp_path: Path) -> None:
    policy = tmp_path / "policy.conf"
    policy.write_text("actions: [a: {")
    result = run("check-conf", policy)
    assert result.code == 2
    (said,) = result.lines("error")
    assert said.count(str(policy)) == 1
    assert "YAML" in said and "line 2" in said


def test_a_lenient_conf_leaves_out_what_is_unknown(tmp_path: Path) -> None:
    good, policy = tmp_path / "good.yaml", tmp_path / "policy.conf"
    good.write_text(GOOD)
    policy.write_text(CONF + "  - name: gnag\n")
    result = run("schedule", good, "--conf", policy, "--lenient-conf", "--json")
    assert result.code == 0
    assert result.json["binds"] == {"ns/good-0": "n1"}
    assert len(result.lines("warning")) == 1 and "gnag" in result.err


def test_a_lenient_conf_leaves_out_actions_and_says_so_loudly(tmp_path: Path) -> None:
    good, policy = tmp_path / "good.yaml", tmp_path / "policy.conf"
    good.write_text(GOOD)
    policy.write_text(CONF.replace("allocate", '"enqueue, rebalance, allocate"'))
    result = run("schedule", good, "--conf", policy, "--lenient-conf", "--json")
    assert result.code == 0 and result.json["left_out_actions"] == ["rebalance"]
    assert result.lines("warning")[-1] == f"THIS IS NOT THE POLICY OF {policy}: it runs without rebalance"
    assert "policy.conf, without rebalance" in run("simulate", good, "--conf", policy, "--lenient-conf").out
    assert run("simulate", good, "--conf", policy, "--lenient-conf", "--json").json["left_out_actions"] == ["rebalance"]
    assert run("schedule", good, "--conf", policy).code == 2


def test_check_conf_reads_standard_input() -> None:
    assert run("check-conf", "-", stdin=CONF).out.startswith("standard input: OK\n")
    result = run("check-conf", "-", stdin=CONF.replace("gang", "gnag"))
    assert result.code == 2
    assert result.lines("error") == ['standard input: tiers[0].plugins[0]: unknown plugin "gnag"; did you mean "gang"?']
    assert run("check-conf", "-", stdin="").code == 2


def test_unknown_keys_of_jobs_are_named(tmp_path: Path) -> None:
    """``task`` for ``tasks``: the job would be one of no pods, without a word."""
    job = (
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: train-%d}\nspec: {queue: team-a, task: []}"
    )
    file = tmp_path / "all.yaml"
    file.write_text("\n---\n".join([GOOD, *(job % i for i in range(4))]))
    result = run("schedule", file, "--json")
    (said,) = result.lines("warning")
    assert "document 5, Job train-0; " in said and "Job train-1 and 2 more" in said
    assert said.endswith("spec.task unknown field (ignored); did you mean tasks?")


def test_a_trace_without_columns(tmp_path: Path) -> None:
    good, trace = tmp_path / "good.yaml", tmp_path / "jobs.csv"
    good.write_text(GOOD)
    trace.write_text("job_id,submitted\n1,2\n")
    result = run("simulate", good, f"acme:{trace}", "--json")
    assert result.code == 1
    (said,) = result.lines("error")
    assert "jobs.csv: missing columns 'arrival_time'" in said and "found job_id, submitted; wanted job_id" in said
    assert result.json["binds"] == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(
            ["simulat"], "no command 'simulat'; did you mean 'simulate'? (pumice --help for more)", id="command"
        ),
        pytest.param(["simulate"], "missing argument 'INPUT…' (pumice simulate --help for more)", id="no-input"),
        pytest.param(["simulate", "nope"], "nope: no such file or folder", id="no-file"),
        pytest.param(["conformance", "nope"], "nope: no such file or folder", id="no-cases"),
        pytest.param(
            ["serve", "--listen", "127.0.0.1:0"],
            "--listen: found '127.0.0.1:0', wanted an address; its port is --port 0",
            id="address-with-port",
        ),
        pytest.param(["check-conf", "nope"], "nope: no such file or folder", id="no-conf"),
        pytest.param(
            ["simulate", "{good}", "--conf", "nope"], "nope: no such file or folder", id="no-conf-to-simulate"
        ),
        pytest.param(
            ["simulate", "{good}", "--until", "-3"],
            "invalid value for '--until': found '-3', wanted a time above 0 such as 90s, 1h30m or 7d"
            " (pumice simulate --help for more)",
            id="until",
        ),
        pytest.param(
            ["simulate", "{good}", "--report", "nope/r.html"],
            "nope/r.html: the folder nope does not exist",
            id="report",
        ),
        pytest.param(
            ["simulate", "{good}", "--faults", "refsed=2%"],
            "--faults: found 'refsed=2%', wanted some of refused=…, evict-refused=…, late=…, late-by=…,"
            " queued=…, node-gone=…, node-back=…, node-cordoned=…, node-uncordoned=…, pod-deleted=…, pod-killed=…,"
            " redelivered=…, restart=…, api-gone=…, api-back=…; did you mean refused?",
            id="faults",
        ),
        pytest.param(
            ["simulate", "{good}", "--faults", "late=200%"],
            "--faults: late: found '200%', wanted a share from 0 to below 1, such as 2%",
            id="fault-share",
        ),
        pytest.param(
            ["bench", "--scenario", "gang", "--nodes", "0", "--pods", "1", "--gang", "1"],
            "nodes: found 0, wanted 1 to 10,000,000",
            id="bench",
        ),
        pytest.param(["completion", "bsh"], "'bsh' is not one of 'bash', 'zsh', 'fish'", id="shell"),
    ],
)
def test_command_lines(tmp_path: Path, arguments: list[str], said: str) -> None:
    good = tmp_path / "good.yaml"
    good.write_text(GOOD)
    result = run(*(good if argument == "{good}" else argument for argument in arguments))
    assert (result.code, result.out) == (2, "")
    (error,) = result.lines("error")
    assert said in error


def test_no_nodes_says_what_to_give(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.yaml"
    jobs.write_text(group("bad") + pod(group="bad"))
    result = run("simulate", jobs)
    assert result.code == 2
    assert "the input has no nodes; use --nodes, such as --nodes 16x4gpu" in result.lines("error")


def test_inputs_that_each_bring_a_policy(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "volcano-scheduler.conf").write_text(CONF)
        (tmp_path / name / "good.yaml").write_text(GOOD)
    result = run("simulate", tmp_path / "one", tmp_path / "two")
    assert result.code == 2
    (said,) = result.lines("error")
    assert said.startswith("several policy files: ") and said.endswith("; name one with --conf")


def test_names_cannot_move_the_cursor(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(GOOD + '---\nkind: "De\\x1b[2Jploy\\nment"\napiVersion: v1\nmetadata: {name: x}\n')
    result = run("schedule", bad)
    assert "\x1b" not in result.err
    assert len(result.lines("warning")) == 1
