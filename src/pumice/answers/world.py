"""A cluster as a question is asked about it, drafts of changes to it, and cycles that are run on them.

A trial is a whole cycle: the scheduler itself is the oracle, so that an answer is never more than what was tried. The
number of trials is bounded, and an answer that ran out of them says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import Any, TypeVar

from msgspec import Struct

from pumice.columns.jobs import PENDING_PHASE
from pumice.columns.snapshot import Snapshot
from pumice.columns.views import Job
from pumice.cycle import run_cycle
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.memo import Memo
from pumice.framework.plugin.policy_file import Policy
from pumice.model.blockers import Blocker
from pumice.model.decisions import Bind, Decision, Evict, Refusal
from pumice.model.events import Gone, Object, PodsSeen, Seen, key_of
from pumice.model.node import Node
from pumice.model.pod import ENDED, NATIVE_GROUP_MARK, Pod
from pumice.model.queue import Queue, ResourceQuota
from pumice.model.resources import Resource
from pumice.model.status import PodGroupPhase
from pumice.model.workloads.bare_pods import shown_name
from pumice.model.workloads.podgroup import PodGroup
from pumice.reasons.hints import blockers_outside
from pumice.state.store import Store

#: The kind of an object and its key.
Id = tuple[type[Object], str]
Kind = TypeVar("Kind", bound=Object)
#: Cycles that are run for the reason of one job at most.
REASON_TRIALS_MAX = 240
_NOTHING = Resource()


class World:
    """The objects of a cluster, the policy, the time (seconds since the epoch) and the names of the scheduler.
    ``notes``: those of the snapshot that it was read from."""

    def __init__(
        self,
        objects: Iterable[Object],
        policy: Policy,
        now: float,
        scheduler_names: Collection[str],
        notes: Mapping[str, float] | None = None,
    ) -> None:
        self.notes: Mapping[str, float] = notes or {}
        self.objects: dict[Id, Object] = {(type(obj), key_of(obj)): obj for obj in objects}
        self.policy, self.now, self.scheduler_names = policy, now, tuple(scheduler_names)

    @cached_property
    def _by_kind(self) -> dict[type[Object], list[Any]]:
        found: dict[type[Object], list[Any]] = {}
        for (kind, _), obj in self.objects.items():
            found.setdefault(kind, []).append(obj)
        return found

    def of(self, kind: type[Kind]) -> list[Kind]:
        """Return the objects of a kind, in the order in which they were given."""
        return self._by_kind.get(kind, [])  # type: ignore[arg-type]

    @cached_property
    def groups(self) -> dict[str, PodGroup]:
        return {group.key: group for group in self.of(PodGroup)}

    @property
    def nodes(self) -> list[Node]:
        return self.of(Node)

    @cached_property
    def queues(self) -> dict[str, Queue]:
        return {queue.name: queue for queue in self.of(Queue)}

    @property
    def quotas(self) -> list[ResourceQuota]:
        return self.of(ResourceQuota)

    @cached_property
    def has_anti_affinity(self) -> bool:
        """True if pods want to be away from others: also one that runs keeps others off."""
        return any(pod.spec.affinity.anti_required for pod in self.of(Pod))

    @cached_property
    def pods_of(self) -> dict[str, list[Pod]]:
        """The pods of each job that have not ended, by PodGroup key."""
        found: dict[str, list[Pod]] = {}
        for pod in self.of(Pod):
            if pod.group_key and pod.phase not in ENDED:
                found.setdefault(pod.group_key, []).append(pod)
        return found

    @cached_property
    def outside(self) -> dict[str, Blocker]:
        """Why jobs are not in a session, or not with all their pods, by PodGroup key."""
        return blockers_outside(self.objects.values(), self.scheduler_names)

    @cached_property
    def held_on(self) -> dict[str, Resource]:
        """What the pods on each node ask for together, by name."""
        found: dict[str, Resource] = {}
        for pod in self.of(Pod):
            if pod.node_name and pod.phase not in ENDED:
                found[pod.node_name] = found.get(pod.node_name, _NOTHING).add(pod.spec.request)
        return found

    def shown(self, job: str) -> str:
        """Return what people call a job, by key."""
        return shown_name(job, self.pods_of.get(job, ()))

    @property
    def is_kai(self) -> bool:
        return self.policy.dialect.name == "kai"


class Draft:
    """Changes to a world that are being put together. Later changes see earlier ones."""

    def __init__(self, world: World) -> None:
        self.world, self.policy = world, world.policy
        self._changed: dict[Id, Object | None] = {}

    def get(self, kind: type[Object], key: str) -> Object | None:
        """Return an object as it would be."""
        found = (kind, key)
        return self._changed[found] if found in self._changed else self.world.objects.get(found)

    def put(self, obj: Object) -> None:
        self._changed[type(obj), key_of(obj)] = obj

    def remove(self, kind: type[Object], key: str) -> None:
        self._changed[kind, key] = None

    def nodes(self) -> list[Node]:
        return [obj for obj in self.all(Node) if isinstance(obj, Node)]

    def pods(self, job: str) -> list[Pod]:
        """Return the pods of a job that were there before, as they would be."""
        found = (self.get(Pod, pod.key) for pod in self.world.pods_of.get(job, ()))
        return [pod for pod in found if isinstance(pod, Pod)]

    def queues(self) -> list[Queue]:
        return [obj for obj in self.all(Queue) if isinstance(obj, Queue)]

    def group(self, job: str) -> PodGroup | None:
        found = self.get(PodGroup, job)
        return found if isinstance(found, PodGroup) else None

    def native_gangs(self) -> list[Object]:
        """Return the PodGroups of Kubernetes' own, with trees of them, and the pods that name them."""
        groups = (each for each in self.all(PodGroup) if isinstance(each, PodGroup) and each.native is not None)
        pods = (each for each in self.all(Pod) if isinstance(each, Pod) and NATIVE_GROUP_MARK in each.annotations)
        return [*groups, *pods]

    def all(self, kind: type[Object]) -> Iterator[Object]:
        """Yield the objects of a kind as they would be, new ones last."""
        there = self.world.objects
        new = [each for each in self._changed if each[0] is kind and each not in there]
        for each in (*((kind, key_of(obj)) for obj in self.world.of(kind)), *new):
            obj = self.get(*each)
            if obj is not None:
                yield obj

    @property
    def outside(self) -> dict[str, Blocker]:
        """Return why jobs would not be in a session, or not with all their pods, by PodGroup key."""
        return blockers_outside(self.objects(), self.world.scheduler_names)

    @property
    def changed(self) -> dict[Id, Object | None]:
        """Return what is different, None for an object that is gone."""
        return {key: obj for key, obj in self._changed.items() if obj != self.world.objects.get(key)}

    def objects(self) -> list[Object]:
        """Return all objects as they would be."""
        merged = {**self.world.objects, **self._changed}
        return [obj for obj in merged.values() if obj is not None]


