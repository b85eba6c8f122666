"""``python -m bench.answers``: CPU seconds of questions about a cluster of 1,000 nodes and 5,000 pods that run.

Gangs that wait for different reasons are asked about one after the other: why each waits, and with ways out. The store
is filled and the cycle on things as they are is run once before, as for all questions about one snapshot; what that
costs is a line of its own. Then one overview over many waiting gangs, and changes that are tried. ``--language kai``
asks the same under the default plugins of KAI, of the same cluster in its objects.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from pumice.answers import edits
from pumice.answers.all_waiting import TRIALS_MAX, overview
from pumice.answers.explanation import explain
from pumice.answers.world import REASON_TRIALS_MAX, Draft, Trials, World
from pumice.framework.plugin.policy_file import Policy
from pumice.kai.table import DEFAULT_PLUGINS
from pumice.model.events import Object
from pumice.model.node import Taint
from pumice.model.pod import Pod
from pumice.model.queue import Queue, QueueSharing, Quota
from pumice.model.resources import Resource
from pumice.model.workloads.gang import Gang
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.memory import old_objects_left_alone
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.testing.build import node, podgroup, pods, queue
from pumice.volcano.table import DEFAULT_CONF

NODES, RUNNING, GANG = 1_000, 5_000, 10
_NAMESPACE = "ns"


def cluster() -> list[Object]:
    """Return nodes of 8 GPUs, some of them tainted, five pods of one GPU on each, and queues."""
    found: list[Object] = [queue("default"), queue("limited")]
    found[1] = replace(queue("limited"), capability=Resource(milli_cpu=4_000.0, scalars={"nvidia.com/gpu": 4_000.0}))
    for index in range(NODES):
        each = node(f"n{index:04}", cpu=16, gpu=8)
        found.append(replace(each, taints=(Taint("dedicated", "x", "NoSchedule"),)) if index % 10 == 0 else each)
    for index in range(RUNNING // GANG):
        found.append(podgroup(f"r{index:04}", GANG, phase="Running"))
        places = [f"n{(index * GANG + each) % NODES:04}" for each in range(GANG)]
        found += [
            replace(pod, node_name=place, phase="Running")
            for pod, place in zip(pods(f"r{index:04}", GANG, cpu=1, gpu=1), places, strict=True)
        ]
    return found


#: Why the gangs wait, by their number.
KINDS = (
    "a limit of the queue",
    "a pod larger than each node",
    "1,000 pods, more GPUs than there are",
    "no node with 7 or 8 GPUs free",
)


def gang(name: str, number: int) -> list[Object]:
    """Return a gang that waits, for a reason that depends on the number."""
    kind = number % 4
    if kind == 0:  # a limit of its queue
        return [podgroup(name, 8, queue="limited"), *pods(name, 8, cpu=1, gpu=1)]
    if kind == 1:  # no node is so large
        return [podgroup(name, 4), *pods(name, 4, cpu=20 + number, gpu=1)]
    if kind == 2:  # too many GPUs in all
        return [podgroup(name, 1_000), *pods(name, 1_000, cpu=1, gpu=4)]
    return [podgroup(name, 8), *pods(name, 8, cpu=1, gpu=7 + number % 2)]  # no node has so many GPUs free


def cpu_of(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def spread_of(seconds: Sequence[float]) -> dict[str, float]:
    """Return median and p99 in milliseconds; of fewer than 100 values the p99 is the largest."""
    ordered = sorted(seconds)
    return {
        "p50_ms": round(1000 * ordered[len(ordered) // 2], 1),
        "p99_ms": round(1000 * ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))], 1),
    }


_FREE = Quota(None, None, 1.0)
_LIMITED = QueueSharing(Quota(4_000.0, 4_000.0), _FREE, Quota(4_000.0, 4_000.0))


def in_kai(objects: Sequence[Object]) -> list[Object]:
    """Return a cluster as KAI's objects say it."""
    found: list[Object] = []
    for obj in objects:
        if isinstance(obj, Queue):
            sharing = _LIMITED if obj.capability is not None else QueueSharing(_FREE, _FREE, _FREE)
            found.append(replace(obj, capability=None, sharing=sharing))
        else:
            found.append(replace(obj, gang=Gang()) if isinstance(obj, PodGroup) else obj)
    return found


class Language(Struct, frozen=True):
    """A policy, and what makes objects of its language of Volcano's."""

    policy: Policy
    scheduler: str
    said: Callable[[Sequence[Object]], list[Object]]


def language(name: str) -> Language:
    if name == "kai":
        plugins = ", ".join(f"{{name: {each}}}" for each in DEFAULT_PLUGINS)
        policy = policy_of(f"dialect: kai\ntiers:\n- plugins: [{plugins}]\n", builtin_registry())
        return Language(policy, policy.dialect.scheduler, in_kai)
    return Language(policy_of(DEFAULT_CONF, builtin_registry()), "volcano", list)


def measure(gangs: int, waiting: int, under: Language) -> dict[str, Any]:
    base = cluster()
    begins, reasons, ways, whatifs = [], [], [], []
    for number in range(gangs):
        world = world_of([*base, *gang("ask", number)], under)
        with old_objects_left_alone():
            trials = Trials(world, REASON_TRIALS_MAX)
            begins.append(cpu_of(lambda: trials.base))  # noqa: B023  # called at once
            reasons.append(cpu_of(lambda: explain(world, f"{_NAMESPACE}/ask", ways=False, trials=trials)))  # noqa: B023
            ways.append(cpu_of(lambda: explain(world, f"{_NAMESPACE}/ask", ways=True, trials=trials)))  # noqa: B023
            whatifs.append(cpu_of(lambda: _whatif(trials)))  # noqa: B023
    return {
        "nodes": NODES,
        "pods": RUNNING,
        "gangs": gangs,
        "cycle": spread_of(begins),
        "reason": spread_of(reasons),
        "with_ways_out": spread_of(ways),
        "by_kind": {
            kind: {"reason": spread_of(reasons[at::4]), "with_ways_out": spread_of(ways[at::4])}
            for at, kind in enumerate(KINDS)
        },
        "change": spread_of(whatifs),
        "all": _all(under, base, waiting),
    }


def world_of(objects: Sequence[Object], under: Language) -> World:
    asked = [replace(obj, scheduler_name=under.scheduler) if isinstance(obj, Pod) else obj for obj in objects]
    return World(under.said(asked), under.policy, 0.0, (under.scheduler,))


def _whatif(trials: Trials) -> None:
    draft = Draft(trials.world)
    edits.add_nodes(draft, "4xn0001")
    trials.run(draft)


def _all(under: Language, base: list[Object], waiting: int) -> dict[str, float]:
    objects = [*base]
    for number in range(waiting):
        objects += gang(f"w{number:04}", 4 * number + (0, 1, 3)[number % 3])
    world = world_of(objects, under)
    with old_objects_left_alone():
        trials = Trials(world, TRIALS_MAX)
        cycle = cpu_of(lambda: trials.base)
        reasons = cpu_of(lambda: overview(trials))
    return {"waiting": waiting, "cycle_s": round(cycle, 3), "overview_s": round(reasons, 3)}


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m bench.answers", description=__doc__)
    parser.add_argument("--gangs", type=int, default=40, help="that are asked about (default %(default)s)")
    parser.add_argument("--waiting", type=int, default=1_000, help="gangs of the overview (default %(default)s)")
    parser.add_argument("--language", choices=("volcano", "kai"), default="volcano", help="default %(default)s")
    options = parser.parse_args(words)
    print(json.dumps(measure(options.gangs, options.waiting, language(options.language)), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
