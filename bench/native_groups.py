"""How often small groups of different pods are placed: by a search of all placements, by Pumice and by one pass.

    python -m bench.native_groups --cases 10000 --seed 1

Each case is one PodGroup of ``scheduling.k8s.io``, a gang of 3 to 8 pods in two or three shapes, on 2 to 6 nodes that
are in use in part. One pass is kube-scheduler's rule for a PodGroup: pods one after the other in the order of the
queue, each on the feasible node with the best score, without going back (KEP-4671). The score here is LeastAllocated
and BalancedAllocation.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from pumice.framework.plugin.policy_file import Policy
from pumice.model.events import Object
from pumice.model.manifest import Decoder
from pumice.runtime.one_cycle import schedule_once
from pumice.runtime.policy.conf import loaded_from_text
from pumice.runtime.policy.languages import builtin_registry
from pumice.volcano.table import DEFAULT_CONF

CONFS = {"volcano": DEFAULT_CONF, "kai": "dialect: kai\n"}
_FREE = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
_CPU, _MEMORY = 0, 1

Amount = tuple[int, int]  # cores and GiB


class Case(Struct, frozen=True):
    """``nodes``: size of each, and what is in use. ``pods``: their requests, in the order of the queue."""

    nodes: tuple[tuple[Amount, Amount], ...]
    pods: tuple[Amount, ...]


class Found(Struct):
    """Of how many cases a placement of the whole gang was found."""

    cases: int = 0
    brute_force: int = 0
    one_pass: int = 0
    pumice: dict[str, int] = {}
    cpu_s: float = 0.0


def case_of(dice: random.Random) -> Case:
    """Return a random case in which the pods want 60 to 100 % of what is free, where misses are likely."""
    while True:
        sizes = [(dice.choice((4, 8, 16)), dice.choice((16, 32, 64))) for _ in range(dice.randint(2, 6))]
        nodes = tuple((size, (dice.randint(0, size[0] // 2), dice.randint(0, size[1] // 2))) for size in sizes)
        shapes = [(dice.randint(1, 8), dice.choice((2, 4, 8, 16, 24))) for _ in range(dice.randint(2, 3))]
        pods = tuple(dice.choice(shapes) for _ in range(dice.randint(3, 8)))
        free = [sum(size[i] - used[i] for size, used in nodes) for i in (_CPU, _MEMORY)]
        wanted = [sum(pod[i] for pod in pods) for i in (_CPU, _MEMORY)]
        if len(set(pods)) > 1 and 0.6 <= max(w / f for w, f in zip(wanted, free, strict=True)) <= 1.0:
            return Case(nodes, pods)


def exists(case: Case) -> bool:
    """Return True if any placement holds all pods. Nodes with equal room are tried once, larger pods first."""
    free = [(size[0] - used[0], size[1] - used[1]) for size, used in case.nodes]
    pods = sorted(case.pods, reverse=True)

    def placed(at: int) -> bool:
        if at == len(pods):
            return True
        cpu, memory = pods[at]
        for room in sorted({room for room in free if room[0] >= cpu and room[1] >= memory}):
            node = free.index(room)
            free[node] = (room[0] - cpu, room[1] - memory)
            if placed(at + 1):
                return True
            free[node] = room
        return False

    return placed(0)


def one_pass(case: Case) -> bool:
    """Return True if each pod in turn finds a node."""
    return one_pass_from(case.nodes, [list(used) for _, used in case.nodes], case.pods) is not None


def one_pass_from(
    nodes: Sequence[tuple[Amount, Amount]], used: Sequence[Sequence[int]], pods: Sequence[Amount]
) -> list[list[int]] | None:
    """Return what is in use on each node after each pod in turn has found one, or None if one finds none."""
    after = [list(each) for each in used]
    for pod in pods:
        scored = [
            (_score(size, after[node], pod), -node)
            for node, (size, _) in enumerate(nodes)
            if all(after[node][i] + pod[i] <= size[i] for i in (_CPU, _MEMORY))
        ]
        if not scored:
            return None
        node = -max(scored)[1]
        for i in (_CPU, _MEMORY):
            after[node][i] += pod[i]
    return after


def _score(size: Amount, used: Sequence[int], pod: Amount) -> float:
    shares = [(used[i] + pod[i]) / size[i] for i in (_CPU, _MEMORY)]
    return (1 - sum(shares) / 2) + (1 - abs(shares[0] - shares[1]) / 2)


def cluster_of(nodes: Sequence[tuple[Amount, Amount]], dialect: str) -> list[dict[str, Any]]:
    """Return a queue, nodes, and pods that use a part of them, as in the API."""
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "default"}}
    if dialect == "kai":
        resources = {"cpu": _FREE, "memory": _FREE, "gpu": _FREE}
        queue = {**queue, "apiVersion": "scheduling.run.ai/v2", "spec": {"resources": resources}}
    raw: list[dict[str, Any]] = [queue]
    for i, (size, used) in enumerate(nodes):
        allocatable = {**_amounts(size), "pods": "110"}
        raw.append(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{i}"}, "status": {"allocatable": allocatable}}
        )
        if any(used):
            raw.append(
                _pod(f"used-{i}", used, "default-scheduler", nodeName=f"n{i}") | {"status": {"phase": "Running"}}
            )
    return raw


def objects_of(case: Case, dialect: str) -> list[Object]:
    """Return the case as objects of the API."""
    policy = {"schedulingPolicy": {"gang": {"minCount": len(case.pods)}}}
    head = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "g", "namespace": "x"}}
    raw = [*cluster_of(case.nodes, dialect), {**head, "spec": policy}]
    raw += (pod(f"p{i}", each, dialect, "g") for i, each in enumerate(case.pods))
    decoder = Decoder()
    return [decoder.decode(each) for each in raw]  # type: ignore[misc]  # none of them is a job


def pod(name: str, request: Amount, dialect: str, group: str) -> dict[str, Any]:
    """Return a waiting pod of a PodGroup."""
    scheduler = "kai-scheduler" if dialect == "kai" else "volcano"
    return _pod(name, request, scheduler, schedulingGroup={"podGroupName": group})


def _pod(name: str, request: Amount, scheduler: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": _amounts(request)}}
    spec = {"schedulerName": scheduler, "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "x"}, "spec": spec}


def _amounts(amount: Amount) -> dict[str, str]:
    return {"cpu": str(amount[_CPU]), "memory": f"{amount[_MEMORY]}Gi"}


def places(case: Case, dialect: str, policy: Policy) -> bool:
    """Return True if one cycle binds the whole gang. Raises: AssertionError if it binds a part, or too much."""
    answer = schedule_once(objects_of(case, dialect), policy, 1.0, (policy.dialect.scheduler,))
    bound = answer.binds
    assert len(bound) in (0, len(case.pods)), f"{len(bound)} of {len(case.pods)} pods were bound"
    used = [list(used) for _, used in case.nodes]
    for pod, node in bound.items():
        for i in (_CPU, _MEMORY):
            used[int(node[1:])][i] += case.pods[int(pod.rpartition("/p")[2])][i]
    assert all(total[i] <= size[i] for total, (size, _) in zip(used, case.nodes, strict=True) for i in (_CPU, _MEMORY))
    return bool(bound)


def measure(cases: int, seed: int) -> Found:
    """Return what each way finds in so many random cases."""
    dice, found = random.Random(seed), Found(cases=cases, pumice=dict.fromkeys(CONFS, 0))
    policies = {name: loaded_from_text(text, builtin_registry(), where=name).policy for name, text in CONFS.items()}
    started = time.process_time()
    for _ in range(cases):
        case = case_of(dice)
        possible = exists(case)
        found.brute_force += possible
        found.one_pass += one_pass(case)
        for name, policy in policies.items() if possible else ():
            found.pumice[name] += places(case, name, policy)
    found.cpu_s = round(time.process_time() - started, 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    found = measure(given.cases, given.seed)
    ways = {"one pass": found.one_pass, **found.pumice}
    missed = {name: f"{100 * (1 - count / found.brute_force):.2f} %" for name, count in ways.items()}
    print(json.dumps({"cases": found.cases, "placeable": found.brute_force, "missed": missed, "cpu_s": found.cpu_s}))


if __name__ == "__main__":
    main()
