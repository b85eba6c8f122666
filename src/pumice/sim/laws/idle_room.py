"""S18: no pod is evicted for pods that fit into idle room. For KAI, whose ``allocate`` comes first.

Checked for pods that only room on nodes keeps from running. A pod that shares GPUs is counted as if it took each of its
devices alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pumice.model.decisions import Evict
from pumice.model.devices.gpu import GPU_RESOURCE, gpu_groups
from pumice.model.node import Node
from pumice.model.pod import ENDED, Pod
from pumice.model.resources import PODS
from pumice.sim.cluster import SimCluster
from pumice.sim.measures.node_usage import amounts_of

#: Reasons of KAI's evictions for others.
FOR_OTHERS = ("preempt", "reclaim", "consolidation")


def needless_evictions(
    cluster: SimCluster, promised: Mapping[str, str], evicted: Sequence[Evict], before: Mapping[str, Pod]
) -> str:
    """Return a job that would have had idle room, for which a cycle evicted, in words, or "".

    ``promised``: the nodes that the cycle reserved, by pod. ``before``: victims that are gone, as they were.
    """
    victims = {each.pod: each for each in evicted if each.reason in FOR_OTHERS}
    # Room that the scheduler has not heard of is not idle for it.
    if not victims or cluster.undelivered.held_pods():
        return ""
    waiting: dict[str, list[Pod]] = defaultdict(list)
    for key in promised:
        if key in cluster.pods and key not in victims:
            waiting[cluster.pods[key].group_key].append(cluster.pods[key])
    # A victim whose bind waited was on its node for the scheduler, and on none in the cluster.
    on = {each.pod: each.node for each in evicted}
    there = [(pod.node_name, pod) for pod in cluster.decided_pods().values() if pod.node_name]
    there += [(on.get(key, pod.node_name), pod) for key, pod in before.items()]
    held = {pod.uid: (node, pod) for node, pod in there if pod.phase not in ENDED}
    for job, pods in sorted(waiting.items()):
        if not _is_plain(cluster, job, pods):
            continue
        # What is reserved for others, wherever, counts as taken.
        others = {
            cluster.pods[key].uid: (node, cluster.pods[key])
            for key, node in promised.items()
            if key in cluster.pods and cluster.pods[key].group_key != job
        }
        if _fit(pods, _idle(cluster.nodes.values(), (held | others).values())):
            names = ", ".join(sorted(victims))
            return f"S18: {names} were evicted, and {job} ({len(pods)} pods) would have had idle room"
    return ""


def _is_plain(cluster: SimCluster, job: str, pods: Sequence[Pod]) -> bool:
    """Return True if only room decides where the pods of a job can run, and all ask for the same."""
    group = cluster.groups.get(job)
    if group is None or group.gang is None or group.gang.topology or group.gang.sub_groups or group.unparsable:
        return False
    # A victim of the same queue may have left for a limit, and a job that nothing may evict needs room in the quota.
    rank = cluster.priority_classes.get(group.priority_class_name)
    if rank is None or not group.gang.preemptible(rank.value) or _is_limited(cluster, group.queue):
        return False
    spec = pods[0].spec
    return spec.asks_for_room_alone and all(pod.spec == spec and not pod.gates and not pod.unparsable for pod in pods)


def _is_limited(cluster: SimCluster, queue: str) -> bool:
    """Return True if a queue, or one above it, has a limit."""
    seen: set[str] = set()
    while queue and queue not in seen:
        seen.add(queue)
        found = cluster.queues.get(queue)
        if found is None or found.sharing is None:
            return True
        sharing = found.sharing
        if any(each.limit is not None for each in (sharing.cpu, sharing.memory, sharing.gpu)):
            return True
        queue = found.parent
    return False


def _idle(nodes: Iterable[Node], held: Iterable[tuple[str, Pod]]) -> list[dict[str, float]]:
    """Return what is idle on each open node."""
    found = {
        node.name: dict(amounts_of(node.allocatable))
        for node in nodes
        if not node.unschedulable and not node.taints and not node.unparsable
    }
    groups: dict[str, set[str]] = defaultdict(set)
    for name, pod in held:
        left = found.get(name)
        if left is None:
            continue
        for resource, amount in amounts_of(pod.spec.request):
            left[resource] = left.get(resource, 0.0) - amount
        if pod.spec.gpu_share is not None:
            own = gpu_groups(pod.labels) or tuple(f"{pod.uid}-{i}" for i in range(pod.spec.gpu_share.devices))
            groups[name].update(own)
    for name, taken in groups.items():
        found[name][GPU_RESOURCE] = found[name].get(GPU_RESOURCE, 0.0) - 1000.0 * len(taken) if name in found else 0.0
    return list(found.values())


def _fit(pods: Sequence[Pod], idle: Iterable[Mapping[str, float]]) -> bool:
    """Return True if equal pods fit into idle room."""
    spec = pods[0].spec
    asked = dict(amounts_of(spec.request))
    if spec.gpu_share is not None:
        asked[GPU_RESOURCE] = asked.get(GPU_RESOURCE, 0.0) + 1000.0 * spec.gpu_share.devices
    asked = {name: amount for name, amount in asked.items() if name != PODS}
    places = sum(max(0, int(min(left.get(name, 0.0) // amount for name, amount in asked.items()))) for left in idle)
    return bool(asked) and places >= len(pods)
