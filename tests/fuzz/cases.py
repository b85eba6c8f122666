"""One input: how it is made from a seed, and what it does. It is plain JSON, so that it can be kept and cut down."""

from __future__ import annotations

import json
import os
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from click.testing import CliRunner

from pumice.cli.main import main
from pumice.runtime.files.documents import Document, documents
from pumice.runtime.policy.conf import policy_of
from pumice.sim.run import simulate
from pumice.sim.scenes.inputs import read_inputs
from pumice.sim.settings import SimSettings
from pumice.volcano.table import volcano_registry
from tests.fuzz import requests
from tests.fuzz.laws import Input, broken
from tests.fuzz.mutate import mutated, smudged, written
from tests.fuzz.worlds import CONFS, TRACES, cluster, write_all

Case = dict[str, Any]
#: Of a hundred inputs, how many are of which kind.
SHARES = {"manifests": 45, "simulation": 10, "conf": 10, "trace": 10, "http": 25}
UNFORESEEN = "unexpected error"
_UNTIL_S = 300.0


def kind_of(number: int) -> str:
    """Return the kind of the input of this number. Kinds alternate, so that any run of them has all."""
    place = number * 37 % 100
    for kind, share in SHARES.items():
        if place < share:
            return kind
        place -= share
    raise AssertionError(number)


def make(seed: int, number: int) -> Case:
    """The input of this number. The same for the same seed, on every machine."""
    kind = kind_of(number)
    return {"kind": kind, **_MAKERS[kind](Random(f"{seed} {number}"))}


def run(case: Case) -> list[str]:
    """Every law that the input breaks; a fault of the program is one."""
    try:
        return list(_RUNNERS[case["kind"]](case))
    except AssertionError as error:
        return [f"a law of the simulation, or an assertion: {_in_one_line(error)}"]
    except Exception as error:
        return [f"a fault: {_in_one_line(error)}"]


