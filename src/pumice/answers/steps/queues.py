"""Ways to raise what a queue or a namespace may have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil

from msgspec.structs import replace

from pumice.answers.amounts import amount_text, quantity_text, step_of
from pumice.answers.codes import Code
from pumice.answers.lifts import Lift, line_of, quotas_of, with_more, with_overcommit
from pumice.answers.steps.step import Step, patch_of, sum_of, whole
from pumice.answers.world import Draft, World
from pumice.model.blockers import Blocker, QueueLimit
from pumice.model.devices.gpu import GPU_RESOURCE
from pumice.model.pod import PodSpec
from pumice.model.queue import Queue, ResourceQuota
from pumice.model.resources import CPU, MEMORY, Resource

_UNITS_MAX = 1 << 16


def _over(blocker: Blocker | None) -> Mapping[str, float]:
    """Return by how much a limit would be exceeded, by resource, as far as the cycle said.

    A limit is raised by so much first: where it is raised by more, others may come in before the job."""
    found = blocker.exceeded if isinstance(blocker, QueueLimit) else ()
    return {each.resource: each.excess for each in found}


def _units(amount: float, unit: float) -> int:
    """Return how many whole units an amount takes, 0 for none."""
    return ceil(round(amount / unit, 6))


def raise_limits(world: World, job: str, blocker: Blocker | None = None) -> Iterator[Step]:
    """Raise the limit of the queue and of those above it, in the resources that the job asks for. ``blocker``: what the
    cycle says of the limit."""
    over = _over(blocker)
    line = [queue for queue in line_of(world, job) if queue.capability is not None]
    specs = [pod.spec for pod in world.pods_of.get(job, ())]
    asked = sum_of([spec.request for spec in specs])
    names = [name for name in (GPU_RESOURCE, CPU, MEMORY) if asked.get(name)]
    names += [name for name in sorted(asked.scalars or ()) if name not in (*names, "pods")]
    for queue in line:
        limited = [n for n in names if _has(queue.capability, n)]
        yield from (_raise(queue, (name,), asked, specs, over) for name in limited)
        if len(limited) > 1:
            yield _raise(queue, tuple(limited), asked, specs, over)
    if len(line) > 1:
        yield from (_raise_line(line, name, asked, specs, over) for name in names)
    kai = [queue for queue in line_of(world, job) if queue.sharing is not None]
    if kai:
        yield from _raise_sharing(kai, "limit", asked, specs, over)
        yield whole(world, job, Lift(Code.QUEUE_LIMIT), has_amounts=True)


_PARTS = (("gpu", GPU_RESOURCE), ("cpu", CPU), ("memory", MEMORY))


def _cost_of(name: str, amount: float) -> float:
    """Return what it costs to raise a limit by an amount: a hundredth for each GPU, core or GiB. Together resources
    cost as much as one by one, so that none is raised without need."""
    return 0.01 * amount / step_of(name, 0.0)


def _has(amount: Resource | None, name: str) -> bool:
    return amount is not None and (name in (amount.scalars or ()) or (name in (CPU, MEMORY) and amount.get(name) > 0))


def _unit(name: str, specs: list[PodSpec]) -> float:
    return step_of(name, min((spec.request.get(name) for spec in specs if spec.request.get(name)), default=0.0))


def _raise(
    queue: Queue, names: tuple[str, ...], asked: Resource, specs: list[PodSpec], over: Mapping[str, float]
) -> Step:
    """Raise one limit by whole units; several resources together by parts of what the job asks for."""
    units = {name: _unit(name, specs) for name in names}
    if len(names) > 1:  # step by step as pods ask for them
        units = {name: asked.get(name) / max(len(specs), 1) for name in names}
    most = max(2, *(int(2 * asked.get(name) / units[name]) + 2 for name in names)) if units else 2

    def raised(found: Resource | None, count: int) -> Resource:
        room = found or Resource()
        for name in names:
            room = with_more(room, name, units[name] * count)
        return room

    def apply(draft: Draft, count: int) -> None:
        obj = draft.get(Queue, queue.name)
        if isinstance(obj, Queue):
            draft.put(replace(obj, capability=raised(obj.capability, count)))

    def patch(count: int) -> tuple[str, ...]:
        room = raised(queue.capability, count)
        values = {name: quantity_text(name, room.get(name)) for name in names}
        return (patch_of("queue", queue.name, {"spec": {"capability": values}}),)

    def text(count: int) -> str:
        parts = [amount_text(name, units[name] * count) for name in names]
        return f"queue {queue.name}: capability {' and '.join(f'+{part}' for part in parts)}"

    def changes(count: int) -> tuple[str, ...]:
        room = raised(queue.capability, count)
        return tuple(
            f"--set queue/{queue.name}.capability.{name}={quantity_text(name, room.get(name))}" for name in names
        )

    return Step(
        min(most, _UNITS_MAX),
        apply,
        text,
        patch,
        changes,
        lambda count: (0.0, sum(_cost_of(name, count * units[name]) for name in names), 0.0),
        likely=min(most, _UNITS_MAX, max(_units(over.get(name, 0.0), units[name]) for name in names)),
    )


def _raise_line(line: list[Queue], name: str, asked: Resource, specs: list[PodSpec], over: Mapping[str, float]) -> Step:
    """Raise the limits of all queues of a line together."""
    steps = [_raise(queue, (name,), asked, specs, over) for queue in line if _has(queue.capability, name)]

    def apply(draft: Draft, count: int) -> None:
        for step in steps:
            step.apply(draft, count)

    return Step(
        max((step.most for step in steps), default=1),
        apply,
        lambda count: "; ".join(step.text(count) for step in steps),
        lambda count: tuple(line for step in steps for line in step.commands(count)),
        lambda count: tuple(line for step in steps for line in step.changes(count)),
        lambda count: (0.0, sum(step.cost(count)[1] for step in steps), 0.0),
        edits=lambda count: len(steps),
        likely=max((step.likely for step in steps), default=0),
    )


def _raise_sharing(
    line: list[Queue], field: str, asked: Resource, specs: list[PodSpec], over: Mapping[str, float]
) -> Iterator[Step]:
    """Raise limits or quotas of queues of KAI: of each resource that is asked for, and of all of them together."""
    parts = [
        (part, name)
        for part, name in _PARTS
        if asked.get(name) and any(_sharing_of(queue, part, field) is not None for queue in line)
    ]
    yield from (_raise_parts(line, (each,), field, asked, specs, over) for each in parts)
    if len(parts) > 1:
        yield _raise_parts(line, tuple(parts), field, asked, specs, over)


def _sharing_of(queue: Queue, part: str, field: str) -> float | None:
    found: float | None = getattr(getattr(queue.sharing, part), field)
    return found


def _raise_parts(
    line: list[Queue],
    parts: tuple[tuple[str, str], ...],
    field: str,
    asked: Resource,
    specs: list[PodSpec],
    over: Mapping[str, float],
) -> Step:
    """Raise one resource by whole units, or several together by what a pod asks for."""
    units = {part: step_of(name, 0.0) if len(parts) == 1 else asked.get(name) / len(specs) for part, name in parts}
    limited = [
        (queue, part, name) for queue in line for part, name in parts if _sharing_of(queue, part, field) is not None
    ]

    def amount(queue: Queue, part: str, count: int) -> float:
        return (_sharing_of(queue, part, field) or 0.0) + units[part] * count

    def shown(queue: Queue, part: str, count: int) -> float:
        value = round(amount(queue, part, count) / _SHARING_UNITS[part], 3)
        return int(value) if value.is_integer() else value

    def apply(draft: Draft, count: int) -> None:
        for queue, part, _ in limited:
            obj = draft.get(Queue, queue.name)
            if isinstance(obj, Queue) and obj.sharing is not None:
                quota = replace(getattr(obj.sharing, part), **{field: amount(queue, part, count)})
                draft.put(replace(obj, sharing=replace(obj.sharing, **{part: quota})))

    def patch(count: int) -> tuple[str, ...]:
        changes: dict[str, dict[str, object]] = {}
        for queue, part, _ in limited:
            changes.setdefault(queue.name, {})[part] = {field: shown(queue, part, count)}
        return tuple(patch_of("queue", name, {"spec": {"resources": each}}) for name, each in changes.items())

    most = max(int(2 * asked.get(name) / units[part]) + 2 for part, name in parts)
    return Step(
        most,
        apply,
        lambda count: "; ".join(
            f"queue {queue.name}: {part} {field} +{amount_text(name, units[part] * count)}"
            for queue, part, name in limited
        ),
        patch,
        lambda count: tuple(
            f"--set queue/{queue.name}.resources.{part}.{field}={shown(queue, part, count):.15g}"
            for queue, part, _ in limited
        ),
        lambda count: (0.0, sum(_cost_of(name, count * units[part]) for _, part, name in limited), 0.0),
        edits=lambda count: len({queue.name for queue, _, _ in limited}),
        likely=min(most, max(_units(over.get(name, 0.0), units[part]) for part, name in parts)),
    )


#: What KAI's Queues count in, in units of the core: GPUs, thousandths of cores, MB.
_SHARING_UNITS = {"gpu": 1000.0, "cpu": 1.0, "memory": 1e6}


def raise_share(world: World, job: str, blocker: Blocker | None = None) -> Iterator[Step]:
    """Let the queue of a job, and those above it, deserve more. ``blocker``: what the cycle says of the share."""
    line = line_of(world, job)
    kai = [queue for queue in line if queue.sharing is not None]
    specs = [pod.spec for pod in world.pods_of.get(job, ())]
    if kai:
        yield from _raise_sharing(kai, "quota", sum_of([spec.request for spec in specs]), specs, _over(blocker))
    elif line and line[0].deserved is None:
        queue = line[0]

        def apply(draft: Draft, count: int) -> None:
            obj = draft.get(Queue, queue.name)
            if isinstance(obj, Queue):
                draft.put(replace(obj, weight=queue.weight + count))

        yield Step(
            1024,
            apply,
            lambda count: f"queue {queue.name}: weight {queue.weight + count} instead of {queue.weight}",
            lambda count: (patch_of("queue", queue.name, {"spec": {"weight": queue.weight + count}}),),
            lambda count: (f"--set queue/{queue.name}.weight={queue.weight + count}",),
            lambda count: (0.0, 0.01 * count, 0.0),
        )
    yield whole(world, job, Lift(Code.QUEUE_SHARE), has_amounts=True)


def raise_overcommit(world: World, blocker: Blocker | None = None) -> Iterator[Step]:
    """Let more be promised of the cluster. ``blocker``: what the cycle says of the limit."""
    option = next((each for each in world.policy.options if each.spec.name == "overcommit"), None)
    found = (option.arguments if option else {}).get("overcommit_factor")
    factor = found if isinstance(found, int | float) and found >= 1.0 else 1.2
    over = blocker.exceeded if isinstance(blocker, QueueLimit) else ()
    more = max((each.excess / each.total for each in over if each.total), default=0.0)
    yield Step(
        1000,
        lambda draft, count: with_overcommit(draft, round(factor + 0.1 * count, 1)) if count else None,
        lambda count: f"plugin overcommit: overcommit-factor {factor + 0.1 * count:.1f} instead of {factor:g}",
        lambda count: (f"# in the policy file: overcommit-factor: {factor + 0.1 * count:.1f}",),
        cost=lambda count: (0.0, 0.01 * count, 0.0),
        likely=min(1000, _units(more, 0.1)),
    )


def raise_quotas(world: World, job: str, blocker: Blocker | None = None) -> Iterator[Step]:
    """Raise the ResourceQuotas of the namespace of a job. ``blocker``: what the cycle says of one."""
    asked = sum_of([pod.spec.request for pod in world.pods_of.get(job, ())])
    for quota in quotas_of(world, job):
        over = _over(blocker) if isinstance(blocker, QueueLimit) and blocker.queue == quota.key else {}
        for name in quota.limited:
            if asked.get(name):
                yield _raise_quota(quota, name, asked.get(name), over.get(name, 0.0))


def _raise_quota(quota: ResourceQuota, name: str, asked: float, over: float) -> Step:
    unit = step_of(name, 0.0)
    most = int(2 * asked / unit) + 2

    def apply(draft: Draft, count: int) -> None:
        obj = draft.get(ResourceQuota, quota.key)
        if isinstance(obj, ResourceQuota):
            draft.put(replace(obj, hard=with_more(obj.hard, name, unit * count)))

    def patch(count: int) -> tuple[str, ...]:
        value = quantity_text(name, quota.hard.get(name) + unit * count)
        wanted = f"requests.{name}" if name not in ("pods",) else name
        return (patch_of("resourcequota", quota.name, {"spec": {"hard": {wanted: value}}}, quota.namespace),)

    return Step(
        most,
        apply,
        lambda count: f"ResourceQuota {quota.key}: {name} +{amount_text(name, unit * count)}",
        patch,
        cost=lambda count: (0.0, 0.01 * count, 0.0),
        likely=min(most, _units(over, unit)),
    )