class Trial(Struct, frozen=True):
    """One cycle, and what it decided."""

    outcome: Outcome
    decisions: tuple[Decision, ...]

    @property
    def binds(self) -> dict[str, str]:
        return {each.pod: each.node for each in self.decisions if isinstance(each, Bind)}

    @property
    def evicts(self) -> list[Evict]:
        return [each for each in self.decisions if isinstance(each, Evict)]

    @property
    def placed(self) -> dict[str, int]:
        """How many pods of each job get a node, or a reservation on one."""
        found: dict[str, int] = {}
        tables = self.outcome.tables
        rows, pods = tables.tasks, tables.tasks.pods
        keys = self.binds.keys() | self.outcome.pipelined.keys()
        if not keys:
            return found
        for row in rows.alive.nonzero()[0].tolist():
            if pods[row].key in keys and pods[row].group_key:
                found[pods[row].group_key] = found.get(pods[row].group_key, 0) + 1
        return found


class _Planner:
    """Accepts every decision."""

    def __init__(self) -> None:
        self.taken: list[Decision] = []

    def submit(self, decisions: Sequence[Decision]) -> Mapping[int, Refusal]:
        self.taken += decisions
        return {}


class Trials:
    """Runs cycles on drafts of one world. ``most``: so many are run, and then no more."""

    def __init__(self, world: World, most: int) -> None:
        self.world, self.most, self.run_count = world, most, 0
        self._memos: dict[int, tuple[Policy, Memo]] = {}
        self._store = self._filled(world.objects.values())

    @property
    def is_cut(self) -> bool:
        return self.run_count >= self.most

    def snapshot(self) -> Snapshot:
        """Return the world as it is, as a cycle sees it."""
        return self._store.snapshot(self.world.now)

    @cached_property
    def base(self) -> Trial:
        """The cycle on the world as it is. It is not counted."""
        return self._cycle(self.snapshot(), self.world.policy, self._memo(self.world.policy))

    def run(self, draft: Draft) -> Trial:
        """Run one cycle on the world with these changes."""
        self.run_count += 1
        changed = draft.changed
        # What is taken away and comes back has another row, which may decide a tie otherwise: such a world gets a store
        # of its own.
        if any(obj is None and key in self.world.objects for key, obj in changed.items()):
            store = self._filled(draft.objects())
            return self._cycle(store.snapshot(self.world.now), draft.policy, Memo())
        for obj in changed.values():
            if obj is not None:
                self._store.apply(Seen(obj))
        try:
            return self._cycle(self._store.snapshot(self.world.now), draft.policy, self._memo(draft.policy))
        finally:
            for key in reversed(changed):
                before = self.world.objects.get(key)
                self._store.apply(Gone(*key) if before is None else Seen(before))

    def _memo(self, policy: Policy) -> Memo:
        """Return the memo of the policy: what one policy computed is of no use under another."""
        return self._memos.setdefault(id(policy), (policy, Memo()))[1]

    def _filled(self, objects: Iterable[Object]) -> Store:
        store = Store(scheduler_names=self.world.scheduler_names)
        store.keep_usage(self.world.policy.usage_windows)
        # Pods in a row are applied together, which costs a fraction of one after the other.
        pods: dict[str, Pod] = {}
        for obj in objects:
            if isinstance(obj, Pod):
                pods[obj.key] = obj
                continue
            if pods:
                store.apply(PodsSeen(pods))
                pods = {}
            store.apply(Seen(obj))
        if pods:
            store.apply(PodsSeen(pods))
        return store

    def _cycle(self, snapshot: Snapshot, policy: Policy, memo: Memo) -> Trial:
        planner = _Planner()
        outcome = run_cycle(snapshot, policy, self.world.now, planner, memo=memo)
        return Trial(outcome, tuple(planner.taken))


