"""Each example of each ``--help``, and each console block of the guide, runs as it is written: in a folder that has the
files it names, with smaller numbers where it would take minutes. What serves or asks a server is parsed only."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from pumice.cli.main import COMMANDS, main
from tests.tidy import repo
from tests.unit.cli.kit import run

ROOT_CONTEXT = click.Context(main, info_name="pumice")
CONF = 'actions: "enqueue, allocate, backfill"\ntiers: [{plugins: [{name: gang}, {name: drf}, {name: binpack}]}]\n'
#: These serve until they are stopped, or ask a server or a shell of their own.
PARSED_ONLY = {"run", "serve", "pages", "log-level", "conformance", "completion"}
#: Arguments that are on no machine of a test.
ELSEWHERE = re.compile(r"https?://|/var/lib/")
#: What is said with fewer seeds, repeats, nodes and pods here.
SMALLER = {"0..499": "0..1", "0..999": "0..1", "0..19": "0..1", "0..4": "0..1"}
HAS_WORKERS = ("compare", "sweep")
SMALLER_AFTER = {"--repeats": "2", "--pods": "40", "--gang": "4"}


#: Other tools that pages use, for a scheduler or a shell.
NOT_RUN = {"make", "curl", "export"}
CONSOLE = re.compile(r"^```console\n(?P<body>.*?)^```", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"\s{2,}# .*")


def examples() -> Iterator[tuple[str, str]]:
    """Yield each command with each of its examples."""
    for name in ("", *COMMANDS):
        command = main.get_command(ROOT_CONTEXT, name) if name else main
        assert command is not None
        for line in (command.help or "").partition("Examples:")[2].splitlines():
            if line.startswith("  ") and re.search(r"\bpumice \w", line):
                yield name, line.strip()


def blocks() -> Iterator[list[str]]:
    """Yield the commands of each console block of the guide and README.md that has some of ``pumice``."""
    for page in (repo.ROOT / "README.md", *sorted((repo.ROOT / "docs" / "guide").glob("*.md"))):
        for block in CONSOLE.finditer(repo.text(page)):
            typed = [line.removeprefix("$ ") for line in block["body"].splitlines() if line.startswith("$ ")]
            typed = [COMMENT.sub("", line).replace(".venv/bin/pumice", "pumice") for line in typed]
            if any(line.startswith("pumice ") for line in typed):
                yield typed


def unlike_blocks() -> Iterator[list[str]]:
    """Yield each block once, without those that have only examples of ``--help``, which run by themselves."""
    known = set[tuple[str, ...]]()
    for block in blocks():
        if tuple(block) not in known and not set(block) <= set(EXAMPLES):
            yield block
        known.add(tuple(block))


EXAMPLES = list(dict.fromkeys(line for _, line in examples()))
BLOCKS = [pytest.param(block, id=block[0]) for block in unlike_blocks()]


def test_each_command_has_examples() -> None:
    assert {name for name, _ in examples()} == {"", *COMMANDS}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the examples name."""
    folder = tmp_path_factory.mktemp("files")
    shutil.copytree(repo.ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("notebooks", "traces"))
    plan = (repo.ROOT / "examples" / "sweep.toml").read_text().replace('"0..4"', '"0"').replace('"2h"', '"10m"')
    (folder / "examples" / "sweep.toml").write_text(plan)
    for name in ("old.conf", "new.conf", "drf.conf", "another.conf", "volcano-scheduler.conf"):
        (folder / name).write_text(CONF)
    for place in ("cluster", "manifests"):
        (folder / place).mkdir()
        (folder / place / "all.yaml").write_text(yaml.safe_dump_all(cluster()))
    (folder / "jobs.yaml").write_text(yaml.safe_dump_all([*nodes(), *queues(), *gang("ml", "more", "prod", 1)]))
    (folder / "all.yaml").write_text(yaml.safe_dump_all(cluster()))
    (folder / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": cluster()}))
    many = [part for hours in range(1, 13) for part in gang("ml", f"many-{hours}", "vision", 1, 0, f"{hours}h")]
    (folder / "many.yaml").write_text(yaml.safe_dump_all(many))
    write_traces(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run("simulate", "cluster", "--save-cycle", "1", "cycle.pumice").code == 0
        assert run("simulate", "cluster", "many.yaml", "--record", "rec").code == 0
        (folder / "fuzz-findings").mkdir()
        write_world(folder / "fuzz-findings" / "17.json")
        parts = [f"part-{number}" for number in range(1, 5)]
        whole = run("sweep", "examples/sweep.toml", "--workers", "1", "--out", parts[0])
        assert whole.code == 0, whole.err
        for name in parts[1:]:  # merge takes a universe from any part
            Path(name).mkdir()
    return folder


def nodes() -> list[dict[str, object]]:
    room = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{number}", "labels": {"rack": f"r{number}"}},
            "status": {"allocatable": room},
        }
        for number in range(1, 5)
    ]


