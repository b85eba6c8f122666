"""The same input gives the same decisions: on every run, under every hash seed, in whatever order manifests come."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pumice.runtime.one_cycle import schedule_once
from pumice.runtime.policy.conf import policy_of
from pumice.sim.run import simulate
from pumice.sim.scenes.inputs import read_inputs
from pumice.sim.settings import SimSettings
from pumice.volcano.table import volcano_registry
from tests.simulation.scenes import POLICIES, SCENES, raw_objects

#: Runs of one input in `make test`, and in `make test-long`.
RUNS = [5, pytest.param(20, marks=pytest.mark.long)]
Raws = Sequence[dict[str, Any]]
Outcomes = tuple[str, str, dict[str, str], list[tuple[str, str]]]
POLICY = policy_of(POLICIES["topology"], volcano_registry())


def objects(seed: int = 7) -> Raws:
    """Nodes, a queue and Volcano Jobs; and, so that one cycle has something to choose, PodGroups with their pods."""
    rng = np.random.default_rng(seed)
    return [*raw_objects(rng), *(obj for g in range(6) for obj in _gang(f"gang-{g}", size=2 + g % 3))]


def _gang(name: str, size: int) -> list[dict[str, Any]]:
    api = "scheduling.volcano.sh/v1beta1"
    group = {"apiVersion": api, "kind": "PodGroup", "metadata": {"name": name, "uid": name}}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-{i}", "annotations": {"scheduling.k8s.io/group-name": name}},
            "spec": {"schedulerName": "volcano", "containers": [{"resources": {"requests": {"cpu": "1500m"}}}]},
        }
        for i in range(size)
    ]
    return [group | {"spec": {"queue": "left", "minMember": size}}, *pods]


def one_file(folder: Path, raws: Raws) -> None:
    (folder / "all.yaml").write_text("\n---\n".join(json.dumps(raw) for raw in raws))


def backwards(folder: Path, raws: Raws) -> None:
    one_file(folder, raws[::-1])


def a_list(folder: Path, raws: Raws) -> None:
    items = [raws[i] for i in np.random.default_rng(1).permutation(len(raws))]
    (folder / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def a_file_each(folder: Path, raws: Raws) -> None:
    for i, place in enumerate(np.random.default_rng(2).permutation(len(raws)).tolist()):
        below = folder / f"part-{place % 5}"
        below.mkdir(exist_ok=True)
        (below / f"{place:03d}.yaml").write_text(json.dumps(raws[i]))


def keys_turned(folder: Path, raws: Raws) -> None:
    one_file(folder, [dict(reversed(raw.items())) for raw in raws])


ORDERS: list[Callable[[Path, Raws], None]] = [backwards, a_list, a_file_each, keys_turned]


def outcomes(folder: Path) -> Outcomes:
    """Both digests, every bind of one cycle, and every wait of it."""
    scene = read_inputs([str(folder)]).scene
    ran = simulate(scene, POLICY)
    there = [
        *scene.objects,
        *(obj for work in scene.works for part in [work.expand(0.0)] for obj in (part[0], *part[1])),
    ]
    answer = schedule_once(there, POLICY, 0.0)
    return ran.digest, answer.digest, answer.binds, sorted(answer.unscheduled.items())


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Return the outcomes of one file in the order in which the objects are made."""
    folder = tmp_path_factory.mktemp("plain")
    one_file(folder, objects())
    return outcomes(folder)


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.__name__)
def test_the_order_of_manifests_does_not_matter(
    order: Callable[[Path, Raws], None], plain: Outcomes, tmp_path: Path
) -> None:
    order(tmp_path, objects())
    assert outcomes(tmp_path) == plain
    assert len(plain[2]) > 20


def test_the_order_of_paths_does_not_matter(tmp_path: Path) -> None:
    raws = objects()
    for name, part in (("a.yaml", raws[:9]), ("b.yaml", raws[9:30]), ("c.yaml", raws[30:])):
        (tmp_path / name).write_text("\n---\n".join(json.dumps(raw) for raw in part))
    paths = [str(tmp_path / name) for name in ("a.yaml", "b.yaml", "c.yaml")]
    digests = {
        simulate(read_inputs(order).scene, POLICY).digest for order in (paths, paths[::-1], paths[1:] + paths[:1])
    }
    assert len(digests) == 1


@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize("scene", SCENES)
def test_many_runs_are_one(scene: str, runs: int) -> None:
    made = SCENES[scene](np.random.default_rng(11))
    assert len({simulate(made, POLICY, SimSettings(until=120.0)).digest for _ in range(runs)}) == 1


def test_other_input_gives_another_digest(tmp_path: Path) -> None:
    digests = set()
    for seed in (7, 8):
        folder = tmp_path / str(seed)
        folder.mkdir()
        one_file(folder, objects(seed))
        digests.add(outcomes(folder)[:2])
    assert len({one for one, _ in digests}) == len({two for _, two in digests}) == 2


#: One process runs all commands: its imports are most of what it costs.
IN_TURN = """
import json, sys
from pumice.cli.main import main
for command in json.loads(sys.argv[1]):
    main(command, standalone_mode=False)
"""


def pumice(hash_seed: int, *commands: Sequence[str]) -> list[dict[str, Any]]:
    """What each command prints with ``--json``, less what the machine decides."""
    command = [sys.executable, "-c", IN_TURN, json.dumps([[*words, "--json"] for words in commands])]
    env = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=120)
    found: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    for each in found:
        each.pop("wall_s", None)
    return found


@pytest.mark.slow
def test_commands_say_the_same_under_every_hash_seed(tmp_path: Path) -> None:
    one_file(tmp_path, objects())
    folder = str(tmp_path)
    simulate = ["simulate", folder, "--faults", "refused=5%,node-gone=200s"]
    first, *others = [pumice(seed, simulate, ["schedule", folder]) for seed in (0, 1, 4_294_967_295)]
    assert all(each["digest"] for each in first) and len(first) == 2
    assert others == [first] * 2
