"""How often trees of groups with domains at several levels are placed: by a search of all placements, and by Pumice.

    python -m bench.nested_trees --cases 2000 --seed 1
    python -m bench.nested_trees --cases 1000 --seed 1 --full

Each case is one CompositePodGroup of ``scheduling.k8s.io`` with up to three members, groups of one or two pods or
CompositePodGroups with up to three such groups, of which random numbers must start together. The whole must be in one
zone or anywhere, CompositePodGroups in it in one rack or anywhere, and so must groups. There are up to two zones with
up to three racks of up to two nodes, which are empty, or with ``--full`` in use by pods of lower priority that ask for
one core each: the tree then starts if they are evicted (Volcano's ``gangpreempt``, KAI's ``preempt``).
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from msgspec import Struct

from bench.native_groups import CONFS, cluster_of, pod
from pumice.framework.plugin.policy_file import Policy
from pumice.model.events import Object
from pumice.model.manifest import Decoder
from pumice.runtime.one_cycle import schedule_once
from pumice.runtime.policy.conf import loaded_from_text
from pumice.runtime.policy.languages import builtin_registry
from pumice.state.group_trees import with_trees

#: Volcano's policy where all cores are in use.
_EVICTING = """
actions: "enqueue, allocate, gangpreempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}]
"""
_HEAD = {"apiVersion": "scheduling.k8s.io/v1alpha3"}
Free = tuple[int, ...]  # cores of each node


class PlacedNode(Struct, frozen=True):
    """A node with so many free cores, in a zone and in a rack of it."""

    cores: int
    zone: str
    rack: str

    def domain(self, label: str) -> str:
        return self.zone if label == "zone" else self.rack


class TreeNode(Struct, frozen=True):
    """A group with pods of so many cores each, or a set of which ``least`` must start. ``label``: all of it is in one
    domain of this label, "" for anywhere."""

    label: str
    pods: tuple[int, ...] = ()
    least: int = 0
    inside: tuple[TreeNode, ...] = ()


class NestedCase(Struct, frozen=True):
    """Nodes, and the tree that waits for them."""

    nodes: tuple[PlacedNode, ...]
    tree: TreeNode


def case_of(dice: random.Random) -> NestedCase:
    """Return a random case."""
    nodes, rack = [], 0
    for zone in range(dice.randint(1, 2)):
        for _ in range(dice.randint(1, 3)):
            nodes += [PlacedNode(dice.choice((2, 3, 4)), f"z{zone}", f"r{rack}") for _ in range(dice.randint(1, 2))]
            rack += 1
    inside = [_composite(dice) if dice.random() < 0.7 else _group(dice) for _ in range(dice.randint(1, 3))]
    return NestedCase(tuple(nodes), _set(dice, ("", "zone", "zone"), inside))


def _group(dice: random.Random) -> TreeNode:
    return TreeNode(dice.choice(("", "", "rack")), (dice.randint(1, 2),) * dice.randint(1, 2))


def _composite(dice: random.Random) -> TreeNode:
    return _set(dice, ("", "rack", "rack"), [_group(dice) for _ in range(dice.randint(1, 3))])


def _set(dice: random.Random, labels: Sequence[str], inside: Sequence[TreeNode]) -> TreeNode:
    return TreeNode(dice.choice(labels), least=dice.randint(1, len(inside)), inside=tuple(inside))


def can_start(case: NestedCase) -> bool:
    """Return True if any placement holds the minimum of the tree."""
    free, everywhere = tuple(each.cores for each in case.nodes), tuple(range(len(case.nodes)))
    return next(_placed(case, case.tree, free, everywhere), None) is not None


def _placed(case: NestedCase, tree: TreeNode, free: Free, nodes: Sequence[int]) -> Iterator[Free]:
    """Yield what is free after each placement of the minimum of a tree on these nodes."""
    values = sorted({case.nodes[node].domain(tree.label) for node in nodes}) if tree.label else [""]
    for value in values:
        within = [node for node in nodes if not tree.label or case.nodes[node].domain(tree.label) == value]
        if tree.pods:
            yield from _pods_placed(tree.pods, free, within)
        for chosen in combinations(tree.inside, tree.least) if tree.inside else ():
            yield from _all_placed(case, chosen, free, within)


def _pods_placed(pods: Sequence[int], free: Free, nodes: Sequence[int]) -> Iterator[Free]:
    if not pods:
        yield free
    for node in nodes if pods else ():
        if free[node] >= pods[0]:
            yield from _pods_placed(pods[1:], (*free[:node], free[node] - pods[0], *free[node + 1 :]), nodes)


def _all_placed(case: NestedCase, trees: Sequence[TreeNode], free: Free, nodes: Sequence[int]) -> Iterator[Free]:
    if not trees:
        yield free
    # Equal amounts on all nodes leave equal placements for the rest.
    for after in dict.fromkeys(_placed(case, trees[0], free, nodes)) if trees else ():
        yield from _all_placed(case, trees[1:], after, nodes)


def objects_of(case: NestedCase, dialect: str, *, full: bool) -> list[Object]:
    """Return the case as objects of the API, with the tree as one gang. ``full``: all cores are in use by others."""
    raw: list[dict[str, Any]] = cluster_of([((each.cores, 64), (0, 0)) for each in case.nodes], dialect)
    for i, each in enumerate(case.nodes):
        (node,) = (found for found in raw if found["metadata"]["name"] == f"n{i}")
        node["metadata"]["labels"] = {"zone": each.zone, "rack": each.rack}
    tree = list(_objects(case.tree, "t", "", dialect))
    if full:
        raw += _in_use(case, dialect)
        for group in tree:
            group["spec"] |= {"priorityClassName": "high"} if group["kind"] != "Pod" else {}
    decoder = Decoder()
    return with_trees(decoder.decode(each) for each in [*raw, *tree])


def _in_use(case: NestedCase, dialect: str) -> Iterator[dict[str, Any]]:
    """Yield a pod for each core, in a group of its own, and the priorities."""
    for name, value in (("low", 10), ("high", 60)):
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
    for i, node in enumerate(case.nodes):
        for name in (f"old-{i}-{core}" for core in range(node.cores)):
            spec = {"schedulingPolicy": {"basic": {}}, "priorityClassName": "low"}
            yield {**_HEAD, "kind": "PodGroup", "metadata": {"name": name, "namespace": "x"}, "spec": spec}
            running = pod(f"{name}-0", (1, 1), dialect, name)
            running["spec"]["nodeName"] = f"n{i}"
            yield running | {"status": {"phase": "Running"}}


def _objects(tree: TreeNode, name: str, parent: str, dialect: str) -> Iterator[dict[str, Any]]:
    """Yield the group and all that is in it, by names that begin with its own."""
    kind, minimum, count = ("PodGroup", "minCount", len(tree.pods)) if tree.pods else _COMPOSITE + (tree.least,)
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {minimum: count}}}
    spec |= {"parentCompositePodGroupName": parent} if parent else {}
    spec |= {"schedulingConstraints": {"topology": [{"key": tree.label}]}} if tree.label else {}
    yield {**_HEAD, "kind": kind, "metadata": {"name": name, "namespace": "x"}, "spec": spec}
    yield from (pod(f"{name}-{i}", (cores, 1), dialect, name) for i, cores in enumerate(tree.pods))
    for i, each in enumerate(tree.inside):
        yield from _objects(each, f"{name}{i}", name, dialect)


_COMPOSITE = ("CompositePodGroup", "minGroupCount")


def starts(case: NestedCase, dialect: str, policy: Policy, *, full: bool = False) -> bool:
    """Return True if one cycle starts the tree, or makes room for it. Raises: AssertionError if it binds a part of a
    group or too little of a set, if a group is in two domains of its label, or if there is too much on a node."""
    found = schedule_once(objects_of(case, dialect, full=full), policy, 1.0, (policy.dialect.scheduler,))
    bound = {key: on for key, on in {**found.pipelined, **found.binds}.items() if key.startswith("x/t")}
    used, is_met = _checked(case, case.tree, "t", bound)
    assert bool(used) is is_met and len(used) == len(bound)
    for node, each in enumerate(case.nodes):
        assert sum(cores for at, cores in used if at == node) <= each.cores, f"node {node}: {used}"
    return is_met


def _checked(case: NestedCase, tree: TreeNode, name: str, bound: dict[str, str]) -> tuple[list[tuple[int, int]], bool]:
    """Return the nodes with the cores that pods of a tree have there, and whether the tree has its minimum."""
    on = [bound.get(f"x/{name}-{i}") for i in range(len(tree.pods))]
    used = [(int(node[1:]), cores) for node, cores in zip(on, tree.pods, strict=True) if node]
    is_met = all(on)
    assert is_met or not used, f"a part of group {name}: {on}"
    if tree.inside:
        parts = [_checked(case, each, f"{name}{i}", bound) for i, each in enumerate(tree.inside)]
        used = [each for nodes, _ in parts for each in nodes]
        is_met = sum(met for _, met in parts) >= tree.least
        assert is_met or not used, f"too few groups of {name}: {parts}"
    domains = {case.nodes[node].domain(tree.label) for node, _ in used} if tree.label else set()
    assert len(domains) <= 1, f"{name} is in several domains: {sorted(domains)}"
    return used, is_met


def measure(cases: int, seed: int, *, full: bool = False) -> dict[str, Any]:
    """Return of how many random cases that can start Pumice starts the tree, in each language."""
    dice, placeable, found = random.Random(seed), 0, dict.fromkeys(CONFS, 0)
    texts = CONFS | ({"volcano": _EVICTING} if full else {})
    policies = {name: loaded_from_text(text, builtin_registry(), where=name).policy for name, text in texts.items()}
    started = time.process_time()
    for case in (case_of(dice) for _ in range(cases)):
        if can_start(case):
            placeable += 1
            for name, policy in policies.items():
                found[name] += starts(case, name, policy, full=full)
    missed = {name: f"{100 * (1 - count / placeable):.2f} %" for name, count in found.items()}
    cpu_s = round(time.process_time() - started, 1)
    return {"cases": cases, "placeable": placeable, "missed": missed, "cpu_s": cpu_s}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--full", action="store_true")
    given = parser.parse_args()
    print(json.dumps(measure(given.cases, given.seed, full=given.full)))


if __name__ == "__main__":
    main()
