"""With ``sparesUnneeded`` no victim leaves that could have stayed, against a plain model of one node."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
from msgspec.structs import replace

from pumice.model.events import Object
from pumice.model.pod import HostPort, Pod
from pumice.model.resources import Resource
from pumice.testing.build import cluster, node, pod, podgroup, queue, run
from tests.plain_models import MANY_WORLDS
from tests.unit.volcano.evicting import LEVELS, PREEMPT, RECLAIM, gang

CONFS = {
    "preempt": PREEMPT.replace(", {name: nodeorder}", "")
    + "configurations: [{name: preempt, arguments: {sparesUnneeded: SPARES}}]\n",
    "reclaim": RECLAIM + "configurations: [{name: reclaim, arguments: {sparesUnneeded: SPARES}}]\n",
}
PORT = (HostPort(80),)


def world(dice: Random) -> list[Object]:
    """Make a full node of pods of different sizes, of which one may hold a port or the GPUs, and a pod that waits."""
    found: list[Object] = [*LEVELS, queue("rich"), queue("poor", 50)]
    sizes = [dice.randint(1, 3) for _ in range(dice.randint(2, 6))]
    gpus = [dice.choice((0, 0, 1)) for _ in sizes]
    holder = dice.choice((None, dice.randrange(len(sizes))))
    spare, spare_gpu = dice.randint(0, 1), dice.randint(0, 1)
    found.append(node("n", sum(sizes) + spare, "64Gi", sum(gpus) + spare_gpu, 110))
    for i, (cpu, gpu) in enumerate(zip(sizes, gpus, strict=True)):
        ports = PORT if i == holder else ()
        found += [
            podgroup(f"old{i}", 0, "rich", phase="Running", priority_class="low", creation=float(i)),
            pod(f"old{i}-0", f"old{i}", cpu=cpu, gpu=gpu, memory=0, on="n", phase="Running", host_ports=ports),
        ]
    asks = {"cpu": dice.randint(1, 4), "gpu": dice.choice((0, 0, 1, 2)), "memory": 0}
    ports = PORT if dice.random() < 0.5 else ()
    return [
        *found,
        podgroup("new", 1, "", phase="Inqueue", priority_class="high", creation=99.0),
        pod("new-0", "new", host_ports=ports, **asks),
    ]


def in_queue(objects: list[Object], name: str) -> list[Object]:
    return [replace(obj, queue=name) if getattr(obj, "key", "") == "ns/new" else obj for obj in objects]


def fits(objects: list[Object], gone: set[str]) -> bool:
    """Return True if the waiting pod has room, a port and GPUs once some pods have left."""
    machine = next(obj for obj in objects if getattr(obj, "name", "") == "n")
    pods = {obj.key: obj for obj in objects if isinstance(obj, Pod)}
    new = pods.pop("ns/new-0")
    left = [each for key, each in pods.items() if key not in gone]

    def total(name: str, of: list[Pod]) -> float:
        return sum(amount(each.spec.request, name) for each in of)

    def amount(of: Resource, name: str) -> float:
        return of.get(name)

    held = any(each.spec.host_ports for each in left)
    names = ("cpu", "nvidia.com/gpu")
    room = all(total(name, [*left, new]) <= amount(machine.allocatable, name) for name in names)
    return room and not (held and new.spec.host_ports)


@MANY_WORLDS
@pytest.mark.parametrize("action", CONFS)
def test_every_victim_is_needed(action: str, seeds: range) -> None:
    placed, unneeded = 0, 0
    for seed in seeds:
        objects = in_queue(world(Random(f"{action} {seed}")), "rich" if action == "preempt" else "poor")
        if fits(objects, set()):
            continue
        ran = run(cluster(*objects), CONFS[action].replace("SPARES", "true"), actions=action)
        gone = set(ran.evicted)
        if gone:
            placed += 1
            assert fits(objects, gone), seed
            fewer = [set(some) for some in combinations(sorted(gone), len(gone) - 1)]
            assert not any(fits(objects, some) for some in fewer), (seed, gone)
        plain = set(run(cluster(*objects), CONFS[action].replace("SPARES", "false"), actions=action).evicted)
        assert bool(plain) == bool(gone), seed
        unneeded += len(plain) > len(gone)
    assert placed > len(seeds) / 4
    assert unneeded > 0, "without the switch some leave for nothing"


def test_reclaim_goes_on_until_the_port_is_free() -> None:
    """There is room as soon as the first victim is gone, and the port is the last one's."""
    objects: list[Object] = [*LEVELS, queue("rich"), queue("poor"), node("n", 4)]
    for i in range(4):
        objects += gang(f"old{i}", 1, of="rich", on="n", creation=float(i), host_ports=PORT if i == 0 else ())
    objects += gang("new", 1, 1, of="poor", creation=9.0, host_ports=PORT)
    ran = run(cluster(*objects), RECLAIM.replace(", {name: proportion}", ""))
    assert (ran.evicted, ran.pipelined) == (["ns/old0-0"], {"ns/new-0": "n"})