def gang(namespace: str, name: str, queue: str, pods: int, gpus: int = 8, lasts: str = "1h") -> list[dict[str, object]]:
    group = {"minMember": pods, "queue": queue}
    made: list[dict[str, object]] = [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": namespace},
            "spec": group,
        }
    ]
    notes = {"scheduling.k8s.io/group-name": name, "pumice.dev/duration": lasts}
    container = {"name": "main", "resources": {"requests": {"cpu": "8", "nvidia.com/gpu": str(gpus)}}}
    for number in range(pods):
        made.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"{name}-{number}", "namespace": namespace, "annotations": notes},
                "spec": {"schedulerName": "volcano", "containers": [container]},
                "status": {"phase": "Pending"},
            }
        )
    return made


def queues() -> list[dict[str, object]]:
    return [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"weight": 1, "capability": {"nvidia.com/gpu": "64"}},
        }
        for name in ("prod", "vision")
    ]


def cluster() -> list[dict[str, object]]:
    """Four nodes, of which two gangs take two, and a third gang that waits for them."""
    gangs = (gang("ml", "a", "vision", 1), gang("ml", "eval", "prod", 1), gang("ml", "bert", "prod", 3))
    return [*nodes(), *queues(), *(each for made in gangs for each in made)]


def write_traces(folder: Path) -> None:
    philly = folder / "traces" / "philly-gavel"
    philly.mkdir(parents=True)
    source = repo.ROOT / "examples" / "traces" / "philly"
    shutil.copytree(source, folder / "traces" / "philly")
    job = "ResNet-18 (batch size 64)\tpython3 main.py\t--num_steps\t0\t1000\t{at}\t{gpus}\n"
    (philly / "a.trace").write_text("".join(job.format(at=86400.0 * at, gpus=1 + at % 4) for at in range(30)))
    rate = {"v100": {"('ResNet-18 (batch size 64)', 1)": {"null": 10.0}}}
    (philly / "simulation_throughputs.json").write_text(json.dumps(rate))
    swf = "".join(f"{day} {86400 * day} 0 600 1 -1 -1 1 900 -1 1 1 1 1 1 1 -1 -1\n" for day in range(1, 21))
    (folder / "theta_2022.swf").write_text(swf)
    (folder / "traces" / "theta-2023").mkdir()
    (folder / "traces" / "theta-2023" / "theta_2023.swf").write_text(swf)
    pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n" + "".join(
        f"p{number},1000,1024,1,{500 if number % 2 else 1000},\n" for number in range(10)
    )
    listed = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(f"n{i},64000,262144,4,T4\n" for i in range(3))
    for openb in (folder / "traces" / "openb-2023", folder / "openb-2023"):
        (openb / "expected").mkdir(parents=True)
        for name in ("default", "gpuspec33"):
            (openb / f"openb_pod_list_{name}.csv").write_text(pods)
        (openb / "openb_node_list_gpu_node.csv").write_text(listed)
        (openb / "expected" / "analysis_allo_discrete.csv").write_text("workload,sc_policy,tune,seed,0,1\n")
    (folder / "pods.csv.gz").write_bytes(gzip.compress(pods.encode()))


