"""One kind of change of which ways out are made, and those that are changes of the job itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from pumice.answers.codes import Code
from pumice.answers.lifts import Lift, lift, line_of, with_more
from pumice.answers.world import Draft, World, waits_for_pods
from pumice.model.devices.gpu import GPU_RESOURCE
from pumice.model.pod import PodSpec
from pumice.model.resources import CPU, Resource


def nothing(count: int) -> tuple[str, ...]:
    return ()


class Step(Struct, frozen=True):
    """A kind of change. ``most``: how often it may be made. ``apply`` makes it so many times in a draft. The others say
    what that is: in words, as commands, as arguments of ``pumice whatif``, what it costs (minimum lowered, resources
    added, work lost), which jobs leave, and how many objects are changed. ``is_last_resort``: it is tried only where
    hardly anything else helps. ``likely``: a count that is tried first, 0 for none. ``means``: equal for steps that
    make the same change to different objects, "" for a step of its own."""

    most: int
    apply: Callable[[Draft, int], None]
    text: Callable[[int], str]
    commands: Callable[[int], tuple[str, ...]] = nothing
    changes: Callable[[int], tuple[str, ...]] = nothing
    cost: Callable[[int], tuple[float, float, float]] = lambda count: (0.0, 0.0, 0.0)
    leaving: Callable[[int], tuple[str, ...]] = nothing
    edits: Callable[[int], int] = lambda count: 1
    is_last_resort: bool = False
    likely: int = 0
    means: str = ""


# -- amounts and commands


def main_resource(specs: list[PodSpec]) -> str:
    """Return the resource in which costs are counted: GPUs if any are asked for, else cores."""
    return GPU_RESOURCE if any(spec.request.get(GPU_RESOURCE) for spec in specs) else CPU


def sum_of(amounts: Iterable[Resource]) -> Resource:
    total = Resource()
    for each in amounts:
        total = total.add(each)
    return total


def waiting_specs(world: World, job: str) -> list[PodSpec]:
    """Return the specs of the pods of a job that wait; of one whose pods are created once it is admitted, as many equal
    ones as its minimum says."""
    group = world.groups.get(job)
    if group is None or group.min_resources is None or not waits_for_pods(world, job):
        return [pod.spec for pod in world.pods_of.get(job, ()) if not pod.node_name]
    least = max(group.min_member, 1)
    return [PodSpec(with_more(group.min_resources.multi(1.0 / least), "pods", 1.0))] * least


def patch_of(kind: str, name: str, change: object, namespace: str = "") -> str:
    where = f" -n {namespace}" if namespace else ""
    return f"kubectl patch {kind} {name}{where} --type merge -p '{json.dumps(change, separators=(',', ':'))}'"


# -- the minimum


def lower_minimum(world: World, job: str, room: int = 0) -> Iterator[Step]:
    """Lower the minimum. ``room``: for how many of the pods there seems to be room."""
    group = world.groups.get(job)
    if group is None or (group.gang is not None and group.gang.sub_groups):
        return
    least = group.min_member
    exist, holds = len(waiting_specs(world, job)), sum(1 for pod in world.pods_of.get(job, ()) if pod.node_name)
    if least <= 1 or exist <= 1:
        return

    def apply(draft: Draft, count: int) -> None:
        found = draft.group(job)
        if found is not None and count:
            left = least - count
            wanted = found.min_resources
            draft.put(
                replace(
                    found,
                    min_member=left,
                    min_task_member=_lowered(found.min_task_member, count),
                    min_resources=None if wanted is None else wanted.multi(left / least),
                )
            )

    def patch(count: int) -> tuple[str, ...]:
        spec: dict[str, object] = {"minMember": least - count}
        if group.min_task_member:
            spec["minTaskMember"] = _lowered(group.min_task_member, count)
        if group.min_resources is not None:
            wanted = group.min_resources.multi((least - count) / least)
            spec["minResources"] = {name: text for name, text in wanted.to_list().items() if text != "0"}
        return (patch_of("podgroup", group.name, {"spec": spec}, group.namespace),)

    yield Step(
        least - 1,
        apply,
        lambda count: f"minMember {least - count} instead of {least}",
        patch,
        lambda count: (f"--set job/{job}.minMember={least - count}",),
        lambda count: (count / least, 0.0, 0.0),
        likely=max(least - holds - room, 0) if room else 0,
    )


def _lowered(roles: Mapping[str, int], count: int) -> dict[str, int]:
    """Return the minimums of roles, the largest of them smaller by so many pods, and no role below one."""
    found, left = dict(roles), count
    for role in sorted(found, key=lambda role: (-found[role], role)):
        taken = min(left, max(found[role] - 1, 0))
        found[role], left = found[role] - taken, left - taken
    return found


# -- the job itself, as a whole

_WHOLE = {
    Code.GATE: "remove the scheduling gates of its pods",
    Code.QUEUE_CLOSED: "open the queue",
    Code.INCOMPLETE: "lower minMember to the pods that exist, or create the missing ones",
    Code.RESOURCE_QUOTA: "lift the ResourceQuotas of the namespace",
    Code.QUEUE_LIMIT: "lift the limits of the queue and of those above it",
    Code.QUEUE_SHARE: "let the queue, and those above it, deserve all there is",
    Code.GUARANTEE: "withdraw the guarantees of the other queues",
    Code.ADMISSION: "lift the overcommit factor",
    Code.SELECTOR: "drop the node selector and the required node affinity of the pods",
    Code.TAINT: "let the pods tolerate all taints",
    Code.PORT: "drop the host ports of the pods",
    Code.VOLUME: "drop the volume claims of the pods",
    Code.DEVICE: "drop the claims of devices of the pods",
    Code.AFFINITY: "drop the required pod affinity and anti-affinity",
    Code.SPREAD: "drop the topology spread constraints of the pods",
    Code.DOMAIN: "drop the required topology",
    Code.ORDER: "let the other waiting jobs wait, or leave",
    Code.ROOM: "make room on each node",
}


#: What it costs to take away altogether what could be changed by an amount: more than most amounts.
ALTOGETHER = 10.0


def whole(world: World, job: str, what: Lift, *, has_amounts: bool = False) -> Step:
    """Take an obstacle away as a whole. ``has_amounts``: smaller changes may do, and are to be tried first."""
    return Step(
        1,
        lambda draft, count: lift(draft, job, what) if count else None,
        lambda count: _WHOLE[what.code],
        lambda count: tuple(_commands_of(world, job, what.code)),
        cost=lambda count: (0.0, ALTOGETHER if has_amounts else 0.05, 0.0),
        is_last_resort=has_amounts,
    )


def _commands_of(world: World, job: str, code: Code) -> Iterator[str]:
    space, name = job.split("/", 1)
    pods = [pod for pod in world.pods_of.get(job, ()) if not pod.node_name]
    match code:
        case Code.GATE:
            for pod in pods:
                yield patch_of("pod", pod.name, {"spec": {"schedulingGates": []}}, space)
        case Code.QUEUE_CLOSED:
            for queue in line_of(world, job):
                if queue.state != "Open":
                    yield f"vcctl queue operate --name {queue.name} --action open"
        case Code.INCOMPLETE:
            yield patch_of("podgroup", name, {"spec": {"minMember": len(world.pods_of.get(job, ()))}}, space)
        case Code.DOMAIN:
            yield patch_of("podgroup", name, {"spec": {"networkTopology": None}}, space)
        case Code.GUARANTEE:
            own = line_of(world, job)
            for queue in world.queues.values():
                if queue.guarantee is not None and queue not in own:
                    yield patch_of("queue", queue.name, {"spec": {"guarantee": None}})
