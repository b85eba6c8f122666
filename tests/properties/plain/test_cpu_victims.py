"""Victims without GPUs go to nodes without GPUs, as counting whole tasks by hand says (KAI#1939)."""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from pumice.framework.plugin.policy_file import Policy
from pumice.model.events import Object
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.model.queue import Quota
from tests.plain_models import MANY_WORLDS
from tests.unit.kai.cluster import cycle, job, node, policy, queue, store


class World:
    """A node with GPUs, nodes without, and equal tasks without GPUs: some on the first, in the way of a gang that needs
    its GPUs, and some elsewhere. ``cores``: of each node; ``size``: of each such task."""

    def __init__(self, dice: Random) -> None:
        self.cores, self.size, self.each = dice.randint(6, 12), dice.randint(1, 4), dice.randint(1, 4)
        self.gang = dice.randint(1, 3)
        self.there = [0] * dice.randint(1, 3)
        self.in_the_way = self.cores // self.size
        for at in range(len(self.there)):
            self.there[at] = dice.randint(0, self.in_the_way)

    def objects(self, of_victims: str, of_gang: str) -> list[Object]:
        names = [f"c{at}" for at in range(len(self.there))]
        found: list[Object] = [_cores(node("g", 4), self.cores), *(_cores(node(each, 0), self.cores) for each in names)]
        places = [("g", self.in_the_way), *zip(names, self.there, strict=True)]
        for at, count in places:
            for i in range(count):
                found += _sized(job(f"on-{at}-{i}", of_victims, [at], gpus=0, age=20.0 - i), self.size)
        return found + _sized(job("gang", of_gang, [""] * self.gang), self.each)

    def fits(self, *, moved: bool) -> bool:
        """Return True if the gang has room: at once, or with tasks moved to where each has room."""
        left = self.cores - self.gang * self.each
        if left < 0:
            return False
        stay = left // self.size
        elsewhere = sum(self.cores // self.size - count for count in self.there)
        return self.in_the_way - stay <= (elsewhere if moved else 0)


def _cores(of: Node, cores: int) -> Node:
    return replace(of, allocatable=replace(of.allocatable, milli_cpu=1000.0 * cores))


def _sized(objects: list[Object], cores: int) -> list[Object]:
    return [
        replace(each, spec=replace(each.spec, request=replace(each.spec.request, milli_cpu=1000.0 * cores)))
        if isinstance(each, Pod)
        else each
        for each in objects
    ]


def _worlds(seeds: range) -> list[tuple[int, World]]:
    return [(seed, World(Random(seed))) for seed in seeds]


@MANY_WORLDS
def test_consolidation_moves_what_has_room_on_a_node_without_gpus(seeds: range) -> None:
    moves = 0
    for seed, world in _worlds(seeds):
        ran = cycle(store(queue("q"), *world.objects("q", "q")), policy(("allocate", "consolidation")))
        placed = all("@g" in ran.states[f"gang-{i}"] for i in range(world.gang))
        assert placed == world.fits(moved=True), seed
        moves += bool(ran.evicted)
        assert all("Pipelined@c" in ran.states[each] for each in ran.evicted), seed
    assert moves > len(seeds) / 10


@MANY_WORLDS
def test_reclaim_ends_no_victim_that_has_room_on_a_node_without_gpus(seeds: range) -> None:
    moves, ends = 0, 0
    for seed, world in _worlds(seeds):
        ran = _reclaimed(world, policy(("allocate", "reclaim")))
        moved = [each for each in ran if ran[each].startswith("Pipelined@c")]
        gone = [each for each in ran if ran[each].startswith("Releasing")]
        stay = max(world.cores - world.gang * world.each, 0) // world.size
        room = sum(world.cores // world.size - count for count in world.there)
        if ran["gang-0"] != "Pending" and not world.fits(moved=False):
            assert len(gone) == max(world.in_the_way - stay - room, 0), (seed, ran)
        moves, ends = moves + bool(moved), ends + bool(gone)
    assert moves > len(seeds) / 10
    assert ends > len(seeds) / 20


def _reclaimed(world: World, under: Policy) -> dict[str, str]:
    """Return the states after a cycle in which the gang's queue deserves all and the others' nothing."""
    nothing, poor = Quota(0.0, None, 0.0), queue("p", 0)
    assert poor.sharing is not None
    poor = replace(poor, sharing=replace(poor.sharing, cpu=nothing, memory=nothing, gpu=nothing))
    return cycle(store(poor, queue("q"), *world.objects("p", "q")), under).states
