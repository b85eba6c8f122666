"""What is measured: for each figure a command, what its answer must hold, and what each measure is held against.

Volcano's figures are those of its Go scheduler (ed72c7c81, Go 1.26, 2 shared cores, in-memory cache, no API server) on
the same objects, value for value: CPU seconds and peak memory of the cycle's process, medians.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

CYCLE_CPU = "cycle CPU s"  # taking the snapshot and deciding; what `pumice bench` calls cpu_s
PROCESS_CPU = "process CPU s"  # all of it: imports, making the workload, further cycles
PEAK = "peak MB"  # of the whole process
TO_EQUAL = "cycle CPU / equal"  # the same over that of `equal`, run right before and after it
NEXT = "next cycle ms"  # wall time of the second cycle, when what the first decided has come true
QUIET = "idle cycle ms"  # wall time of a cycle with nothing new
OPENS = "open ms"  # wall time until every plugin of the first cycle is open
WALL = "wall s"  # of the whole process


class Measure(Struct, frozen=True):
    """``limit``: what must be reached, None where nothing is promised.

    ``original``: the figure of Volcano or KAI for the same work.
    """

    name: str
    limit: float | None = None
    original: float | None = None


class Figure(Struct, frozen=True):
    """``arguments`` of pumice, which answers a JSON document; the fields of it in ``holds`` must be as given.

    ``runs``: how many, where that is not the caller's choice. ``needs``: a path without which there is no such figure.
    ``equal``: what is run before and after each run, for TO_EQUAL: the machine's speed changes, and cancels out.
    ``within``: CPU seconds after which a run is ended, and the figure failed; None for no limit.
    """

    name: str
    what: str
    arguments: tuple[str, ...]
    measures: tuple[Measure, ...]
    holds: Mapping[str, object] = {}
    runs: int | None = None
    quick: bool = False
    needs: Path | None = None
    equal: Figure | None = None
    within: float | None = None

    @property
    def command(self) -> str:
        return " ".join(("pumice", *self.arguments))


def cycle(
    name: str, what: str, options: str, cpu: Measure, memory: Measure, *more: Measure, quick: bool = False
) -> Figure:
    """One cycle by ``pumice bench``, in which every pod is bound."""
    arguments = ("bench", *options.split(), "--json")
    pods = int(arguments[arguments.index("--pods") + 1])
    return Figure(name, what, arguments, (cpu, memory, Measure(PROCESS_CPU), *more), {"bound": pods}, quick=quick)


def cpu(limit: float | None = None, original: float | None = None) -> Measure:
    return Measure(CYCLE_CPU, limit, original)


def peak(limit: float | None = None, original: float | None = None) -> Measure:
    return Measure(PEAK, limit, original)


def evict(scenario: str, what: str, original: float) -> Figure:
    """One cycle in which every waiting pod has another one evicted, and is promised its place."""
    arguments = ("bench", "--scenario", scenario, *["--nodes", "1000", "--pods", "500", "--gang", "10", "--json"])
    measures = (cpu(0.2, original), peak(None, 320 if scenario == "preempt" else 280), Measure(PROCESS_CPU))
    return Figure(scenario, what, arguments, measures, {"evicted": 500, "pipelined": 500})


def evict_more(name: str, what: str, options: str, pods: int, evicted: int, *measures: Measure) -> Figure:
    """One cycle by ``pumice bench``, in which so many are evicted for so many."""
    arguments = ("bench", *options.split(), "--json")
    return Figure(name, what, arguments, (*measures, Measure(PROCESS_CPU)), {"evicted": evicted, "pipelined": pods})


def hostile(name: str, what: str, pods: int) -> Figure:
    """One cycle on what a tenant created to stop the scheduler."""
    arguments = ("bench", "--scenario", name, *["--nodes", "1000", "--pods", str(pods), "--gang", "1", "--json"])
    measures = (cpu(2.0), peak(500.0), Measure(PROCESS_CPU), Measure(NEXT, 2000.0))
    return Figure(name, what, arguments, measures, runs=2, within=_HOSTILE_WITHIN)


def kai(name: str, what: str, nodes: int, pods: int, gang: int, limit: float | None, original: float | None) -> Figure:
    """One cycle of KAI's actions, beside KAI's figure (v0.13) for the same objects."""
    sizes = ["--nodes", str(nodes), "--pods", str(pods), "--gang", str(gang)]
    arguments = ("bench", "--scenario", f"kai-{name}", *sizes, "--json")
    what = f"in KAI's language, {nodes:,} nodes × {pods:,} pods: {what}"
    return Figure(f"kai-{name}", what, arguments, (cpu(limit, original), peak(), Measure(PROCESS_CPU)))


def diverse(scenario: str, what: str) -> Figure:
    """One cycle on gangs that differ, held against the one on gangs that do not."""
    return replace(cycle(scenario, what, f"--scenario {scenario} {_DIVERSE}", cpu(), peak(), _FOUR_TIMES), equal=EQUAL)


_1K = "--scenario gang --nodes 1000 --pods 10000"
_5K = "--scenario gang --nodes 5000 --pods 50000 --gang 10"
_TOPO = "--scenario topo --nodes 1000 --pods 4000"
_TREE = "--scenario tree --nodes 1000 --pods 10000 --gang 10 --queues 1000"
_DIVERSE = "--nodes 1000 --pods 5000 --gang 10"
_FOUR_TIMES = Measure(TO_EQUAL, 4.0)
_HOSTILE_WITHIN = 30.0  # the cycles after the first are in it
_HOSTILE = (
    ("topology", "150 unlike gangs within a rack or block, which fit in none; pods of others fill the cluster", 1200),
    ("victims", "300 unlike gangs of 3, one pod of each fits on no node; pods of others fill the cluster", 900),
    ("claims", "100 claims, each for more devices that agree in an attribute than a node has", 100),
    ("lists", "300 pods with lists of each kind, as long as they may be and ten times longer", 300),
    ("cel", "100 claims with selectors of their own, over 8,000 devices that differ", 100),
    ("patterns", "100 claims with patterns of their own, as large as they may be and larger, over 8,000 devices", 100),
)
_KAI_HOSTILE = (
    ("tries", "300 gangs over 50 queues, each of two pods that must share a node and do not fit on one", 600),
    ("groups", "5 gangs of 300 sub-groups, each within a node, of which the last does not fit", 3000),
)
_KAI = (
    ("alloc", "gangs of 8 anywhere", 1000, 8000, 8, 0.4, 26.9),
    ("reclaim", "single pods of another queue evict for their share", 1000, 1000, 1, 0.5, 50.9),
    ("reclaimbig", "one gang of 100 of another queue", 1000, 100, 100, 1.0, 132.0),
    ("consolidate", "single pods for which others move", 500, 50, 1, 3.0, 497.0),
    ("unschedulable", "single pods that fit on no node", 500, 4000, 1, 0.1, 17.8),
    ("full", "single pods on full nodes that evict no other", 500, 4000, 1, 1.0, None),
    ("preempt", "single pods of high priority", 500, 500, 1, None, None),
    ("topology", "gangs of 8, each within a rack", 512, 512, 8, None, None),
)
_TRACE = Path("..", "shared", "traces", "philly-gavel")

EQUAL = cycle(
    "equal",
    "1,000 nodes in 8 zones and 50 racks × 5,000 pods in gangs of 10, all equal",
    f"--scenario equal {_DIVERSE}",
    cpu(),
    peak(),
)

FIGURES = (
    cycle(
        "gang-1k",
        "1,000 nodes × 10,000 pods in gangs of 10",
        f"{_1K} --gang 10",
        cpu(0.5, 39.6),
        peak(None, 475),
        quick=True,
    ),
    cycle("gang-1k-10q", "the same in 10 queues", f"{_1K} --gang 10 --queues 10", cpu(None, 39.0), peak(None, 749)),
    cycle("gang-1k-g100", "the same in gangs of 100", f"{_1K} --gang 100", cpu(None, 36.6), peak(None, 444)),
    cycle(
        "gang-1k-binpack", "the same with binpack", f"{_1K} --gang 10 --conf binpack", cpu(None, 43.1), peak(None, 473)
    ),
    cycle(
        "gang-5k",
        "5,000 nodes × 50,000 pods in gangs of 10",
        _5K,
        cpu(3.0, 306),
        peak(400, 2259),
        Measure(QUIET, 5.0, 1400),
    ),
    cycle("gang-5k-10q", "the same in 10 queues", f"{_5K} --queues 10", cpu(3.0, 267), peak(400, 3811), Measure(QUIET)),
    *(
        cycle(
            f"idle-{name}",
            f"{nodes:,} nodes with two pods each, and the cycle in which nothing changes",
            f"--scenario gang --nodes {nodes} --pods {2 * nodes} --gang 10",
            cpu(),
            peak(),
            Measure(QUIET, 0.5),
        )
        for name, nodes in (("1k", 1_000), ("10k", 10_000))
    ),
    cycle(
        "topo-1",
        "1,000 nodes in three tiers, 4,000 pods in gangs of 20, each gang within one HyperNode of tier 1",
        f"{_TOPO} --gang 20 --tier 1",
        cpu(2.0, 106),
        peak(None, 255),
        quick=True,
    ),
    cycle("topo-2", "the same within tier 2", f"{_TOPO} --gang 20 --tier 2", cpu(None, 103), peak(None, 257)),
    cycle("topo-mixed", "the same within tiers 1, 2, 3 in turn", f"{_TOPO} --gang 20", cpu(None, 118), peak(None, 258)),
    cycle(
        "topo-g160",
        "the same in gangs of 160 within tier 2",
        f"{_TOPO} --gang 160 --tier 2",
        cpu(None, 60),
        peak(None, 236),
    ),
    evict(
        "preempt", "1,000 full nodes, 8,000 pods of low priority, 50 gangs of 10 of high priority in their queue", 1.75
    ),
    evict("reclaim", "the same, the gangs in another queue", 0.84),
    evict_more(
        "preempt-10k",
        "the same with 10,000 nodes, 80,000 pods, and 500 gangs",
        "--scenario preempt --nodes 10000 --pods 5000 --gang 10",
        5000,
        5000,
        cpu(4.0),
        peak(600),
    ),
    evict_more(
        "gangreclaim",
        "1,000 full nodes in three tiers, 20 gangs of 64 from another queue, each within one HyperNode of tier 2",
        "--scenario gangreclaim --nodes 1000 --pods 1280 --gang 64 --tier 2",
        1280,
        1281,
        cpu(1.0),
        peak(),
    ),
    evict_more(
        "starving",
        "1,000 full nodes, 5,000 gangs of 10 that are admitted and for which no pod may be evicted",
        "--scenario starving --nodes 1000 --pods 50000 --gang 10",
        0,
        0,
        cpu(),
        peak(),
        Measure(NEXT),
        Measure(QUIET, 100.0),
    ),
    Figure(
        "queue-tree",
        "1,000 queues in a tree of 6 levels, under capacity; 1,000 nodes × 10,000 pods in gangs of 10 in the leaves",
        ("bench", *_TREE.split(), "--json"),
        (cpu(), peak(), Measure(OPENS, 20.0), Measure(PROCESS_CPU)),
        {"bound": 8000},
    ),
    EQUAL,
    diverse("unique", "the same, each pod with requests of its own"),
    diverse("anti", "the same, no two pods of a gang on one node"),
    diverse("affinity", "the same, each gang within one rack"),
    diverse("spread", "the same, each gang even over the zones"),
    diverse("preferred", "the same, each pod rather in a zone with pods of its app"),
    Figure(
        "hopeless",
        "the same, each pod with requests of its own that no node can hold: none is bound",
        ("bench", "--scenario", "hopeless", *_DIVERSE.split(), "--json"),
        (cpu(), peak(), Measure(PROCESS_CPU), Measure(NEXT, 20.0), Measure(QUIET, 20.0)),
        {"bound": 0},
    ),
    Figure(
        "demo",
        "the example cluster, simulated; 20 runs, one digest",
        ("simulate", "examples/demo", "--json"),
        (Measure(WALL), Measure(PEAK)),
        {"jobs": 25, "completed": 24, "pending": 1},
        runs=20,
    ),
    Figure(
        "philly-gavel",
        "a trace of 15 virtual clusters as 15 queues, 15,264 jobs over 131 days, on 125 nodes of 4 GPUs",
        ("simulate", _TRACE.as_posix(), "--nodes", "125x4gpu", "--json"),
        (Measure(WALL, 120.0), Measure(PROCESS_CPU), Measure(PEAK)),
        {"jobs": 15264, "completed": 15264, "pending": 0},
        runs=2,
        needs=_TRACE,
    ),
    *(kai(name, what, *sizes) for name, what, *sizes in _KAI),
    *(hostile(f"hostile-{name}", what, pods) for name, what, pods in _HOSTILE),
    *(
        hostile(f"kai-hostile-{name}", f"in KAI's language: {what}", pods)
        for name, what, pods in _HOSTILE + _KAI_HOSTILE
    ),
)
