"""Draw small clusters and their work as manifests. The clusters are full, so that evictions happen, and most jobs could
run, so that there are victims."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from pumice.sim.fuzz.confs import PREEMPT, RECLAIM
from pumice.sim.fuzz.dice import Dice
from pumice.sim.fuzz.sizes import Size
from pumice.sim.workloads.spans import ARRIVAL_ANNOTATION, DURATION_ANNOTATION

Raw = dict[str, Any]

VOLCANO = "scheduling.volcano.sh/v1beta1"
#: Requests of pods: CPU, memory in Gi, GPUs.
_REQUESTS = ((1, 1, 0), (2, 2, 0), (1, 4, 0), (2, 4, 0), (3, 3, 0), (2, 4, 1), (4, 8, 2))
_WITHOUT_GPU = 5
#: Requests of which a job of several pods fills a node or two.
_CONTESTED = ((2, 2, 0), (2, 4, 0), (3, 3, 0))
_PREEMPTABLE = "volcano.sh/preemptable"
_ZONE = "volcano.sh/revocable-zone"
_GROUPS = ("blue", "green")


class _Mix(NamedTuple):
    """What jobs are drawn from. ``fills``: priority class or queue of half of the jobs, which arrive first and stay
    long, so that others find the cluster full; "" if jobs arrive at random. ``is_contest``: little protects their
    pods."""

    size: Size
    queues: list[str]
    requests: Sequence[tuple[int, int, int]]
    fills: str
    is_contest: bool


def draw_objects(dice: Dice, size: Size, actions: Collection[str], *, tree: bool, groups: bool) -> list[Raw]:
    """Return nodes, queues, priority classes, budgets and jobs, most often such that some of the ``actions`` evict.
    ``tree``: queues have parents. ``groups``: nodes have groups, and queues say which they use."""
    queues = list(_tree(dice) if tree else _queues(dice))
    parents = {queue["spec"].get("parent") for queue in queues}
    leaves = [queue["metadata"]["name"] for queue in queues if queue["metadata"]["name"] not in parents]
    nodes = list(_nodes(dice, size))
    for each in nodes if groups else ():
        each["metadata"]["labels"]["volcano.sh/nodegroup-name"] = dice.one(_GROUPS)
    for each in queues if groups else ():
        each["spec"]["affinity"] = _group_rules(dice)
    gpus = any("nvidia.com/gpu" in node["status"]["allocatable"] for node in nodes)
    evicted = [*["low"] * bool(PREEMPT & set(actions)), *[leaves[0]] * bool(RECLAIM & set(actions))]
    fills = dice.one(evicted) if evicted and dice.chance(0.8) else dice.one(("", "low", leaves[0]))
    if fills == leaves[0]:
        _is_over_its_share(dice, next(queue for queue in queues if queue["metadata"]["name"] == fills))
    requests: Sequence[tuple[int, int, int]] = _REQUESTS if gpus else _REQUESTS[:_WITHOUT_GPU]
    is_contest = dice.chance(size.contest_share)
    if is_contest:
        requests = (dice.one(_CONTESTED),)
    mix = _Mix(size, leaves, requests, fills, is_contest)
    return [
        *nodes,
        *(racks(dice, len(nodes)) if dice.chance(0.4) else ()),
        *(raw("scheduling.k8s.io/v1", "PriorityClass", name, value=value) for name, value in (("low", 1), ("high", 9))),
        *queues,
        *_budgets(dice),
        *(_job(dice, j, mix) for j in range(dice.number(*size.jobs))),
    ]


def raw(api: str, kind: str, name: str, **rest: Any) -> Raw:
    """Return an object as decoded."""
    metadata = {"name": name, "uid": name, **rest.pop("metadata", {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **rest}


def _nodes(dice: Dice, size: Size) -> Iterator[Raw]:
    for i in range(dice.number(*size.nodes)):
        labels = {"kubernetes.io/hostname": f"n{i}", "zone": f"z{i % 2}"}
        if i and dice.chance(0.2):
            labels[_ZONE] = "rz1"
        room = {"cpu": str(dice.number(3, 8)), "memory": f"{dice.number(8, 24)}Gi", "pods": "20"}
        if dice.chance(0.4):
            room["nvidia.com/gpu"] = str(dice.one((2, 4)))
        yield raw("v1", "Node", f"n{i}", metadata={"labels": labels}, status={"allocatable": room})


def racks(dice: Dice, nodes: int) -> Iterator[Raw]:
    """Yield a HyperNode for each half of the nodes, and one above both."""
    names = []
    for r, members in enumerate((range(nodes // 2), range(nodes // 2, nodes))):
        found = [{"type": "Node", "selector": {"exactMatch": {"name": f"n{i}"}}} for i in members]
        if found:
            names.append(f"rack{r}")
            yield raw("topology.volcano.sh/v1alpha1", "HyperNode", names[-1], spec={"tier": 1, "members": found})
    over = [{"type": "HyperNode", "selector": {"exactMatch": {"name": name}}} for name in names]
    if dice.chance(0.5):
        yield raw("topology.volcano.sh/v1alpha1", "HyperNode", "row", spec={"tier": 2, "members": over})


# -- queues


def _queues(dice: Dice) -> Iterator[Raw]:
    for q in range(dice.one((1, 2, 2, 3))):
        spec: Raw = {"weight": dice.number(1, 4), **_amounts(dice)}
        if dice.chance(0.2):
            spec["reclaimable"] = False
        if dice.chance(0.2):
            spec["priority"] = dice.number(1, 5)
        yield raw(VOLCANO, "Queue", f"q{q}", spec=spec, status={"state": "Open"})


def _tree(dice: Dice) -> Iterator[Raw]:
    yield raw(VOLCANO, "Queue", "root", spec={"weight": 1}, status={"state": "Open"})
    for p in range(dice.number(1, 2)):
        yield raw(
            VOLCANO, "Queue", f"p{p}", spec={"weight": 1, "parent": "root", **_amounts(dice)}, status={"state": "Open"}
        )
        for c in range(dice.number(1, 2)):
            spec = {"weight": 1, "parent": f"p{p}", **_amounts(dice)}
            yield raw(VOLCANO, "Queue", f"p{p}-c{c}", spec=spec, status={"state": "Open"})


def _is_over_its_share(dice: Dice, queue: Raw) -> None:
    """Change a queue so that its jobs, which come first, soon hold more than its share."""
    queue["spec"] |= {"weight": 1, "deserved": _resources(dice, 1, 3)}
    for name in ("capability", "reclaimable"):
        queue["spec"].pop(name, None)


def _amounts(dice: Dice) -> Raw:
    found: Raw = {}
    if dice.chance(0.6):
        found["deserved"] = _resources(dice, 2, 12)
    if dice.chance(0.2):
        found["guarantee"] = {"resource": _resources(dice, 1, 2)}
    if dice.chance(0.3):
        found["capability"] = _resources(dice, 4, 16)
    return found


def _resources(dice: Dice, low: int, high: int) -> Raw:
    cpu = dice.number(low, high)
    return {"cpu": str(cpu), "memory": f"{2 * cpu}Gi"}


def _group_rules(dice: Dice) -> Raw:
    required, preferred = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    rules: Raw = {"nodeGroupAffinity": {dice.one((required, preferred)): dice.shuffled(_GROUPS)}}
    if dice.chance(0.3):
        rules["nodeGroupAntiAffinity"] = {dice.one((required, preferred)): [dice.one(_GROUPS)]}
    return rules


def _budgets(dice: Dice) -> Iterator[Raw]:
    if dice.chance(0.3):
        status = {"disruptionsAllowed": dice.number(0, 3)}
        spec = {"selector": {"matchLabels": {"tier": "web"}}}
        yield raw("policy/v1", "PodDisruptionBudget", "web", metadata={"namespace": "ns"}, spec=spec, status=status)


# -- jobs


def _job(dice: Dice, j: int, mix: _Mix) -> Raw:
    # At least one that fills the cluster, and one that finds it full.
    early = (j == 0 or (j > 1 and dice.chance(0.5))) if mix.fills else None
    name, replicas = f"job{j}", dice.number(*mix.size.pods) + (mix.size.more_pods if early else 0)
    if early and len(mix.requests) > 1 and dice.chance(0.7):
        mix = mix._replace(requests=_REQUESTS[:_WITHOUT_GPU])  # few nodes have GPUs
    tasks = [_task(dice, "worker", name, replicas, mix)]
    if dice.chance(0.3):
        tasks.append(_task(dice, "ps", name, dice.number(1, 2), mix))
    total = sum(task["replicas"] for task in tasks)
    # If a gang needs all of its pods, none may be evicted alone.
    ones = (30 if mix.is_contest else 6) if early else 0
    spec: Raw = {
        "queue": _queue_of(dice, mix, early),
        "minAvailable": dice.one((total, dice.number(1, total), *(1,) * ones)),
        "schedulerName": "volcano",
        "tasks": tasks,
    }
    if mix.fills == "low" or (mix.is_contest and early is not None):
        spec["priorityClassName"] = "low" if early else "high"
    elif dice.chance(0.7):
        spec["priorityClassName"] = dice.one(("low", "high"))
    if dice.chance(0.25):
        spec["networkTopology"] = {"mode": dice.one(("hard", "soft")), "highestTierAllowed": dice.number(1, 2)}
    notes = _times(dice, early, mix.size)
    if dice.chance(0.0 if mix.is_contest else 0.25):
        notes[_PREEMPTABLE] = dice.one(("true", "false"))
    if dice.chance(0.2):
        notes[_ZONE] = "*"
    if dice.chance(0.1):
        notes["volcano.sh/cooldown-time"] = f"{dice.number(10, 100)}s"
    metadata = {"namespace": "ns", "annotations": notes}
    return raw("batch.volcano.sh/v1alpha1", "Job", name, metadata=metadata, spec=spec)


def _queue_of(dice: Dice, mix: _Mix, early: bool | None) -> str:
    if mix.fills not in mix.queues:
        # Preemption is within a queue.
        return mix.queues[0] if mix.fills and dice.chance(0.6) else dice.one(mix.queues)
    others = [queue for queue in mix.queues if queue != mix.fills]
    return mix.fills if early or not others else dice.one(others)


def _times(dice: Dice, early: bool | None, size: Size) -> dict[str, str]:
    """Return when a job arrives and how long it runs. ``early``: first and long, or later and short; None: either."""
    arrivals, durations = {
        None: ((0, size.last_arrival_s), (5, 400)),
        True: ((0, 40), (200, 800)),
        False: ((40, size.last_arrival_s), (5, 200)),
    }[early]
    return {ARRIVAL_ANNOTATION: f"{dice.number(*arrivals)}s", DURATION_ANNOTATION: f"{dice.number(*durations)}s"}


def _task(dice: Dice, role: str, job: str, replicas: int, mix: _Mix) -> Raw:
    cpu, memory, gpus = dice.one(mix.requests)
    requests: Raw = {"cpu": str(cpu), "memory": f"{memory}Gi", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    pod: Raw = {"containers": [{"name": "main", "resources": {"requests": {} if dice.chance(0.08) else requests}}]}
    mine = {"matchLabels": {"app": job}}
    match dice.number(0, 39 if mix.is_contest else 11):
        case 0:
            pod["nodeSelector"] = {"zone": f"z{dice.number(0, 1)}"}
        case 1:
            pod["preemptionPolicy"] = "Never"
        case 2:
            term = {"labelSelector": mine, "topologyKey": "kubernetes.io/hostname"}
            pod["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        case 3:
            pod["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8000}]
    labels = {"app": job, **({"tier": "web"} if dice.chance(0.3) else {})}
    notes = {_PREEMPTABLE: dice.one(("true", "false"))} if dice.chance(0.15) else {}
    template = {"metadata": {"labels": labels, "annotations": notes}, "spec": pod}
    return {"name": role, "replicas": replicas, "template": template}
