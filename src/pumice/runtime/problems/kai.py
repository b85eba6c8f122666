"""Problems in KAI's objects. Nothing is removed because of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator

from pumice.model.devices.gpu import GPU_MEMORY_LABEL, GPU_RESOURCE, RESERVATION_NAMESPACE, gpu_groups, node_gpu_memory
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.model.queue import Queue
from pumice.model.status import COMPLETED_STATUSES, status_of_pod
from pumice.model.topology import Topology
from pumice.model.workloads.gang import Gang, TopologyConstraint, pod_set_of
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.problems.problem import Problem, Severity

#: Returns ``; did you mean x?`` if something similar is known.
Guess = Callable[[str, Iterable[str]], str]
#: Problems that are reported for one PodGroup. Bounded, because a tenant writes it.
_REPORTED_MAX = 5
_MILLI = 1000.0


def sharing_problems(queues: Iterable[Queue]) -> Iterator[Problem]:
    """Yield quotas that can never be reached."""
    for queue in queues:
        for name in ("cpu", "memory", "gpu") if queue.sharing is not None else ():
            amount = getattr(queue.sharing, name)
            if amount.limit is not None and (amount.quota is None or amount.quota > amount.limit):
                what = f"limit is below its quota of {name}: the limit applies"
                yield Problem(f"Queue {queue.name}", what, Severity.WARNING)


def gang_problems(
    groups: Iterable[PodGroup], pods: Iterable[Pod], topologies: Collection[Topology], guess: Guess
) -> Iterator[Problem]:
    """Yield pod sets without enough pods, pods without a pod set, and topologies and levels that do not exist."""
    # By group, because a group that looked for its own among those of all groups made the whole quadratic.
    sizes = defaultdict[str, Counter[str]](Counter)
    for pod in pods:
        if pod.group_key:
            sizes[pod.group_key][pod_set_of(pod.labels, pod.annotations).lower()] += 1
    by_name = {topology.name: topology for topology in topologies}
    for group in groups:
        if group.gang is not None and not group.unparsable:
            found = [*_of_pod_sets(group.gang, sizes[group.key]), *_of_topologies(group.gang, by_name, guess)]
            # Groups of a CompositePodGroup may come later, and those of Kubernetes have no other minimum.
            found = found if group.native is not None else [*_of_minimums(group.gang), *found]
            for what, severity in found[:_REPORTED_MAX]:
                yield Problem(f"PodGroup {group.key}", what, severity)


def _of_pod_sets(gang: Gang, sizes: Counter[str]) -> Iterator[tuple[str, Severity]]:
    """Yield what is wrong with a gang's pod sets. ``sizes``: the number of pods by the pod set that they name."""
    pod_sets = {each.name: each.min_member for each in gang.pod_sets()}
    for name, least in pod_sets.items():
        count = sizes[name]
        if count < least:
            yield f"sub-group {name} has a minMember of {least}, but {count} pods", Severity.WARNING
    strays = sorted(name for name in sizes if name not in pod_sets) if pod_sets else []
    for name in strays:
        yield f"has no sub-group {name[:80]}, but pods that name it: these are not placed", Severity.WARNING


def _of_minimums(gang: Gang) -> Iterator[tuple[str, Severity]]:
    """Yield minimums that a gang cannot have, or that have no effect. Source: KAI's webhook of PodGroups, which refuses
    them when they are created; a ``minSubGroup`` above the sub-groups is a warning there."""
    inside = gang.children()
    for name, least in (("", gang.min_sub_group), *((each.name, each.min_sub_group) for each in gang.sub_groups)):
        count, of = len(inside.get(name, ())), f"sub-group {name} " if name else ""
        if least is not None and not count:
            yield f"{of}has a minSubGroup of {least}, but no sub-groups: it has no effect", Severity.WARNING
        elif least is not None and least > count:
            what = f"{of}has a minSubGroup of {least}, but {count} sub-groups: it never has its minimum"
            yield what, Severity.WARNING
    for each in gang.sub_groups:
        if each.min_member and each.name in inside:
            what = f"sub-group {each.name} has a minMember of {each.min_member} beside sub-groups: it has no effect"
            yield what, Severity.WARNING


def _of_topologies(gang: Gang, by_name: dict[str, Topology], guess: Guess) -> Iterator[tuple[str, Severity]]:
    constraints = dict.fromkeys(
        constraint for constraint in (gang.topology, *(sub.topology for sub in gang.sub_groups)) if constraint
    )
    for constraint in constraints:
        yield from _of_constraint(constraint, by_name, guess)


def _of_constraint(
    constraint: TopologyConstraint, by_name: dict[str, Topology], guess: Guess
) -> Iterator[tuple[str, Severity]]:
    # Without a name: the domains of one node label, which need no Topology.
    if not constraint.topology:
        return
    topology = by_name.get(constraint.topology)
    if topology is None:
        yield f"Topology {constraint.topology} does not exist{guess(constraint.topology, by_name)}", Severity.ERROR
        return
    for level in (constraint.required, constraint.preferred):
        if level and topology.label(level) not in topology.levels:
            names = (*topology.levels, *filter(None, topology.aliases))
            yield f"Topology {topology.name} has no level {level}{guess(level, names)}", Severity.ERROR


def share_problems(pods: Iterable[Pod], nodes: Iterable[Node]) -> Iterator[Problem]:
    """Yield shares of GPUs that are invalid, or that no device has."""
    most = max((node_gpu_memory(node.labels) for node in nodes), default=0)
    for pod in pods:
        share = pod.spec.gpu_share
        if share is None:
            continue
        if share.problem:
            yield Problem(f"Pod {pod.key}", f"{share.problem}; it fits no node where GPUs are shared", Severity.WARNING)
        elif share.memory_mib > most:
            there = f"the largest device has {most}" if most else f"no node has the label {GPU_MEMORY_LABEL}"
            what = f"annotation gpu-memory asks for {share.memory_mib} MiB of a GPU: {there}"
            yield Problem(f"Pod {pod.key}", what, Severity.WARNING)


def device_problems(pods: Iterable[Pod], nodes: Iterable[Node]) -> Iterator[Problem]:
    """Yield nodes on which pods share GPUs and use more GPUs than exist."""
    on = defaultdict[str, list[Pod]](list)
    for pod in pods:
        if status_of_pod(pod.phase, node_name=pod.node_name, deleting=False) not in COMPLETED_STATUSES:
            on[pod.node_name].append(pod)
    for node in nodes:
        used, has = _gpus_used(on[node.name]), node.allocatable.get(GPU_RESOURCE) / _MILLI
        if used > has:
            what = f"has {has:g} GPUs, but the pods there use {used:g}: groups without a GPU take in no more pods"
            yield Problem(f"Node {node.name}", what, Severity.WARNING)


def _gpus_used(pods: list[Pod]) -> float:
    """Return how many GPUs pods of one node use: whole ones and one for each group; 0 if no pod shares a GPU."""
    groups: set[str] = set()
    for pod in pods:
        if (share := pod.spec.gpu_share) is not None and (share.fraction or share.memory_mib):
            groups.update(gpu_groups(pod.labels) or (f"{pod.uid}-{i}" for i in range(share.devices)))
    holders = [group for pod in pods if pod.namespace == RESERVATION_NAMESPACE for group in gpu_groups(pod.labels)]
    whole = sum(pod.spec.request.get(GPU_RESOURCE) for pod in pods) / _MILLI - len(groups.intersection(holders))
    return len(groups) + whole if groups else 0.0
