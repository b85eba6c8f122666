"""Draw small clusters in KAI's kinds, and policies in its language: a tree of queues with quotas, gangs with
sub-groups, shares of GPUs, racks. The clusters are full, so that evictions happen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pumice.framework.plugin.registry import Registry
from pumice.kai.table import DEFAULT_PLUGINS
from pumice.model.pod import GROUP_NAME_ANNOTATION
from pumice.model.workloads.gang import SUB_GROUP_LABEL
from pumice.sim.fuzz.clusters import Raw, raw
from pumice.sim.fuzz.confs import Conf
from pumice.sim.fuzz.dice import Dice
from pumice.sim.fuzz.sizes import Size
from pumice.sim.workloads.spans import ARRIVAL_ANNOTATION, DURATION_ANNOTATION

#: The spec of a pod, and the annotations by which it shares GPUs.
_Shape = tuple[Raw, dict[str, str]]
_GPU = "nvidia.com/gpu"
_LEVELS = ("zone", "rack")
#: Priorities by name of the class. Jobs with 100 or more are not preemptible.
_CLASSES = {"train": 50, "interactive": 75, "build": 100, "inference": 125}
#: A job that is not preemptible has to stay within the quota of its queue, so that it often waits in vain.
_OF_JOBS = ("train", "interactive", "interactive", "interactive", "build", "inference")
#: Plugins on which no law rests.
_OPTIONAL = (
    "elastic",
    "kubeflow",
    "ray",
    "gpusharingorder",
    "resourcetype",
    "nominatednode",
    "minruntime",
    "podaffinity",
)


class _Mix(NamedTuple):
    """What jobs are drawn from. ``filled``: the queue of those that come first; ``leaves``: of the others. ``shape``:
    in a contest, what every pod asks for; None if each job asks for its own."""

    size: Size
    leaves: list[str]
    filled: str
    shape: _Shape | None


def draw_kai_conf(dice: Dice, registry: Registry) -> Conf:
    """Return KAI's own policy with some actions and plugins left out and other arguments."""
    dialect = registry.dialects["kai"]
    actions = [name for name in dialect.default_actions if name == "allocate" or dice.chance(0.8)]
    arguments: dict[str, Raw] = {
        "proportion": {"kValue": dice.one((0.0, 1.0)), "relcaimerSaturationMultiplier": dice.one((1.0, 1.5))},
        "nodeplacement": {"gpu": dice.one(("binpack", "spread")), "cpu": dice.one(("binpack", "spread"))},
        "minruntime": {f"default{what}MinRuntime": dice.one(("0s", "20s")) for what in ("Preempt", "Reclaim")},
    }
    names = [name for name in (*DEFAULT_PLUGINS, "podaffinity") if name not in _OPTIONAL or dice.chance(0.7)]
    if dice.chance(0.3):
        names[names.index("gpupack")] = "gpuspread"
    plugins = [{"name": name, **({"arguments": arguments[name]} if name in arguments else {})} for name in names]
    limits = {"maxConsolidationPreemptees": dice.one((-1, 1, 16))}
    settings = [{"name": "consolidation", "arguments": limits}] if "consolidation" in actions else []
    depth = {"queueDepthPerAction": {"allocate": dice.number(1, 3)}} if dice.chance(0.1) else {}
    tiers = [{"plugins": plugins}]
    return {"dialect": "kai", "actions": ", ".join(actions), "tiers": tiers, "configurations": settings, **depth}


def draw_kai_objects(dice: Dice, size: Size) -> list[Raw]:
    """Return nodes, a Topology, priority classes, queues, and PodGroups with their pods."""
    queues, leaves = [], []
    for p in range(dice.number(1, 2)):
        queues.append(_queue(dice, f"p{p}", ""))
        children = [f"p{p}-c{c}" for c in range(dice.number(0, 2))]
        queues += [_queue(dice, child, f"p{p}") for child in children]
        leaves += children or [f"p{p}"]
    # Half of the jobs have the lowest priority, come first and stay long, so that the others find the cluster full.
    filled = dice.one(leaves)
    is_over = dice.chance(0.6)
    if is_over:
        _is_over_its_share(next(queue for queue in queues if queue["metadata"]["name"] == filled))
    shape = _pod(dice, whole=True) if dice.chance(size.contest_share) else None
    # In a contest the others reclaim from that queue, or preempt within it.
    others = [leaf for leaf in leaves if leaf != filled] if is_over else [filled]
    mix = _Mix(size, leaves if shape is None else others or [filled], filled, shape)
    levels = {"levels": [{"nodeLabel": label} for label in _LEVELS]}
    return [
        *_nodes(dice, size),
        raw("kai.scheduler/v1alpha1", "Topology", "racks", spec=levels),
        *(raw("scheduling.k8s.io/v1", "PriorityClass", name, value=value) for name, value in _CLASSES.items()),
        *queues,
        *(each for j in range(dice.number(*size.jobs)) for each in _job(dice, j, mix)),
    ]


def _nodes(dice: Dice, size: Size) -> Iterator[Raw]:
    for i in range(dice.number(*size.nodes)):
        labels = {"kubernetes.io/hostname": f"n{i}", "zone": f"z{i % 2}", "nvidia.com/gpu.memory": "40000"}
        if dice.chance(0.9):
            labels["rack"] = f"r{i % 3}"
        room = {"cpu": str(dice.number(4, 16)), "memory": f"{dice.number(8, 32)}Gi", "pods": "20"}
        if dice.chance(0.8):
            room[_GPU] = str(dice.one((1, 2, 4)))
        yield raw("v1", "Node", f"n{i}", metadata={"labels": labels}, status={"allocatable": room})


