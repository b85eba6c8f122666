"""How many gangs of different pods are placed of those that an exact solver places, with second tries and without.

    python -m bench.second_tries --cases 1000 --seed 1

Each case is one PodGroup of Volcano's, a gang of 3 to 8 pods in two or three shapes, on 2 to 6 nodes that are in use in
part; the gang wants at least half of what is free (``bench.native_groups`` draws it and solves it exactly). Fails if
less than 98 % are placed with second tries. ``cycle_ratio``: CPU seconds of all cycles with second tries, also of gangs
that have no placement, over those without, in turns.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence

from bench.native_groups import Case, case_of, exists
from pumice.framework.plugin.policy_file import Policy, read_policy
from pumice.runtime.policy.languages import builtin_registry
from pumice.state.store import Store
from pumice.testing.build import cluster, node, pod, podgroup, run

LEAST = 0.98


def cluster_of(case: Case) -> Store:
    """Return the case as a cluster."""
    nodes = [node(f"n{i}", cpu=size[0], memory=f"{size[1]}Gi") for i, (size, _) in enumerate(case.nodes)]
    used = [
        pod(f"used-{i}", cpu=taken[0], memory=f"{taken[1]}Gi", on=f"n{i}")
        for i, (_, taken) in enumerate(case.nodes)
        if any(taken)
    ]
    waiting = [pod(f"g-{i}", "g", cpu=cpu, memory=f"{memory}Gi") for i, (cpu, memory) in enumerate(case.pods)]
    return cluster(*nodes, *used, podgroup("g", len(case.pods), phase="Inqueue"), *waiting)


def policy_of(*, second_tries: bool) -> Policy:
    """Return the default policy of ``dialect: pumice``, with second tries or without."""
    switch = {"name": "allocate", "arguments": {"secondTries": second_tries}}
    return read_policy({"dialect": "pumice", "configurations": [switch]}, builtin_registry())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    dice, policies = random.Random(given.seed), {on: policy_of(second_tries=on) for on in (False, True)}
    placeable, placed, took = 0, dict.fromkeys(policies, 0), dict.fromkeys(policies, 0.0)
    for _ in range(given.cases):
        case = case_of(dice)
        possible = exists(case)
        placeable += possible
        for on, policy in policies.items():
            store = cluster_of(case)
            began = time.process_time()
            binds = run(store, policy).binds
            took[on] += time.process_time() - began
            assert len(binds) in ((0, len(case.pods)) if possible else (0,)), f"{len(binds)} pods are bound"
            placed[on] += bool(binds)
    share = {on: count / placeable for on, count in placed.items()}
    found = {"cases": given.cases, "placeable": placeable, "first_try": round(100 * share[False], 1)}
    found |= {"second_tries": round(100 * share[True], 1), "cycle_ratio": round(took[True] / took[False], 2)}
    print(json.dumps(found))
    return 0 if share[True] >= LEAST else 1


if __name__ == "__main__":
    raise SystemExit(main())
