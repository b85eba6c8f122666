"""How often trees of groups are placed: by a search of all placements, by Pumice, by one pass, and by the first groups.

    python -m bench.native_trees --cases 5000 --seed 1

Each case is one CompositePodGroup of ``scheduling.k8s.io`` with 2 to 5 groups of 1 to 4 equal pods, of which
``minGroupCount`` must start together, on 2 to 5 nodes that are in use in part. One pass is kube-scheduler's rule:
groups in order, each pod by pod as in ``native_groups``, and a group that fails is left out. The first groups are KAI's
rule: those that make up the minimum in order, and no others; all placements of them are searched, so that no scheduler
that keeps this rule misses fewer.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from itertools import combinations
from typing import Any

from msgspec import Struct

from bench.native_groups import CONFS, Amount, Case, cluster_of, exists, one_pass_from, pod
from pumice.framework.plugin.policy_file import Policy
from pumice.model.events import Object
from pumice.model.manifest import Decoder
from pumice.runtime.one_cycle import schedule_once
from pumice.runtime.policy.conf import loaded_from_text
from pumice.runtime.policy.languages import builtin_registry
from pumice.state.group_trees import with_trees

WAYS = ("one pass", "first groups", *CONFS)


class TreeCase(Struct, frozen=True):
    """``nodes``: as of a ``Case``. ``groups``: the pods of each group, by name. ``least``: how many groups must
    start."""

    nodes: tuple[tuple[Amount, Amount], ...]
    groups: tuple[tuple[Amount, ...], ...]
    least: int


def case_of(dice: random.Random) -> TreeCase:
    """Return a random case in which the smallest groups that suffice want 60 to 100 % of what is free."""
    while True:
        sizes = [(dice.choice((4, 8, 16)), dice.choice((16, 32, 64))) for _ in range(dice.randint(2, 5))]
        nodes = tuple((size, (dice.randint(0, size[0] // 2), dice.randint(0, size[1] // 2))) for size in sizes)
        groups = tuple(
            ((dice.randint(1, 8), dice.choice((2, 4, 8, 16, 24))),) * dice.randint(1, 4)
            for _ in range(dice.randint(2, 5))
        )
        least = dice.randint(1, len(groups) - 1)
        free = [sum(size[i] - used[i] for size, used in nodes) for i in (0, 1)]
        wanted = [sum(sorted(sum(pod[i] for pod in each) for each in groups)[:least]) for i in (0, 1)]
        if 0.6 <= max(w / f for w, f in zip(wanted, free, strict=True)) <= 1.0:
            return TreeCase(nodes, groups, least)


def can_start(case: TreeCase) -> bool:
    """Return True if any placement holds enough groups."""
    return any(_fit(case, chosen) for chosen in combinations(range(len(case.groups)), case.least))


def first_groups(case: TreeCase) -> bool:
    """Return True if any placement holds the first groups that suffice."""
    return _fit(case, tuple(range(case.least)))


def _fit(case: TreeCase, chosen: tuple[int, ...]) -> bool:
    return exists(Case(case.nodes, tuple(pod for at in chosen for pod in case.groups[at])))


def one_pass(case: TreeCase) -> bool:
    """Return True if enough groups find nodes one after the other, without going back."""
    used, started = [list(used) for _, used in case.nodes], 0
    for group in case.groups:
        after = one_pass_from(case.nodes, used, group)
        if after is not None:
            used, started = after, started + 1
    return started >= case.least


def objects_of(case: TreeCase, dialect: str) -> list[Object]:
    """Return the case as objects of the API, with the tree as one gang."""
    raw: list[dict[str, Any]] = cluster_of(case.nodes, dialect)
    policy = {"schedulingPolicy": {"gang": {"minGroupCount": case.least}}}
    head = {"apiVersion": "scheduling.k8s.io/v1alpha3", "kind": "CompositePodGroup"}
    raw.append({**head, "metadata": {"name": "all", "namespace": "x"}, "spec": policy})
    for at, pods in enumerate(case.groups):
        spec = {"schedulingPolicy": {"gang": {"minCount": len(pods)}}, "parentCompositePodGroupName": "all"}
        raw.append({**head, "kind": "PodGroup", "metadata": {"name": f"g{at}", "namespace": "x"}, "spec": spec})
        raw += (pod(f"g{at}-{i}", each, dialect, f"g{at}") for i, each in enumerate(pods))
    decoder = Decoder()
    return with_trees(decoder.decode(each) for each in raw)


def places(case: TreeCase, dialect: str, policy: Policy) -> bool:
    """Return True if one cycle starts enough groups. Raises: AssertionError if it binds a part of a group, too few
    groups, or too much on a node."""
    bound = schedule_once(objects_of(case, dialect), policy, 1.0, (policy.dialect.scheduler,)).binds
    used, started = [list(used) for _, used in case.nodes], 0
    for at, pods in enumerate(case.groups):
        on = [bound.get(f"x/g{at}-{i}") for i in range(len(pods))]
        assert all(on) or not any(on), f"group {at}: {on}"
        started += all(on)
        for each, node in zip(pods, on, strict=True):
            for i in (0, 1) if node else ():
                used[int(node[1:])][i] += each[i]  # type: ignore[index]  # checked in the line above
    assert started == 0 or started >= case.least, f"{started} groups of {case.least}"
    assert all(total[i] <= size[i] for total, (size, _) in zip(used, case.nodes, strict=True) for i in (0, 1))
    return started > 0


def measure(cases: int, seed: int) -> dict[str, Any]:
    """Return of how many random cases each way starts the tree."""
    dice, placeable, found = random.Random(seed), 0, dict.fromkeys(WAYS, 0)
    policies = {name: loaded_from_text(text, builtin_registry(), where=name).policy for name, text in CONFS.items()}
    started = time.process_time()
    for _ in range(cases):
        case = case_of(dice)
        if not can_start(case):
            continue
        placeable += 1
        found["one pass"] += one_pass(case)
        found["first groups"] += first_groups(case)
        for name, policy in policies.items():
            found[name] += places(case, name, policy)
    missed = {name: f"{100 * (1 - count / placeable):.2f} %" for name, count in found.items()}
    cpu_s = round(time.process_time() - started, 1)
    return {"cases": cases, "placeable": placeable, "missed": missed, "cpu_s": cpu_s}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(json.dumps(measure(given.cases, given.seed)))


if __name__ == "__main__":
    main()