def _in_one_line(error: BaseException) -> str:
    """With the last places of our own that it came through."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "pumice" in f.filename][-3:]
    where = " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames))
    return f"{type(error).__name__}: {str(error)[:300]} ({where})"


# -- making


def _make_manifests(dice: Random) -> Case:
    objects = mutated(dice, cluster(dice), dice.choice((0, 1, 1, 2, 3, 5, 8)))
    parts = [written(obj) for obj in objects] if isinstance(objects, list) else [written(objects)]
    if dice.random() < 0.1:
        parts = [written({"apiVersion": "v1", "kind": "List", "items": objects})]
    text = "\n---\n".join(parts)
    if dice.random() < 0.15:
        text = smudged(dice, text, dice.randint(1, 4))
    name = "a.json" if len(parts) == 1 and dice.random() < 0.5 else "a.yaml"
    return {"files": {name: text}, "conf": dice.choice(sorted(CONFS))}


def _make_simulation(dice: Random) -> Case:
    """Nothing runs at first: what is wrong with where it runs would be the input's fault, not the simulation's."""
    objects = mutated(dice, cluster(dice, running=False), dice.choice((0, 1, 1, 2, 3, 5, 8)))
    text = "\n---\n".join(written(obj) for obj in objects if '"nodeName"' not in written(obj))
    return {"files": {"a.yaml": text}, "conf": dice.choice(sorted(CONFS))}


def _make_conf(dice: Random) -> Case:
    import yaml

    conf = yaml.safe_load(dice.choice(sorted(CONFS.values())))
    for tier in conf["tiers"]:
        for plugin in tier["plugins"]:
            if dice.random() < 0.3:
                plugin["arguments"] = {dice.choice(_ARGUMENTS): dice.choice((1, 2.5, "1", True, -3, 10**7))}
    text = written(mutated(dice, conf, dice.choice((0, 1, 1, 2, 4))))
    if dice.random() < 0.3:
        text = smudged(dice, text, dice.randint(1, 3))
    parts = "\n---\n".join(written(obj) for obj in cluster(dice))
    return {"files": {"conf": text, "a.yaml": parts}}


_ARGUMENTS = (
    *("binpack.weight", "binpack.cpu", "binpack.memory", "binpack.resources.nvidia.com/gpu", "overcommit-factor"),
    *("leastrequested.weight", "mostrequested.weight", "nodeaffinity.weight", "podaffinity.weight", "sla-waiting-time"),
    *(
        "weight",
        "hypernode.binpack.cpu",
        "predicate.NodePortsEnable",
        "predicate.PodAffinityEnable",
        "reservedResource",
    ),
)


def _make_trace(dice: Random) -> Case:
    kind = dice.choice(sorted(TRACES))
    name, text, beside = TRACES[kind]
    rows = text.splitlines(keepends=True)
    for _ in range(dice.randint(0, 3)):
        row = dice.randrange(len(rows))
        rows[row] = smudged(dice, rows[row], dice.randint(1, 3))
    files = {name: "".join(rows), **beside}
    if beside and dice.random() < 0.4:
        other = dice.choice(sorted(beside))
        files[other] = smudged(dice, files[other], dice.randint(1, 3))
    source = f"{kind}:{name}" if dice.random() < 0.7 else name
    return {"files": files, "source": source}


_MAKERS: dict[str, Callable[[Random], Case]] = {
    "manifests": _make_manifests,
    "simulation": _make_simulation,
    "conf": _make_conf,
    "trace": _make_trace,
    "http": requests.make,
}


# -- running


def _run_manifests(case: Case) -> Iterator[str]:
    with _folder(case["files"] | {"conf": CONFS[case["conf"]]}) as folder:
        yield from _command("schedule", *_inputs(case), "--conf", "conf", "--json", laws_on=folder)


def _run_conf(case: Case) -> Iterator[str]:
    with _folder(case["files"]) as folder:
        yield from _command("check-conf", "conf")
        yield from _command("schedule", "a.yaml", "--conf", "conf", "--json", laws_on=folder, whole=False)


def _run_trace(case: Case) -> Iterator[str]:
    with _folder(case["files"]):
        how = ("--nodes", "4x4gpu", "--until", f"{_UNTIL_S}s", "--json")
        yield from _command("simulate", case["source"], *how)


def _run_simulation(case: Case) -> Iterator[str]:
    with _folder(case["files"]):
        found = read_inputs(_inputs(case))
        yield from (str(problem) for problem in found.scene.problems if UNFORESEEN in problem.what)
        policy = policy_of(CONFS[case["conf"]], volcano_registry())
        simulate(found.scene, policy, SimSettings(start=found.newest, until=_UNTIL_S, check_laws=True))


def _inputs(case: Case) -> list[str]:
    return sorted(name for name in case["files"] if name != "conf")


def _command(*words: str, laws_on: str = "", whole: bool = True) -> Iterator[str]:
    """A command in this process.

    ``laws_on``: the folder by whose objects its answer is judged; ``whole``: by all laws.
    """
    reports = CliRunner().invoke(main, list(words), env={"PUMICE_DEBUG": "1"})
    if not isinstance(reports.exception, SystemExit | None):
        yield f"{words[0]}: a fault: {_in_one_line(reports.exception)}"
        return
    if reports.exit_code not in (0, 1, 2):
        yield f"{words[0]}: exit code {reports.exit_code}"
    for sign in ("Traceback", "internal error", UNFORESEEN):
        if sign in reports.output:
            line = next(line for line in reports.output.splitlines() if sign in line)
            yield f"{words[0]}: {line[:400]}"
    if any(not line.isprintable() for line in reports.output.split("\n")):
        yield f"{words[0]}: a character that is no text reaches the terminal"
    if "--json" not in words or reports.exit_code == 2:
        return
    answer = json.loads(reports.stdout)
    failed = any(problem["severity"] == "error" for problem in answer["problems"])
    if failed != (reports.exit_code == 1):
        yield f"{words[0]}: exit code {reports.exit_code} with{'' if failed else 'out'} errors"
    if laws_on:
        found = list(broken(Input(_objects(Path(laws_on))), answer["binds"], answer["evicts"]))
        yield from found if whole else [text for text in found if text.startswith("node ")]


def _objects(folder: Path) -> Iterator[Any]:
    for path in sorted(folder.glob("a.*")):
        for document in documents(path):
            if isinstance(document, Document):
                yield from _items(document.obj)


def _items(obj: Any) -> Iterator[Any]:
    if isinstance(obj, dict) and str(obj.get("kind", "")).endswith("List") and isinstance(obj.get("items"), list):
        for item in obj["items"]:
            yield from _items(item)
    elif isinstance(obj, dict):
        yield obj


class _folder:
    """A folder with these files, which is the current one while it is used."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files

    def __enter__(self) -> str:
        self._made = tempfile.TemporaryDirectory(prefix="pumice-fuzz-")
        self._before = Path.cwd()
        write_all(Path(self._made.name), self._files)
        os.chdir(self._made.name)
        return self._made.name

    def __exit__(self, *_: object) -> None:
        os.chdir(self._before)
        self._made.cleanup()


_RUNNERS: dict[str, Callable[[Case], Iterator[str]]] = {
    "manifests": _run_manifests,
    "simulation": _run_simulation,
    "conf": _run_conf,
    "trace": _run_trace,
    "http": requests.run,
}