def _queue(dice: Dice, name: str, parent: str) -> Raw:
    def amounts(high: int, unit: int) -> Raw:
        quota = -1 if dice.chance(0.2) else unit * dice.number(0, high)
        limit = -1 if dice.chance(0.8) or quota < 0 else quota + unit * dice.number(0, high)
        return {"quota": quota, "limit": limit, "overQuotaWeight": dice.number(0, 3)}

    resources = {"gpu": amounts(4, 1), "cpu": amounts(8, 1000), "memory": amounts(16, 1000)}
    if dice.chance(0.6):
        resources |= {key: {"quota": -1, "limit": -1, "overQuotaWeight": 1} for key in ("cpu", "memory")}
    spec: Raw = {"resources": resources, "priority": dice.one((100, 100, 200)), "parentQueue": parent}
    if dice.chance(0.1):
        spec["reclaimMinRuntime"] = "30s"
    return raw("scheduling.run.ai/v2", "Queue", name, spec=spec)


def _is_over_its_share(queue: Raw) -> None:
    """Change a queue so that all that its jobs hold may be reclaimed."""
    queue["spec"]["resources"] = {
        name: {"quota": 0, "limit": -1, "overQuotaWeight": 1} for name in ("gpu", "cpu", "memory")
    }


def _job(dice: Dice, j: int, mix: _Mix) -> Iterator[Raw]:
    """Yield a PodGroup and its pods, which differ only in their sub-group."""
    # At least one that fills the cluster, and one that finds it full.
    early, is_contest = j == 0 or (j > 1 and dice.chance(0.5)), mix.shape is not None
    name, size = f"job{j}", dice.number(*mix.size.pods) + (mix.size.more_pods if early else 0)
    least = size if dice.chance(0.1 if early else 0.6) else dice.number(1, 1 if early else size)
    priority = dice.one(_OF_JOBS[1:4] if is_contest else _OF_JOBS)
    spec: Raw = {"queue": dice.one(mix.leaves), "minMember": least, "priorityClassName": priority}
    if early:
        spec |= {"queue": mix.filled, "priorityClassName": next(iter(_CLASSES))}
    parts = [""] * size
    if size > 1 and dice.chance(0.05 if is_contest else 0.2):
        first = dice.number(1, size - 1)
        parts, second = ["a"] * first + ["b"] * (size - first), dice.number(1, size - first)
        spec["subGroups"] = [{"name": "a", "minMember": first}, {"name": "b", "minMember": second}]
        spec["minMember"] = first + second
    if dice.chance(0.25):
        level = dice.one(("requiredTopologyLevel", "preferredTopologyLevel"))
        spec["topologyConstraint"] = {"topology": "racks", level: dice.one(_LEVELS)}
    if dice.chance(0.03 if is_contest else 0.15):
        spec["preemptibility"] = dice.one(("preemptible", "non-preemptible"))
    arrivals, durations = ((0, 40), (100, 400)) if early else ((40, mix.size.last_arrival_s), (5, 200))
    notes = {
        ARRIVAL_ANNOTATION: f"{dice.number(*arrivals)}s",
        DURATION_ANNOTATION: f"{dice.number(*durations)}s",
    }
    metadata = {"namespace": "ns", "annotations": notes}
    yield raw("scheduling.run.ai/v2alpha2", "PodGroup", name, metadata=metadata, spec=spec)
    pod, sharing = mix.shape or _pod(dice, whole=early)
    pod = {**pod, "priorityClassName": spec["priorityClassName"]}
    for i, part in enumerate(parts):
        labels = {"app": name, **({SUB_GROUP_LABEL: part} if part else {})}
        metadata = {"namespace": "ns", "annotations": {GROUP_NAME_ANNOTATION: name, **sharing}, "labels": labels}
        yield raw("v1", "Pod", f"{name}-{i}", metadata=metadata, spec=pod, status={"phase": "Pending"})


def _pod(dice: Dice, *, whole: bool) -> _Shape:
    """Return a pod. ``whole``: most often it has whole GPUs."""
    requests: Raw = {"cpu": str(dice.number(1, 4)), "memory": f"{dice.number(1, 4)}Gi"}
    sharing = {}
    match 0 if whole and dice.chance(0.6) else dice.number(0, 9):
        case 0 | 1 | 2 | 3 | 4:
            requests[_GPU] = str(dice.one((1, 1, 2)))
        case 5 | 6:
            sharing["gpu-fraction"] = dice.one(("0.25", "0.5", "0.7"))
        case 7:
            sharing["gpu-memory"] = dice.one(("10000", "25000"))
    if sharing and dice.chance(0.15):
        sharing["gpu-fraction-num-devices"] = "2"
    resources = {"limits" if dice.chance(0.2) else "requests": requests}
    pod: Raw = {"schedulerName": "kai-scheduler", "containers": [{"name": "main", "resources": resources}]}
    if dice.chance(0.1):
        pod["nodeSelector"] = {"zone": f"z{dice.number(0, 1)}"}
    return pod, sharing
