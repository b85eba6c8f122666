"""Draw clusters in which room is reserved for jobs that have waited longest, and every job ends by its estimate."""

from __future__ import annotations

from pumice.model.workloads.estimate import ESTIMATE_ANNOTATION
from pumice.sim.fuzz.clusters import VOLCANO, Raw, racks, raw
from pumice.sim.fuzz.confs import Conf
from pumice.sim.fuzz.dice import Dice
from pumice.sim.fuzz.sizes import LAST_ARRIVAL_S
from pumice.sim.workloads.spans import ARRIVAL_ANNOTATION, DURATION_ANNOTATION

_GPU = "nvidia.com/gpu"
#: Up to so many jobs are on two or three nodes, so that some of them wait.
_FEW_JOBS = 7
#: Numbers of jobs; few in most worlds.
_JOBS = (*((4, _FEW_JOBS),) * 9, (6, 12))


def draw_reserving_conf(dice: Dice) -> Conf:
    """Return a policy in which ``ours/reserve`` decides the order of jobs, and nothing else holds a job back. (With
    ``overcommit``, an older job may be admitted after room was reserved for a younger one, and goes first.)"""
    after, backfill = dice.one(("0s", "0s", "30s", "5m")), dice.chance(0.8)
    arguments = {"after": after, "backfill": backfill, "reservations": dice.one((1, 1, 2, 5, 64))}
    names = [
        "gang",
        "predicates",
        "network-topology-aware",
        *dice.some(["ours/shortest", "nodeorder", "binpack", "drf"], 0.5),
    ]
    plugins = [{"name": "ours/reserve", "arguments": arguments}, *({"name": name} for name in dice.shuffled(names))]
    actions = ["enqueue", "allocate", *dice.some(["backfill"], 0.5)]
    conf: Conf = {"actions": ", ".join(actions), "tiers": [{"plugins": plugins}]}
    match dice.number(0, 3):
        case 0:
            return {"dialect": "pumice", **conf}
        case 1:
            return conf | {"configurations": [{"name": "allocate", "arguments": {"secondTries": True}}]}
    return conf


def draw_reserved_objects(dice: Dice) -> list[Raw]:
    """Return nodes of two sizes, some with GPUs, and gangs with estimates, some within one of two hypernodes, some of
    partitions, each of which may have to be within one."""
    nodes, jobs = [], dice.number(*dice.one(_JOBS))
    for i in range(dice.number(2, 5 if jobs > _FEW_JOBS else 3)):
        room = {"cpu": str(dice.one((4, 8))), "memory": "64Gi", "pods": "20"}
        if dice.chance(0.3):
            room[_GPU] = str(dice.one((2, 4)))
        labels = {"kubernetes.io/hostname": f"n{i}", "zone": f"z{i % 2}"}
        nodes.append(raw("v1", "Node", f"n{i}", metadata={"labels": labels}, status={"allocatable": room}))
    gpus = any(_GPU in node["status"]["allocatable"] for node in nodes)
    queue = raw(VOLCANO, "Queue", "default", spec={"weight": 1}, status={"state": "Open"})
    within = [*racks(dice, len(nodes))] if dice.chance(0.3) else []
    return [*nodes, queue, *within, *(_job(dice, j, gpus, bool(within)) for j in range(jobs))]


def _job(dice: Dice, j: int, gpus: bool, has_domains: bool) -> Raw:
    tasks = [_task(dice, "worker", dice.number(1, 5), gpus)]
    is_together, is_parted = has_domains and dice.chance(0.4), dice.chance(0.3)
    if is_parted:
        size, total = dice.number(1, 3), dice.number(1, 3)
        policy: Raw = {"totalPartitions": total, "partitionSize": size, "minPartitions": dice.number(1, total)}
        if has_domains and dice.chance(0.7):
            policy["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
        tasks[0] |= {"replicas": size * total, "partitionPolicy": policy}
    # Within a domain unlike pods are not packed, so that a gang of them may find no place although it fits.
    if dice.chance(0.2) and not (is_together or is_parted):
        tasks.append(_task(dice, "ps", dice.number(1, 2), gpus))
    total = sum(task["replicas"] for task in tasks)
    seconds = dice.number(5, 400)
    notes = {
        ARRIVAL_ANNOTATION: f"{dice.number(0, LAST_ARRIVAL_S)}s",
        DURATION_ANNOTATION: f"{seconds}s",
        # An upper bound is an estimate that holds, too.
        ESTIMATE_ANNOTATION: f"{seconds + (dice.number(1, 200) if dice.chance(0.3) else 0)}s",
    }
    spec: Raw = {
        "minAvailable": total if dice.chance(0.7) else dice.number(1, total),
        "schedulerName": "volcano",
        "tasks": tasks,
    }
    if is_together:
        spec["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
    metadata = {"namespace": "ns", "annotations": notes}
    return raw("batch.volcano.sh/v1alpha1", "Job", f"job{j}", metadata=metadata, spec=spec)


def _task(dice: Dice, role: str, replicas: int, gpus: bool) -> Raw:
    requests: Raw = {"cpu": str(dice.number(1, 5)), "memory": "1Gi"}
    if gpus and dice.chance(0.4):
        requests[_GPU] = str(dice.number(1, 2))
    pod: Raw = {"containers": [{"name": "main", "resources": {"requests": requests}}]}
    if dice.chance(0.1):
        pod["nodeSelector"] = {"zone": f"z{dice.number(0, 1)}"}
    return {"name": role, "replicas": replicas, "template": {"spec": pod}}
