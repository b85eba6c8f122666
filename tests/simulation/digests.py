"""Digests of decisions that a change must leave as they are: ``python -m tests.simulation.digests`` compares them.

The demo and two examples that evict, every scenario of ``pumice bench`` at small size, and three days of two traces.
With ``--write`` the table is written anew; that is right only for a change that means to decide otherwise, and its
commit says why.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("digests.json")
TRACES = Path(os.environ.get("PUMICE_SHARED") or ROOT.parent / "shared") / "traces"

_SMALL = ("--nodes", "60", "--pods", "240", "--gang", "4")
_LARGE_GANGS = ("--nodes", "60", "--pods", "240", "--gang", "40")  # with gangs of 4, affinity decides as equal does
_SCENARIOS = {
    **dict.fromkeys(("gang", "topo", "preempt", "reclaim", "gangreclaim", "starving"), _SMALL),
    **dict.fromkeys(("equal", "unique", "anti", "affinity", "spread", "preferred", "hopeless"), _LARGE_GANGS),
    "tree": (*_SMALL, "--queues", "5"),
    **{f"kai-{name}": _SMALL for name in ("alloc", "reclaim", "unschedulable", "preempt", "topology", "full")},
    "kai-consolidate": ("--nodes", "16", "--pods", "64", "--gang", "4"),  # 45 CPU seconds with 60 nodes
    "kai-reclaimbig": ("--nodes", "60", "--pods", "60", "--gang", "60"),
}
#: Name -> the arguments of ``pumice``, whose JSON has the digest of all decisions.
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "demo": ("simulate", "examples/demo", "--json"),
    "demo, with faults": (
        *("simulate", "examples/demo", "--json"),
        *("--faults", "refused=5%,node-gone=1h", "--seed", "1"),
    ),
    "defragment": ("simulate", "examples/defragment", "--json"),
    "kai": ("simulate", "examples/kai", "--conf", "examples/kai/kai.conf", "--json"),
    **{f"bench {name}": ("bench", "--scenario", name, *size, "--json") for name, size in _SCENARIOS.items()},
    "philly-gavel 3d": ("simulate", str(TRACES / "philly-gavel"), "--until", "72h", "--json"),
    "philly-gavel 3d, crowded": (
        *("simulate", str(TRACES / "philly-gavel"), "--until", "72h", "--json"),
        *("--nodes", "10:cpu=32,memory=256Gi,nvidia.com/gpu=4"),
    ),
    "theta_2022 3d": ("simulate", str(TRACES / "theta-alcf" / "theta_2022.swf"), "--until", "72h", "--json"),
}


def is_there(name: str) -> bool:
    """Whether the input of a command is beside the checkout: traces may not be."""
    inputs = [Path(each) for each in COMMANDS[name] if each.startswith(str(TRACES))]
    return all(path.exists() for path in inputs)


def digest_of(name: str) -> str:
    """The digest of a command, run as a whole process. Raises: RuntimeError where the command gives none."""
    command = [str(Path(sys.executable).with_name("pumice")), *COMMANDS[name]]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    try:
        return str(json.loads(ended.stdout)["digest"])
    except (ValueError, KeyError):
        raise RuntimeError(f"{' '.join(command)}: no digest, exit code {ended.returncode}: {ended.stderr}") from None


def main(arguments: list[str]) -> int:
    """0: all digests are those of the table, or it was written; 1: some are others."""
    known: dict[str, str] = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    found, others = dict(known), 0
    for name in COMMANDS:
        if not is_there(name):
            print(f"{name}: left out, its trace is not beside the checkout")
            continue
        found[name] = digest_of(name)
        others += found[name] != known.get(name)
        print(f"{name}: {'as in the table' if found[name] == known.get(name) else found[name]}", flush=True)
    if arguments == ["--write"]:
        TABLE.write_text(json.dumps({name: found[name] for name in COMMANDS if name in found}, indent=2) + "\n")
        return 0
    return int(bool(others))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
