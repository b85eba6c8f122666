"""Workloads on which mechanisms are measured: one cycle and those after it, a simulation, or a large moving cluster."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from bench.mechanisms.moving import Moving
from pumice.kai.table import DEFAULT_CONF as KAI

ROOT = Path(__file__).resolve().parents[2]
TRACES = Path(os.environ.get("PUMICE_SHARED") or ROOT.parent / "shared") / "traces"
_CROWDED = ("--nodes", "10:cpu=32,memory=256Gi,nvidia.com/gpu=4")


class Workload(Struct, frozen=True):
    """``arguments`` of pumice, without ``--json``. ``conf``: the policy, "" for the command's own. ``idle``:
    instead, so many nodes on which nothing changes (``bench.mechanisms.idle``), while ``waiting`` jobs wait.
    ``moving``: instead, a large cluster that changes before each cycle."""

    arguments: tuple[str, ...] = ()
    conf: str = ""
    idle: int = 0
    waiting: int = 0
    moving: Moving | None = None


def _bench(scenario: str, nodes: int, pods: int, gang: int, *more: str) -> Workload:
    sizes = ("--nodes", str(nodes), "--pods", str(pods), "--gang", str(gang))
    return Workload(("bench", "--scenario", scenario, *sizes, *more))


def _volcano(*plugins: str, actions: str = "enqueue, allocate, backfill") -> str:
    """Volcano's default policy and some plugins; ``capacity`` takes the place of ``proportion``."""
    share = [] if "capacity" in plugins else ["proportion"]
    second = ("overcommit", "drf", "predicates", *share, "nodeorder", *plugins)
    tiers = (("priority", "gang", "conformance"), second)
    lines = [f'actions: "{actions}"', "tiers:"]
    for tier in tiers:
        lines += ["- plugins:", *(f"  - name: {name}" for name in tier)]
    return "\n".join((*lines, ""))


def _demo(conf: str) -> Workload:
    return Workload(("simulate", "examples/demo", "--period", "30s"), conf)


def _philly(days: int, conf: str = "") -> Workload:
    return Workload(("simulate", str(TRACES / "philly-gavel"), "--until", f"{24 * days}h", *_CROWDED), conf)


def _tree(*plugins: str) -> str:
    """``capacity`` with a tree of queues."""
    return _volcano("capacity", *plugins).replace("name: capacity", "name: capacity\n    enableHierarchy: true")


_EVICTING = "enqueue, allocate, preempt, reclaim, backfill"
_PLUGINS = ("cdp", "pdb", "tdm", "sla", "numa-aware", "usage")
_MANY = _volcano(*_PLUGINS)

WORKLOADS = {
    "idle 1k": Workload(idle=1_000),
    "idle 10k": Workload(idle=10_000),
    "idle 1k, 100 wait": Workload(idle=1_000, waiting=100),
    "idle 10k, 100 wait": Workload(idle=10_000, waiting=100),
    "idle 1k, cdp": Workload(idle=1_000, waiting=100, conf=_volcano("cdp")),
    "idle 10k, cdp": Workload(idle=10_000, waiting=100, conf=_volcano("cdp")),
    "gang": _bench("gang", 300, 3000, 10),
    "gang, 2k nodes": _bench("gang", 2000, 4000, 4),
    "topo": _bench("topo", 200, 600, 20),
    "topo, tier 1": _bench("topo", 300, 900, 20, "--tier", "1"),
    "unique": _bench("unique", 200, 800, 10),
    "affinity": _bench("affinity", 200, 1000, 10),
    "spread": _bench("spread", 200, 1000, 10),
    "hopeless": _bench("hopeless", 200, 600, 10),
    "preempt": _bench("preempt", 300, 200, 10),
    "reclaim": _bench("reclaim", 300, 200, 10),
    "gangreclaim": _bench("gangreclaim", 200, 256, 64, "--tier", "2"),
    "starving": _bench("starving", 200, 5000, 10),
    "tree": _bench("tree", 200, 2000, 10, "--queues", "100"),
    "claims": _bench("hostile-claims", 200, 40, 1),
    "kai-alloc": _bench("kai-alloc", 300, 2400, 8),
    "kai-alloc, small": _bench("kai-alloc", 60, 240, 4),
    "kai-reclaim": _bench("kai-reclaim", 200, 200, 1),
    "kai-preempt": _bench("kai-preempt", 200, 200, 1),
    "kai-full": _bench("kai-full", 200, 1600, 1),
    "kai-unschedulable": _bench("kai-unschedulable", 200, 1600, 1),
    "kai-topologies": _bench("kai-hostile-topology", 200, 240, 1),
    "kai-tries": _bench("kai-hostile-tries", 200, 120, 1),
    "kai-queues": _bench("kai-hostile-queues", 200, 400, 1),
    "kai-groups": _bench("kai-hostile-groups", 200, 600, 1),
    "kai-victims": _bench("kai-hostile-victims", 200, 180, 1),
    "kai-claims": _bench("kai-hostile-claims", 200, 40, 1),
    "moving": Workload(conf=_volcano(), moving=Moving(cycles=40)),
    "moving, waiting": Workload(conf=_volcano(), moving=Moving(cycles=20, queues=500, waiting=5_000)),
    "moving, tree": Workload(conf=_tree(), moving=Moving(queues=1_000, waiting=200, cycles=15, tree=True)),
    "moving, full": Workload(conf=_volcano(actions=_EVICTING), moving=Moving(cycles=10, full=True)),
    "moving, reports": Workload(
        conf=_volcano(*_PLUGINS, actions=_EVICTING), moving=Moving(cycles=8, full=True, reports=True)
    ),
    "reports": Workload(conf=_volcano(*_PLUGINS, actions=_EVICTING), moving=Moving(cycles=15, reports=True)),
    "moving, pumice": Workload(conf="dialect: pumice\n", moving=Moving(cycles=20, shares=True)),
    "moving 2k, pumice": Workload(
        conf="dialect: pumice\n", moving=Moving(2_000, queues=30, waiting=100, cycles=20, shares=True)
    ),
    "moving, KAI": Workload(conf=KAI, moving=Moving(queues=100, cycles=3)),
    "moving, shares, KAI": Workload(conf=KAI, moving=Moving(queues=20, cycles=3, shares=True)),
    "full, KAI": Workload(conf=KAI, moving=Moving(queues=100, cycles=3, full=True)),
    "full, shares, KAI": Workload(conf=KAI, moving=Moving(queues=20, cycles=3, full=True, shares=True)),
    "preempt 1k": _bench("preempt", 1000, 500, 10),
    "starving 1k": _bench("starving", 1000, 50000, 10),
    "tree 1k": _bench("tree", 1000, 10000, 10, "--queues", "1000"),
    "demo": Workload(("simulate", "examples/demo")),
    "demo, many plugins": _demo(_MANY),
    "demo, capacity": _demo(_volcano("capacity")),
    "demo, evictions": _demo(_volcano(actions=_EVICTING)),
    "demo, pumice": _demo("dialect: pumice\n"),
    "philly 2d": _philly(2),
    "philly 1d, many plugins": _philly(1, _MANY),
    "philly 1d, capacity": _philly(1, _volcano("capacity")),
    "philly 1d, evictions": _philly(1, _volcano(actions=_EVICTING)),
    "philly 1d, pumice": _philly(1, "dialect: pumice\n"),
}


def is_there(name: str) -> bool:
    """Return True if the input of a workload exists: the traces are not part of the repository."""
    return all(Path(each).exists() for each in WORKLOADS[name].arguments if each.startswith(str(TRACES)))
