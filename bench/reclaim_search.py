"""How many gangs get room by ``reclaim`` of those for which some set of victims and some placement makes room.

    python -m bench.reclaim_search --cases 400 --seed 1

Each case is a full cluster of 2 to 4 nodes. Queue ``a`` has more than it deserves, in jobs of one pod; pods of queue
``kept`` cannot be reclaimed; a gang of 2 to 5 pods of queue ``b`` starves. Solvable are the cases in which a search of
all sets of victims that ``capacity`` allows, and of all placements, finds room. Fails if fewer gangs get room with
``scoredSearch`` than without.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from itertools import combinations

from msgspec import Struct

from bench.small_cases import solved
from pumice.framework.plugin.policy_file import Policy, read_policy
from pumice.model.events import Object
from pumice.runtime.policy.languages import builtin_registry
from pumice.state.store import Store
from pumice.testing.build import cluster, node, pod, podgroup, queue, resource, run

_MEMORY = "1Gi"


class Case(Struct, frozen=True):
    """Cores: of ``nodes``, and of pods, by node: ``held`` of queue a, ``kept`` of others. ``deserved``: of queue a.
    ``gang``: of its pods."""

    nodes: tuple[int, ...]
    held: tuple[tuple[int, ...], ...]
    kept: tuple[int, ...]
    deserved: int
    gang: tuple[int, ...]


def case_of(dice: random.Random) -> Case:
    """Return a random case in which the gang does not fit without evictions."""
    while True:
        nodes = tuple(dice.choice((4, 6, 8)) for _ in range(dice.randint(2, 4)))
        kept, held = [], []
        for size in nodes:
            kept.append(dice.choice((0, 0, 1, 2)))
            free, pods = size - kept[-1], list[int]()
            while free and len(pods) < 4 and dice.random() < 0.9:
                pods.append(dice.randint(1, min(4, free)))
                free -= pods[-1]
            held.append(tuple(pods))
        shapes = [dice.randint(1, 6) for _ in range(2)]
        gang = tuple(dice.choice(shapes) for _ in range(dice.randint(2, 5)))
        holds = sum(map(sum, held))
        case = Case(nodes, tuple(held), tuple(kept), dice.randint(0, max(holds - 1, 0)), gang)
        if holds and not fits(room_of(case), gang):
            return case


def room_of(case: Case) -> list[int]:
    """Return the cores that are free on each node."""
    return [size - kept - sum(held) for size, kept, held in zip(case.nodes, case.kept, case.held, strict=True)]


def fits(room: Sequence[int], gang: Sequence[int]) -> bool:
    """Return True if any placement holds all pods, the largest first."""
    left, pods = list(room), sorted(gang, reverse=True)

    def placed(at: int) -> bool:
        if at == len(pods):
            return True
        for size in sorted({size for size in left if size >= pods[at]}):
            where = left.index(size)
            left[where] -= pods[at]
            if placed(at + 1):
                return True
            left[where] = size
        return False

    return placed(0)


def solvable(case: Case) -> bool:
    """Return True if some victims that may be evicted make room."""
    holds = sum(map(sum, case.held))
    for victims in _victims(case):
        cores = [size for _, size in victims]
        # A queue gives back as long as it has more than it deserves, so its last victim may be a large one.
        if holds - (sum(cores) - max(cores)) <= case.deserved:
            continue
        room = room_of(case)
        for where, size in victims:
            room[where] += size
        if fits(room, case.gang):
            return True
    return False


def _victims(case: Case) -> Iterator[tuple[tuple[int, int], ...]]:
    pods = [(where, size) for where, held in enumerate(case.held) for size in held]
    for count in range(1, len(pods) + 1):
        yield from combinations(pods, count)


def cluster_of(case: Case) -> Store:
    """Return the case as a cluster."""
    queues = [
        queue("a", deserved=resource(case.deserved)),
        queue("b", deserved=resource(sum(case.gang))),
        queue("kept", reclaimable=False),
    ]
    objects: list[Object] = [*queues, *(node(f"n{i}", cpu=size, memory="64Gi") for i, size in enumerate(case.nodes))]
    for where, held in enumerate(case.held):
        for i, size in enumerate(held):
            name = f"a{where}{i}"
            objects += [
                podgroup(name, 1, queue="a", phase="Running"),
                pod(f"{name}-0", name, cpu=size, memory=_MEMORY, on=f"n{where}"),
            ]
    for where, size in enumerate(case.kept):
        if size:
            name = f"k{where}"
            objects += [
                podgroup(name, 1, queue="kept", phase="Running"),
                pod(f"{name}-0", name, cpu=size, memory=_MEMORY, on=f"n{where}"),
            ]
    gang = [pod(f"g-{i}", "g", cpu=size, memory=_MEMORY) for i, size in enumerate(case.gang)]
    return cluster(*objects, podgroup("g", len(case.gang), queue="b", phase="Inqueue"), *gang)


def policy_of(*, scored: bool) -> Policy:
    """Return a policy that reclaims, with the scored search or without."""
    switch = [{"name": "reclaim", "arguments": {"scoredSearch": True}}] if scored else []
    tiers = [
        {"plugins": [{"name": name} for name in tier]} for tier in (("priority", "gang"), ("predicates", "capacity"))
    ]
    return read_policy({"actions": "reclaim", "tiers": tiers, "configurations": switch}, builtin_registry())


def makes_room(case: Case, policy: Policy) -> bool:
    """Return True if one cycle makes room for the whole gang. Raises: AssertionError if it makes room for a part."""
    found = run(cluster_of(case), policy)
    assert not found.outcome.faults, found.outcome.faults
    placed = len(found.pipelined)
    assert placed in (0, len(case.gang)), f"{placed} of {len(case.gang)} pods have a node"
    # What is not placed may not cost others their place either.
    assert placed or not found.evicted, "evicted in vain"
    return bool(placed)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    found = solved(given.cases, given.seed, case_of, solvable, lambda on: policy_of(scored=on), makes_room)
    counts = {"solvable": found.possible, "reclaim": found.off, "scored_search": found.on}
    print(json.dumps({"cases": given.cases, **counts, "cpu_ratio": found.cpu_ratio}))
    return 0 if found.on >= found.off else 1


if __name__ == "__main__":
    raise SystemExit(main())