def starts(trial: Trial, world: World, job: str) -> bool:
    """Return True if pods of the job get a node, enough for its minimum together with those that have one; for a job
    that has no pods until it is admitted, if it is."""
    if waits_for_pods(world, job):
        admitted = row_of(trial.outcome, job)
        return admitted is not None and trial.outcome.tables.jobs.phase[admitted] != PENDING_PHASE
    placed = trial.placed.get(job, 0)
    if not placed:
        return False
    holds = sum(1 for pod in world.pods_of.get(job, ()) if pod.node_name and pod.deletion is None)
    row = row_of(trial.outcome, job)
    return row is not None and holds + placed >= Job(trial.outcome.tables, row).min_available


def waits_for_pods(world: World, job: str) -> bool:
    """Return True for a job that asks for admission and whose pods are created then. Source: Volcano's job controller,
    which gives its PodGroup the resources of the minimum."""
    group = world.groups.get(job)
    if group is None or world.is_kai or world.pods_of.get(job):
        return False
    return group.min_resources is not None and group.status.phase == PodGroupPhase.PENDING


def row_of(outcome: Outcome, job: str) -> int | None:
    """Return the row of a job of the session, by key, or None."""
    uids = outcome.tables.jobs.uids
    return next((row for row in outcome.live_jobs.tolist() if uids[row] == job), None)


def new_name(world: World, stem: str) -> str:
    """Return a name for a node that no node has."""
    taken = {node.name for node in world.nodes}
    return next(name for number in count(1) if (name := f"{stem}-new-{number}") not in taken)
