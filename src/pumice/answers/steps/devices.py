"""Ways to meet claims of devices: fewer devices in a claim, and more of them on a node."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from pumice.answers.codes import Code
from pumice.answers.lifts import Lift
from pumice.answers.steps.nodes import may_use
from pumice.answers.steps.step import Step, whole
from pumice.answers.world import Draft, World
from pumice.model.devices.claims import Device, DeviceRequest, ResourceClaim, ResourceSlice
from pumice.model.node import Node
from pumice.reasons.words import counted

#: Nodes that are given more devices each by itself, and kinds of devices that are tried.
_NODES_MAX, _KINDS_MAX = 3, 3


def meet_claims(world: World, job: str) -> Iterator[Step]:
    """Lower the counts of claims, and add devices like those that there are."""
    claims = _claims(world, job)
    most = max((_most_of(claim) for claim in claims), default=0)
    if most > 1:
        yield _fewer(claims, most)
    asked = sum(option.count for claim in claims for request in claim.requests for option in request.options[:1])
    nodes = _nodes(world, job)
    for driver, device in _kinds(world):
        yield from (_more([node], driver, device, asked, world) for node in nodes[:_NODES_MAX])
        if len(nodes) > 1:
            yield _more(nodes, driver, device, asked, world)
    yield whole(world, job, Lift(Code.DEVICE), has_amounts=bool(claims))


def _claims(world: World, job: str) -> list[ResourceClaim]:
    """Return the claims of the pods of a job that wait which have been given nothing."""
    names = {
        f"{pod.namespace}/{name}"
        for pod in world.pods_of.get(job, ())
        if not pod.node_name
        for name in pod.spec.resource_claims
    }
    found = (world.objects.get((ResourceClaim, name)) for name in sorted(names))
    return [claim for claim in found if isinstance(claim, ResourceClaim) and claim.allocation is None]


def _most_of(claim: ResourceClaim) -> int:
    return max((option.count for request in claim.requests for option in request.options), default=0)


def _fewer(claims: list[ResourceClaim], most: int) -> Step:
    """Lower the largest counts of the claims of a job."""

    def lowered(claim: ResourceClaim, count: int) -> tuple[DeviceRequest, ...]:
        left = most - count
        return tuple(
            replace(
                request,
                options=tuple(replace(option, count=min(option.count, left)) for option in request.options),
            )
            for request in claim.requests
        )

    def apply(draft: Draft, count: int) -> None:
        for claim in claims if count else ():
            draft.put(replace(claim, requests=lowered(claim, count)))

    def commands(count: int) -> Iterator[str]:
        # The spec of a claim cannot be changed, so that it is made anew.
        for claim in claims:
            if _most_of(claim) > most - count:
                large = f".spec.devices.requests[].exactly | select(.count > {most - count}) | .count"
                yield (
                    f"kubectl get resourceclaim {claim.name} -n {claim.namespace} -o json"
                    f" | jq '({large}) = {most - count}'"
                    " | kubectl replace --force -f -"
                )

    return Step(
        most - 1,
        apply,
        lambda count: f"claims for {counted(most - count, 'device')} instead of {most}",
        lambda count: tuple(commands(count)),
        cost=lambda count: (count / most, 0.0, 0.0),
        edits=lambda count: len(claims),
    )


def _nodes(world: World, job: str) -> list[Node]:
    """Return nodes that the pods of a job may use, those without taints first."""
    spec = next((pod.spec for pod in world.pods_of.get(job, ()) if not pod.node_name), None)
    nodes = [node for node in world.nodes if spec is not None and not node.unparsable and may_use(spec, node)]
    return sorted(nodes, key=lambda node: (node.unschedulable, len(node.taints), node.name))


def _kinds(world: World) -> list[tuple[str, Device]]:
    """Return devices of nodes that differ in what selectors read, with their drivers."""
    found: dict[object, tuple[str, Device]] = {}
    for each in world.of(ResourceSlice):
        for device in each.devices if each.node_name else ():
            if not (device.taints or device.unknown or device.consumes):
                found.setdefault((each.driver, device.attributes, device.capacity), (each.driver, device))
    return list(found.values())[:_KINDS_MAX]


def _more(nodes: list[Node], driver: str, like: Device, asked: int, world: World) -> Step:
    """Add devices to each of some nodes."""
    there = {node.name: [] for node in nodes}  # type: dict[str, list[ResourceSlice]]
    for each in world.of(ResourceSlice):
        if each.driver == driver and each.node_name in there:
            there[each.node_name].append(each)

    def apply(draft: Draft, count: int) -> None:
        more = tuple(replace(like, name=f"{like.name}-new-{number}") for number in range(count))
        for name, slices in there.items() if count else ():
            if slices:
                draft.put(replace(slices[0], devices=(*slices[0].devices, *more)))
            else:
                draft.put(ResourceSlice(f"{name}-{driver}-new", driver, f"{name}-new", node_name=name, devices=more))

    where = f"node {nodes[0].name}" if len(nodes) == 1 else f"each of {counted(len(nodes), 'node')}"
    return Step(
        max(asked, 1),
        apply,
        lambda count: f"{counted(count, 'more device')} like {like.name} of {driver} on {where}",
        cost=lambda count: (0.0, float(count * len(nodes)), 0.0),
        edits=lambda count: len(nodes),
    )
