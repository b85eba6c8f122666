"""The obstacles of a job, each removed as a whole: the parts of which a reason is made.

A lift takes one kind of obstacle away and nothing else: the cycle then says whether the job starts without it.
``ways`` finds the smallest amount of it that is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from pumice.answers.codes import Code, code_of
from pumice.answers.world import Draft, World, waits_for_pods
from pumice.model import blockers as b
from pumice.model.blockers import Blocker
from pumice.model.devices.gpu import GPU_RESOURCE
from pumice.model.node import Node
from pumice.model.pod import Pod, PodSpec, Toleration
from pumice.model.queue import Queue, Quota, ResourceQuota
from pumice.model.resources import CPU, MEMORY, Resource
from pumice.model.workloads.podgroup import PodGroup

#: Every taint, and every cordon.
TOLERATES_ALL = (Toleration(operator="Exists"),)
#: Beside no other weight, and one that whole numbers of 64 bits still hold.
_WEIGHT_MAX = 1_000_000
_FACTOR_MAX = 1e6


class Lift(Struct, frozen=True):
    """One obstacle. ``name``: of the resource for ``ROOM``, else empty."""

    code: Code
    name: str = ""


def lift(draft: Draft, job: str, what: Lift) -> None:
    """Take an obstacle of a job away."""
    if what.code is Code.ROOM:
        _make_room(draft, job, what.name)
    else:
        _LIFTS[what.code](draft, job)


def relevant(world: World, job: str) -> Iterator[Lift]:
    """Yield all obstacles that a job could have, by what it asks for, the preferred ones first."""
    pods, group = world.pods_of.get(job, []), world.groups.get(job)
    queues = line_of(world, job)
    specs = [pod.spec for pod in pods if not pod.node_name]
    is_unborn = waits_for_pods(world, job)
    requests = [spec.request for spec in specs]
    if group is not None and group.min_resources is not None and is_unborn:
        requests.append(group.min_resources)
    found = {
        Code.GATE: any(pod.gates for pod in pods),
        Code.QUEUE_CLOSED: any(queue.state != "Open" for queue in queues),
        Code.INCOMPLETE: group is not None and len(pods) < group.min_member and not is_unborn,
        Code.RESOURCE_QUOTA: bool(quotas_of(world, job)),
        Code.QUEUE_LIMIT: any(_is_limited(queue) for queue in queues),
        Code.QUEUE_SHARE: bool(queues),
        Code.GUARANTEE: any(q.guarantee is not None for q in world.queues.values() if q not in queues),
        Code.ADMISSION: any(option.spec.name == "overcommit" for option in world.policy.options),
        Code.SELECTOR: any(spec.node_selector or spec.affinity.node_required is not None for spec in specs),
        Code.TAINT: any(node.taints or node.unschedulable for node in world.nodes),
        Code.PORT: any(spec.host_ports for spec in specs),
        Code.VOLUME: any(spec.claim_names for spec in specs),
        Code.DEVICE: any(spec.resource_claims or spec.devices or spec.numa for spec in specs),
        Code.AFFINITY: any(spec.affinity.pod_required for spec in specs) or world.has_anti_affinity,
        Code.SPREAD: any(spec.spread for spec in specs),
        Code.DOMAIN: group is not None and has_topology(group),
    }
    yield from (Lift(code) for code, is_relevant in found.items() if is_relevant)
    yield from (Lift(Code.ROOM, name) for name in asked_names(requests, specs))
    yield Lift(Code.ORDER)


def lifts_of(blocker: Blocker, world: World, job: str) -> list[Lift]:
    """Return the obstacles that a blocker names, those of its cause where it has one."""
    match blocker:
        case b.NotAdmitted(by) if by:
            return [found for each in by for found in lifts_of(each, world, job)]
        case b.GangPartial(first=b.Blocker() as first) | b.CannotEvict(because=b.Blocker() as first):
            return lifts_of(first, world, job)
        case b.QueueLimit():
            return _lifts_of_limit(blocker)
        case b.Shortage(resource):
            return [Lift(Code.ROOM, resource)]
        case b.HeldByOthers(resource=resource):
            return [Lift(Code.ROOM, resource)]
        case b.TooManyPods():
            return [Lift(Code.ROOM, "pods")]
        case b.NoPart():
            return [Lift(Code.ROOM, GPU_RESOURCE)]
        case b.Missing(b.RESOURCE, name):
            return [Lift(Code.ROOM, name)]
        case b.Fragments(_, parts):
            return [Lift(Code.ROOM, each.resource) for each in parts[0].has]
    code = code_of(blocker)
    return [Lift(code)] if code in _LIFTS else []


def _lifts_of_limit(limit: b.QueueLimit) -> list[Lift]:
    """Return the limit itself; before it the resources of which no limit lets a job take as much, for there is less in
    all, and after it those of which a larger cluster raises the limit."""
    over = [each for each in limit.exceeded if each.total > 0.0]
    beyond = [Lift(Code.ROOM, each.resource) for each in over if each.asked > each.total]
    by_size = [each for each in over if limit.kind == b.OVERCOMMIT or each.limit >= each.total]
    return list(dict.fromkeys([*beyond, Lift(code_of(limit)), *(Lift(Code.ROOM, each.resource) for each in by_size)]))


# -- the job and its queues


def line_of(world: World, job: str) -> list[Queue]:
    """Return the queue of a job and those above it, the nearest first."""
    group, found = world.groups.get(job), list[Queue]()
    name = (group.queue or "default") if group is not None else ""
    while name in world.queues and world.queues[name] not in found:
        found.append(world.queues[name])
        name = world.queues[name].parent
    return found


def asked_names(requests: list[Resource], specs: list[PodSpec]) -> list[str]:
    """Return the resources that are asked for, those that are scarcest as a rule first, and pod slots last."""
    names = sorted({name for each in requests for name in each.scalars or () if each.get(name)})
    plain = [name for name in (CPU, MEMORY) if any(each.get(name) for each in requests)]
    shared = [GPU_RESOURCE] if any(spec.gpu_share is not None for spec in specs) else []
    return list(dict.fromkeys([*(name for name in names if name != "pods"), *shared, *plain, "pods"]))


def has_topology(group: PodGroup) -> bool:
    gang = group.gang
    inside = gang is not None and (gang.topology is not None or any(each.topology for each in gang.sub_groups))
    return group.topology is not None or any(each.topology for each in group.sub_groups) or inside


def _is_limited(queue: Queue) -> bool:
    share = queue.sharing
    kai = share is not None and any(each.limit is not None for each in (share.cpu, share.memory, share.gpu))
    return queue.capability is not None or kai or bool(queue.group_limits)


def quotas_of(world: World, job: str) -> list[ResourceQuota]:
    """Return the ResourceQuotas of the namespace of a job."""
    space = job.partition("/")[0]
    return [each for each in world.quotas if each.namespace == space]


def with_more(found: Resource, name: str, amount: float) -> Resource:
    """Return amounts with so much more of one resource; slots of pods count in both places where they are."""
    if name == CPU:
        return replace(found, milli_cpu=found.milli_cpu + amount)
    if name == MEMORY:
        return replace(found, memory=found.memory + amount)
    more = found.add_scalar(name, amount)
    return replace(more, max_task_num=more.max_task_num + int(amount)) if name == "pods" else more


# -- lifts


def _make_room(draft: Draft, job: str, name: str) -> None:
    """Let every node have as much more of a resource as the whole job asks for, and a node there be."""
    asked = sum(pod.spec.request.get(name) for pod in draft.pods(job)) or 1000.0 * len(draft.pods(job))
    group = draft.group(job)
    if not asked and group is not None and group.min_resources is not None:
        asked = group.min_resources.get(name)  # its pods are created once it is admitted
    nodes = draft.nodes() or [Node("node-new-1", Resource(), labels={"kubernetes.io/hostname": "node-new-1"})]
    for node in nodes:
        room = with_more(node.allocatable, name, asked)
        draft.put(replace(node, allocatable=room, capacity=room.set_max(node.capacity)))


def _on_specs(change: Callable[[PodSpec], PodSpec]) -> Callable[[Draft, str], None]:
    """Return the lift that changes the spec of each pod of the job that has no node."""

    def apply(draft: Draft, job: str) -> None:
        for pod in draft.pods(job):
            if not pod.node_name:
                draft.put(replace(pod, spec=change(pod.spec)))

    return apply


def ungate(draft: Draft, job: str) -> None:
    for pod in draft.pods(job):
        draft.put(replace(pod, gates=()))


def open_queues(draft: Draft, job: str) -> None:
    line = line_of(draft.world, job)
    for queue in draft.queues():
        if draft.world.queues.get(queue.name) in line:
            draft.put(replace(queue, state="Open"))


def complete(draft: Draft, job: str) -> None:
    group, exist = draft.group(job), len(draft.pods(job))
    if group is not None:
        gang = group.gang
        if gang is not None:
            parts = tuple(replace(each, min_member=min(each.min_member, exist)) for each in gang.sub_groups)
            gang = replace(gang, sub_groups=parts)
        draft.put(replace(group, min_member=min(group.min_member, exist), min_task_member={}, gang=gang))


def _without_quotas(draft: Draft, job: str) -> None:
    for quota in quotas_of(draft.world, job):
        draft.put(replace(quota, hard=Resource(), limited=()))


def _unlimited(quota: Quota) -> Quota:
    return replace(quota, limit=None)


def _without_limits(draft: Draft, job: str) -> None:
    for queue in draft.queues():
        if queue.name not in [each.name for each in line_of(draft.world, job)]:
            continue
        share = queue.sharing
        if share is not None:
            share = replace(
                share, cpu=_unlimited(share.cpu), memory=_unlimited(share.memory), gpu=_unlimited(share.gpu)
            )
        draft.put(replace(queue, capability=None, group_limits=(), sharing=share))


def _deserving(draft: Draft, job: str) -> None:
    every = Resource()
    for node in draft.nodes():
        every = every.add(node.allocatable)
    names = [each.name for each in line_of(draft.world, job)]
    for queue in draft.queues():
        if queue.name not in names:
            # With any weight a small part of what it asks nothing of would be kept for it.
            draft.put(replace(queue, weight=0))
            continue
        share = queue.sharing
        if share is not None:
            parts = {name: replace(getattr(share, name), quota=None) for name in ("cpu", "memory", "gpu")}
            share = replace(share, **parts)
        deserved = None if queue.deserved is None else every.set_max(queue.deserved)
        draft.put(replace(queue, weight=_WEIGHT_MAX, deserved=deserved, sharing=share))


def _without_guarantees(draft: Draft, job: str) -> None:
    names = [each.name for each in line_of(draft.world, job)]
    for queue in draft.queues():
        if queue.name not in names and queue.guarantee is not None:
            draft.put(replace(queue, guarantee=None))


def with_overcommit(draft: Draft, factor: float) -> None:
    """Set the factor of the plugin ``overcommit``."""
    tiers = tuple(
        tuple(
            replace(option, arguments={**option.arguments, "overcommit_factor": factor})
            if option.spec.name == "overcommit"
            else option
            for option in tier
        )
        for tier in draft.policy.tiers
    )
    draft.policy = replace(draft.policy, tiers=tiers)


def without_topology(draft: Draft, job: str) -> None:
    group = draft.group(job)
    if group is None:
        return
    parts = tuple(replace(each, topology=None) for each in group.sub_groups)
    gang = group.gang
    if gang is not None:
        inner = tuple(replace(each, topology=None) for each in gang.sub_groups)
        gang = replace(gang, topology=None, sub_groups=inner)
    draft.put(replace(group, topology=None, sub_groups=parts, gang=gang))


def _without_affinity(draft: Draft, job: str) -> None:
    def plain(spec: PodSpec) -> PodSpec:
        return replace(spec, affinity=replace(spec.affinity, pod_required=(), anti_required=()))

    for obj in list(draft.all(Pod)):
        # The anti-affinity of pods that run keeps others off as well.
        if isinstance(obj, Pod) and (obj.group_key == job or obj.spec.affinity.anti_required):
            draft.put(replace(obj, spec=plain(obj.spec)))


def _alone(draft: Draft, job: str) -> None:
    """Take away the pods of others that wait, and what is promised to jobs that have no pod on a node."""
    for other, pods in draft.world.pods_of.items():
        waiting = [pod for pod in pods if not pod.node_name]
        if other == job or not waiting:
            continue
        for pod in waiting:
            draft.remove(Pod, pod.key)
        if len(waiting) == len(pods):
            draft.remove(PodGroup, other)


def _no_selector(spec: PodSpec) -> PodSpec:
    return replace(spec, node_selector=(), affinity=replace(spec.affinity, node_required=None))


_LIFTS: MappingProxyType[Code, Callable[[Draft, str], None]] = MappingProxyType(
    {
        Code.GATE: ungate,
        Code.QUEUE_CLOSED: open_queues,
        Code.INCOMPLETE: complete,
        Code.RESOURCE_QUOTA: _without_quotas,
        Code.QUEUE_LIMIT: _without_limits,
        Code.QUEUE_SHARE: _deserving,
        Code.GUARANTEE: _without_guarantees,
        Code.ADMISSION: lambda draft, job: with_overcommit(draft, _FACTOR_MAX),
        Code.SELECTOR: _on_specs(_no_selector),
        Code.TAINT: _on_specs(lambda spec: replace(spec, tolerations=TOLERATES_ALL)),
        Code.PORT: _on_specs(lambda spec: replace(spec, host_ports=())),
        Code.VOLUME: _on_specs(lambda spec: replace(spec, claim_names=())),
        Code.DEVICE: _on_specs(lambda spec: replace(spec, resource_claims=(), devices=None, numa=None)),
        Code.AFFINITY: _without_affinity,
        Code.SPREAD: _on_specs(lambda spec: replace(spec, spread=())),
        Code.DOMAIN: without_topology,
        Code.ORDER: _alone,
    }
)
