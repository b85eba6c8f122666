"""``python -m tests.cases.hints.followed``: follow hints to the end on random worlds, and count how each ends.

Each job that waits is followed by itself. Its hint is the sentence of its nearest blocker; what is done is exactly what
that blocker says would have to change, and nothing else, and then a cycle runs on the changed cluster. Where a change
may be made on several nodes, it is made on one with which the job starts, else on one with which its hint is another,
as a user would choose a node that is open to the job. To wait means that
what the cycle decided comes true, and that jobs that came first, or that leave, end.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from pumice.answers.lifts import with_more, with_overcommit
from pumice.answers.world import Draft, Trial, Trials, World, row_of, starts
from pumice.framework.plugin.policy_file import Policy
from pumice.model import blockers as b
from pumice.model.blockers import Blocker
from pumice.model.blockers import changes as c
from pumice.model.events import Object
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.model.queue import Queue
from pumice.model.volumes import PersistentVolume, PersistentVolumeClaim
from pumice.model.workloads.podgroup import PodGroup
from pumice.reasons.blockers import Blockers
from pumice.reasons.hints import hint_of
from tests.cases.hints.claimed import claimed_apart, offered
from tests.cases.hints.lifts import is_known, lifted
from tests.properties.answers.answer_worlds import LANGUAGES, random_world

WORLDS = 160
STEPS_MAX = 12
_NO_CLAIM = re.compile(r'persistentvolumeclaim "([^"]+)" not found')


class End(StrEnum):
    """How a job that was followed ended."""

    PLACED = "placed"
    NOTHING = "the change changed nothing"
    NO_HINT = "no hint"
    NO_LEVER = "the hint names no change"
    CIRCLE = "in a circle"
    TOO_LONG = f"not after {STEPS_MAX} hints"


class Followed(Struct, frozen=True):
    """A job, how it ended, and the hints in order."""

    job: str
    end: End
    hints: tuple[str, ...]
    last: Blocker | None


def follow(world: World, job: str) -> Followed:
    """Follow the hints of one job to the end."""
    last: Blocker | None = None
    said, seen = list[str](), list[Blocker]()
    for _ in range(STEPS_MAX):
        trial = Trials(world, 0).base
        if starts(trial, world, job):
            return Followed(job, End.PLACED, tuple(said), last)
        row = row_of(trial.outcome, job)
        before, last = last, Blockers(trial.outcome).nearest(row) if row is not None else None
        text = hint_of(last, whole=True) if last is not None else ""
        if last is None or not text:
            return Followed(job, End.NO_HINT, tuple(said), last)
        said.append(text)
        if last == before:
            return Followed(job, End.NOTHING, tuple(said), last)
        if last in seen:
            return Followed(job, End.CIRCLE, tuple(said), last)
        seen.append(last)
        changed = _with_claim(world, job, text) or _after(world, trial, job, last)
        if changed is None:
            return Followed(job, End.NO_LEVER, tuple(said), last)
        world = changed
    return Followed(job, End.TOO_LONG, tuple(said), last)


def _with_claim(world: World, job: str, text: str) -> World | None:
    """Return the world with a PersistentVolumeClaim that a hint misses, None if it misses none."""
    found = _NO_CLAIM.search(text)
    if found is None:
        return None
    claim = PersistentVolumeClaim(job.partition("/")[0], found[1], found[1], volume=f"of-{found[1]}", bound=True)
    volume = PersistentVolume(claim.volume, claim=f"{claim.namespace}/{claim.name}", claim_uid=claim.uid)
    return World([*world.objects.values(), claim, volume], world.policy, world.now, world.scheduler_names)


def _after(world: World, trial: Trial, job: str, blocker: Blocker) -> World | None:
    """Return the world after all changes of a blocker; None if one of them is not known."""
    for change in blocker.lift:
        made = _made(world, trial, job, blocker, change)
        tried = [World(objects, policy, world.now, world.scheduler_names) for objects, policy in made]
        if not tried:
            return None
        world = _best(tried, job, blocker)
    return world


def _best(tried: list[World], job: str, blocker: Blocker) -> World:
    """Return the world in which the job starts, else one in which its nearest blocker is another, else the first."""
    other = None
    for each in tried if len(tried) > 1 else ():
        trial = Trials(each, 0).base
        if starts(trial, each, job):
            return each
        row = row_of(trial.outcome, job)
        if other is None and row is not None and Blockers(trial.outcome).nearest(row) != blocker:
            other = each
    return other or tried[0]


def _made(
    world: World, trial: Trial, job: str, blocker: Blocker, change: c.Change
) -> Iterator[tuple[list[Object], Policy]]:
    """Yield the objects and the policy after a change, for each place at which it may be made."""
    if isinstance(change, c.RaiseLimit) and change.kind == b.OVERCOMMIT:
        draft = Draft(world)
        with_overcommit(draft, _factor(blocker))
        yield list(world.objects.values()), draft.policy
        return
    for objects in _changed(world, trial, job, blocker, change):
        yield objects, world.policy


def _changed(world: World, trial: Trial, job: str, blocker: Blocker, change: c.Change) -> Iterator[list[Object]]:
    objects = list(world.objects.values())
    match change:
        case c.Wait():
            yield _waited(world, trial, job, blocker)
        case c.RequireLevel(label):
            yield [
                _requiring(each, label) if isinstance(each, PodGroup) and each.key == job else each for each in objects
            ]
        case c.FreePort(port, _):
            for node in world.nodes:
                yield [each for each in objects if not _holds(each, port, node.name, trial)]
        case c.Create(b.RESOURCE, name):
            most = max(_asked_of(pod, name) for pod in world.pods_of[job])
            yield from lifted(objects, c.AddNode((c.Amount(name, most),)), job=job)
        case c.ClaimApart():
            yield claimed_apart(objects, change, job)
        case c.RunPod(selector):
            for node in world.nodes:
                yield [*objects, _pod_with(objects, selector, node)]
        case c.ChangeNodes("", _, detail) if "=" in detail:
            wanted = dict(part.strip().split("=", 1) for part in detail.split(",") if "=" in part)
            for node in world.nodes:
                labelled = replace(node, labels={**node.labels, **wanted})
                yield [labelled if each is node else each for each in objects]
        case c.RaiseLimit(name, kind, resource, value) if not is_known(change):
            queues = [each for each in objects if isinstance(each, Queue)]
            raised = {each.name: _raised(each, kind, resource, value) for each in queues if each.name == name}
            if kind == b.GUARANTEE:
                raised = {each.name: _less_guaranteed(each, resource, value) for each in queues if each.name != name}
            yield [raised.get(each.name, each) if isinstance(each, Queue) else each for each in objects]
        case c.AddNode():
            for made in lifted(objects, change, job=job):
                yield [_labelled(each, blocker) if each not in objects else each for each in made]
        case c.OfferDevices() | c.OfferVolume() | c.AttachMore():
            yield from offered(objects, change)
        case _ if is_known(change):
            yield from lifted(objects, change, job=job)


def _asked_of(pod: Pod, name: str) -> float:
    """Return how much of a resource a pod asks for, whole GPUs where it asks for parts of them."""
    share = pod.spec.gpu_share
    return pod.spec.request.get(name) or (1000.0 * share.devices if share is not None else 0.0)


def _requiring(group: PodGroup, label: str) -> PodGroup:
    """Return a gang of KAI that requires another level of its topology."""
    gang = group.gang
    assert gang is not None and gang.topology is not None
    return replace(group, gang=replace(gang, topology=replace(gang.topology, required=label)))


def _labelled(obj: Object, blocker: Blocker) -> Object:
    """Return a new node with the labels that a hint says it has to have."""
    first = blocker.first if isinstance(blocker, b.GangPartial) else blocker
    if not isinstance(first, b.Shortage) or not isinstance(obj, Node):
        return obj
    wanted = dict(each.split("=", 1) for each in first.labels if "=" in each)
    return replace(obj, labels={**obj.labels, **wanted})


def _factor(blocker: Blocker) -> float:
    """Return the factor of ``overcommit`` with which what is asked for is within its limit."""
    each = blocker.by if isinstance(blocker, b.NotAdmitted) else (blocker,)
    over = [amount for limit in each if isinstance(limit, b.QueueLimit) for amount in limit.exceeded if amount.total]
    return max((a.used + a.promised + a.asked) / a.total for a in over) * (1 + 1e-9)


def _raised(queue: Queue, kind: str, resource: str, value: float) -> Queue:
    """Return a queue with so much more of what it deserves or may have."""
    share = queue.sharing
    if share is None:
        if kind == b.DESERVED and queue.deserved is not None:
            return replace(queue, deserved=with_more(queue.deserved, resource, value))
        most = None if queue.capability is None else with_more(queue.capability, resource, value)
        # Under proportion, what a queue deserves follows from its weight, up to its capability.
        return replace(queue, capability=most, weight=queue.weight * (2 if kind == b.DESERVED else 1))
    name = {"cpu": "cpu", "memory": "memory"}.get(resource, "gpu")
    part = getattr(share, name)
    field = "limit" if kind == b.LIMIT else "quota"
    before = getattr(part, field)
    return replace(
        queue, sharing=replace(share, **{name: replace(part, **{field: None if before is None else before + value})})
    )


def _less_guaranteed(queue: Queue, resource: str, value: float) -> Queue:
    """Return a queue that is guaranteed so much less."""
    if queue.guarantee is None or not queue.guarantee.get(resource):
        return queue
    return replace(queue, guarantee=with_more(queue.guarantee, resource, -min(value, queue.guarantee.get(resource))))


def _holds(obj: Object, port: int, node: str, trial: Trial) -> bool:
    """Return True for a pod that has the port on the node, or gets it in the cycle."""
    if not isinstance(obj, Pod) or node not in (obj.node_name, trial.binds.get(obj.key)):
        return False
    return any(each.port == port for each in obj.spec.host_ports)


def _pod_with(objects: list[Object], selector: str, node: Node) -> Pod:
    """Return a pod that runs on a node with the labels of a selector, and asks for nothing."""
    like = next(each for each in objects if isinstance(each, Pod))
    labels = dict(part.strip().split("=", 1) for part in selector.split(",") if "=" in part)
    spec = replace(like.spec, request=replace(like.spec.request, milli_cpu=0.0, memory=0.0, scalars=None))
    more = {"spec": spec, "labels": labels, "annotations": {}, "node_name": node.name, "phase": "Running"}
    return replace(like, name=f"near-{node.name}", uid=f"near-{node.name}", gates=(), **more)


def _waited(world: World, trial: Trial, job: str, blocker: Blocker) -> list[Object]:
    """Return the objects once what the cycle decided has come true, and those that came first or leave have ended."""
    evicted = {each.pod for each in trial.evicts}
    first = set(blocker.jobs) if isinstance(blocker, b.Behind) else set()
    found = list[Object]()
    for each in world.objects.values():
        if isinstance(each, Pod) and (each.key in evicted or each.deletion is not None or each.group_key in first):
            continue
        if isinstance(each, Pod) and each.key in trial.binds:
            found.append(replace(each, node_name=trial.binds[each.key], phase="Running", start_time=world.now))
        else:
            found.append(each)
    return [each for each in found if not (isinstance(each, PodGroup) and each.key in first)]


# -- the count


def followed(language: str, worlds: int, start: int = 0, *, claims: bool = True) -> Iterator[tuple[int, Followed]]:
    """Yield how each job that waits in the random worlds of a language ends, with the seed of its world. ``start``: the
    first seed. ``claims``: some jobs claim volumes, devices or parts of GPUs."""
    for seed in range(start, start + worlds):
        world = random_world(random.Random(seed), language, claims=claims)
        trial = Trials(world, 0).base
        for job in sorted(world.groups):
            waits = any(not pod.node_name for pod in world.pods_of.get(job, ()))
            if waits and not starts(trial, world, job):
                yield seed, follow(world, job)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--worlds", type=int, default=WORLDS)
    parser.add_argument("--first", type=int, default=0, help="seed of the first world")
    parser.add_argument("--language", choices=LANGUAGES, help="of the policies and objects, instead of all")
    parser.add_argument("--without-claims", action="store_true", help="worlds without claims of volumes and devices")
    parser.add_argument("--show", action="store_true", help="print the hints of those that were not placed")
    args = parser.parse_args()
    for language in (args.language,) if args.language else LANGUAGES:
        count, total = Counter[End](), 0
        for seed, found in followed(language, args.worlds, args.first, claims=not args.without_claims):
            count[found.end] += 1
            total += 1
            if args.show and found.end is not End.PLACED:
                print(f"  {seed} {found.job}: {found.end}: {found.hints[-1:]} {type(found.last).__name__}")
        parts = ", ".join(f"{end} {count[end]} ({count[end] / max(total, 1):.1%})" for end in End if count[end])
        print(f"{language}: {total} jobs followed: {parts}")


if __name__ == "__main__":
    main()