def write_world(path: Path) -> None:
    from pumice.runtime.policy.languages import builtin_registry
    from pumice.sim.fuzz.case import draw

    path.write_text(json.dumps(draw(17, builtin_registry(), [], {}).to_json()))


@pytest.mark.slow
@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_runs(line: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied(files, tmp_path, monkeypatch)
    typed(line)


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_of_the_guide_runs(
    block: list[str], files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied(files, tmp_path, monkeypatch)
    for line in block:
        if line.split()[0] not in NOT_RUN:
            typed(line)


def copied(files: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go to a copy of the files."""
    shutil.copytree(files, folder / "work")
    monkeypatch.chdir(folder / "work")


def typed(line: str) -> None:
    """Run a line as a shell does."""
    if "--record rec" in line:
        shutil.rmtree("rec")
    printed: str | None = None
    for operator, words in steps(line):
        if operator == ">":
            assert len(words) == 1
            if printed is not None:
                Path(words[0]).write_text(printed)
        else:
            printed = done(words, printed if operator == "|" else None)


def steps(line: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command of a line, or file after >, as words with the operator before them."""
    operator, words = "", list[str]()
    found = shlex.shlex(line, posix=True, punctuation_chars="&|>")
    found.whitespace_split = True
    found.commenters = ""
    for word in found:
        if word in ("|", "&&", ">"):
            yield operator, words
            operator, words = word, []
        else:
            words.append(word)
    yield operator, words


def done(words: list[str], piped: str | None) -> str | None:
    """Run one command and return what it printed, None if it was parsed only. Those of other tools do as much as the
    examples need."""
    match words:
        case ["kubectl", "apply", *_] | ["kubectl", "pumice", *_] | ["kubectl", *_, "&"]:
            return None
        case ["pumice", name, *rest] if name in PARSED_ONLY or any(ELSEWHERE.match(word) for word in rest):
            command = main.get_command(ROOT_CONTEXT, name)
            assert command is not None
            command.make_context(name, rest, parent=ROOT_CONTEXT).close()
            return None
        case ["pumice", *rest]:
            found = run(*smaller(rest), stdin=piped)
            assert found.code == 0 or (words[1], found.code) == ("whatif", 1), found.err  # 1: a decision differs
            return found.out
        case ["kubectl", *_, "--", "pumice", name, level]:
            return done(["pumice", name, level], piped)
        case [".venv/bin/python", "-c", program]:
            exec(program, {})
            return None
        case ["kubectl", "get", "cm", *_]:
            return yaml.safe_dump({"kind": "ConfigMap", "data": {"volcano-scheduler.conf": CONF}})
        case ["kubectl", "get", *_]:
            return json.dumps({"apiVersion": "v1", "kind": "List", "items": cluster()})
        case ["zcat", name]:
            return gzip.decompress(Path(name).read_bytes()).decode()
        case ["jq", *_, path]:
            if piped is None:
                return None
            value = json.loads(piped)
            for key in re.findall(r"\.(\w+)", path.partition("[")[0]):
                value = value[key]
            return json.dumps(value)
        case _:
            raise AssertionError(f"no such tool here: {words}")


def smaller(words: list[str]) -> list[str]:
    """Return the words with fewer seeds and the like, of ``pumice bench`` fewer nodes, and one worker where several
    would each import everything for a run that takes less than that."""
    after = SMALLER_AFTER | ({"--nodes": "20"} if words[0] == "bench" else {})
    pairs = zip(["", *words], words, strict=False)
    found = [after.get(before, SMALLER.get(word, word)) for before, word in pairs]
    given = set(words)
    if words[0] == "compare" and not {"--repeats", "--blocks"} & given:
        found += ["--repeats", SMALLER_AFTER["--repeats"]]
    if words[0] in HAS_WORKERS and not {"--workers", "--engine", "merge"} & given:
        found += ["--workers", "1"]
    return found
