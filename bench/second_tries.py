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
from collections.abc import Sequence

from bench.native_groups import Case, case_of, exists
from bench.small_cases import solved
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


def places(case: Case, policy: Policy) -> bool:
    """Return True if one cycle places the whole gang. Raises: AssertionError if it places a part."""
    count = len(run(cluster_of(case), policy).binds)
    assert count in (0, len(case.pods)), f"{count} of {len(case.pods)} pods are bound"
    return bool(count)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    found = solved(given.cases, given.seed, case_of, exists, lambda on: policy_of(second_tries=on), places)
    share = {name: count / found.possible for name, count in (("first_try", found.off), ("second_tries", found.on))}
    percent = {name: round(100 * each, 1) for name, each in share.items()}
    print(json.dumps({"cases": given.cases, "placeable": found.possible, **percent, "cycle_ratio": found.cpu_ratio}))
    return 0 if share["second_tries"] >= LEAST else 1


if __name__ == "__main__":
    raise SystemExit(main())
