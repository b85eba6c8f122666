"""Give KAI's pods their PodGroups: watch pods, read their owners, write.

Owners of unknown kinds are not read, unless a Karta describes the kind: only the pod's reference to them is used.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct

from pumice.kube.api.client import Client
from pumice.kube.api.kinds import CONFIG_MAPS, KAI_POD_GROUPS, KAI_QUEUES, PODS, PRIORITY_CLASSES, Kind
from pumice.kube.api.retry_policy import RetryPolicy
from pumice.kube.controllers.kinds import PlainCodec
from pumice.kube.controllers.owner_kinds import KARTAS, READ_FOR_KAI
from pumice.kube.controllers.reconcile import Part, Reconciler
from pumice.kube.controllers.view import key_of
from pumice.kube.informers.watch_failures import WatchFailures
from pumice.kube.writers.reminders import AGAIN_S
from pumice.model.manifest.pods import KAI_GROUP_NAME_ANNOTATION
from pumice.model.manifest.reading.fields import FieldError, Obj
from pumice.runtime.controllers.kai.groups import (
    GroupAssignment,
    GroupingSettings,
    group_for,
    missing_queues,
    needs_group,
    reconcile_grouping,
)
from pumice.runtime.controllers.kai.karta import described_kind
from pumice.runtime.controllers.kai.kind_defaults import KindDefaults, read_kind_defaults
from pumice.runtime.controllers.kai.kubeflow import launched_job
from pumice.runtime.controllers.kai.owners import pod_gang_of
from pumice.runtime.controllers.kai.plan import NoGang
from pumice.runtime.controllers.kai.rules import PodContext, has_rule
from pumice.runtime.controllers.writes import Emit, Patch, Ref, annotations_of, controller_of, meta

FOLLOWED: Final = (PODS, KAI_POD_GROUPS, KAI_QUEUES, PRIORITY_CLASSES)

_BY_NAME = {(kind.api_version, kind.kind): kind for kind in READ_FOR_KAI}
_DEPTH_MAX = 8  # owners of owners
_WORKERS = 5
_OWNERS_MAX, _OWNERS_S = 10_000, 5.0  # how many are kept, and for how long: pods of a gang arrive together
_KARTAS_S = 60.0  # after so long it is looked again whether the server has kartas. Source: KAI
_DEFAULTS_S = 5.0  # how long the defaults of kinds are kept
_QUEUES = ""  # the key for work on queues
_OF_PODS, _OF_QUEUES = Part(KAI_POD_GROUPS, FOLLOWED), Part(KAI_QUEUES, FOLLOWED)
_log = logging.getLogger("pumice.controllers")


class _KnownOwner(Struct, frozen=True):
    obj: Obj
    at: float


class GroupingLoop:
    """A run, from an empty view. ``clock``: seconds since the epoch."""

    def __init__(
        self,
        client: Client,
        settings: GroupingSettings,
        clock: Callable[[], float],
        retry_policy: RetryPolicy | None = None,
        troubles: WatchFailures | None = None,
    ) -> None:
        self._settings = settings
        self.reconciling = Reconciler[str](
            client, clock, _named, (_OF_PODS, _OF_QUEUES), _part_of, retry_policy, troubles
        )
        self.objects: dict[Kind, dict[str, Obj]] = {kind: {} for kind in FOLLOWED}
        for kind in FOLLOWED:
            codec = PlainCodec(kind, KAI_GROUP_NAME_ANNOTATION)
            self.reconciling.follow(codec, partial(self._put, kind), partial(self._drop, kind))
        self._owners: OrderedDict[Ref, _KnownOwner] = OrderedDict()
        self._kartas: list[Obj] = []  # as they were listed last
        self._no_kartas_at = -_KARTAS_S
        self._described: dict[tuple[str, str], Kind | None] = {}  # kinds that kartas describe, by apiVersion and kind
        self._defaults, self._defaults_at, self._defaults_problem = KindDefaults(), -_DEFAULTS_S, ""
        self._launchers: Counter[tuple[str, str]] = Counter()  # pods, by namespace and name of their MPI job

    async def run(self) -> None:
        """Run until cancelled. Nothing is written before everything was listed."""
        await self.reconciling.run(self._look_at, (_QUEUES,))

    def _put(self, kind: Kind, obj: Obj) -> None:
        key = key_of(obj)
        self._note_launcher(self.objects[kind].get(key), obj)
        self.objects[kind][key] = obj
        if kind is PODS and not annotations_of(obj).get(KAI_GROUP_NAME_ANNOTATION):
            self.reconciling.add(key)

    def _drop(self, kind: Kind, key: str) -> None:
        self._note_launcher(self.objects[kind].pop(key, None), None)
        if kind is KAI_QUEUES and key == self._settings.default_queue:
            self.reconciling.add(_QUEUES)

    async def _look_at(self, key: str) -> float:
        """Handle a key. Return 0: no key has to rest. Raises: KubeError."""
        await (self._look_at_pod(key) if key != _QUEUES else self._look_at_queues())
        return 0.0

    async def _look_at_queues(self) -> None:
        writes = missing_queues(tuple(self.objects[KAI_QUEUES]), self._settings.default_queue)
        await self.reconciling.writing.carry_out(writes)

    async def _look_at_pod(self, key: str) -> None:
        """Handle a pod. Raises: KubeError."""
        pod = self.objects[PODS].get(key)
        if pod is None or not needs_group(pod, self._settings):
            return
        context = await self._context_of(pod)
        try:
            wanted: GroupAssignment | NoGang | None = group_for(pod, context, self._settings)
        except NoGang as error:
            wanted = error
        group = self.objects[KAI_POD_GROUPS].get(key_of(wanted.group)) if isinstance(wanted, GroupAssignment) else None
        writes = reconcile_grouping(pod, group, wanted, self._settings)
        await self.reconciling.writing.carry_out(writes)
        for write in writes:
            if isinstance(write, Emit):
                self.reconciling.queue.later(key, AGAIN_S)  # if it still holds then, it is reported again
            elif isinstance(write, Patch) and write.ref.kind == "PodGroup" and group is not None:
                self._owners.clear()  # owners may have changed, so the next pod reads them again

    async def _context_of(self, pod: Obj) -> PodContext:
        """Return what the rules read beside the pod. Raises: KubeError."""
        owners, namespace = await self._owners_of(pod), meta(pod).get("namespace", "")
        ref = pod_gang_of(pod, owners)
        return PodContext(
            owners,
            lambda name: self.objects[KAI_POD_GROUPS].get(f"{namespace}/{name}"),
            self._launcher_there(owners),
            None if ref is None else await self._read_named(ref),
            self._kartas,
            await self._kind_defaults(),
            self.objects[PRIORITY_CLASSES].__contains__,
        )

    async def _kind_defaults(self) -> KindDefaults:
        """Return what pods get by the kind of their owner. Raises: KubeError."""
        key, now = self._settings.kind_defaults, time.monotonic()
        if not key or now - self._defaults_at < _DEFAULTS_S:
            return self._defaults
        found, problem = await self.reconciling.read(CONFIG_MAPS, key), ""
        try:
            self._defaults = KindDefaults() if found is None else read_kind_defaults(found)
            problem = "" if found is not None else "not found, or may not be read"
        except FieldError as error:
            self._defaults, problem = KindDefaults(), str(error)
        self._defaults_at = now
        if problem and problem != self._defaults_problem:
            _log.warning("ConfigMap %s: %s; no kind of owner has defaults", key, problem)
        self._defaults_problem = problem
        return self._defaults

    async def _list_kartas(self) -> None:
        """List the definitions of kinds without a rule. Raises: KubeError."""
        if time.monotonic() - self._no_kartas_at < _KARTAS_S:
            return
        found = await self.reconciling.listed(KARTAS)
        if found is None:
            self._no_kartas_at = time.monotonic()
        self._kartas = found or []
        kinds = (described_kind(each) for each in self._kartas)
        self._described = {kind: self._described.get(kind) for kind in kinds if kind is not None}

    async def _owners_of(self, pod: Obj) -> list[Obj]:
        """Return the controlling owners, the nearest first, each as far as it can be read. Raises: KubeError."""
        found: list[Obj] = []
        at = controller_of(pod)
        while at is not None and len(found) < _DEPTH_MAX:
            owner = await self._read(at)
            found.append(owner)
            at = controller_of(owner)
        return found

    async def _read_named(self, ref: Ref) -> Obj | None:
        """Return an object, None if it does not exist or its kind is not read. Raises: KubeError."""
        kind, key = _BY_NAME.get((ref.api_version, ref.kind)), f"{ref.namespace}/{ref.name}"
        if (ref.api_version, ref.kind) == (PODS.api_version, PODS.kind):
            return self.objects[PODS].get(key)  # a leader owns its workers, a driver its executors
        if kind is None and not has_rule({"apiVersion": ref.api_version, "kind": ref.kind}):
            kind = await self._kind_of(ref)
        return None if kind is None else await self.reconciling.read(kind, key)

    async def _kind_of(self, ref: Ref) -> Kind | None:
        """Return the kind of an object that a Karta describes. Raises: KubeError."""
        await self._list_kartas()
        named = ref.api_version, ref.kind
        if named in self._described and self._described[named] is None:
            self._described[named] = await self.reconciling.kind_named(*named)
        return self._described.get(named)

    async def _read(self, ref: Ref) -> Obj:
        known, now = self._owners.get(ref), time.monotonic()
        if known is not None and now - known.at < _OWNERS_S:
            return known.obj
        stub: Obj = {"metadata": {"namespace": ref.namespace, "name": ref.name, "uid": ref.uid}}
        found = await self._read_named(ref)
        obj = stub if found is None else found
        if meta(obj).get("uid") != ref.uid:
            obj = stub  # it has been replaced
        obj = {**obj, "apiVersion": ref.api_version, "kind": ref.kind}
        self._owners[ref] = _KnownOwner(obj, now)
        self._owners.move_to_end(ref)
        if len(self._owners) > _OWNERS_MAX:
            self._owners.popitem(last=False)
        return obj

    def _note_launcher(self, before: Obj | None, now: Obj | None) -> None:
        for obj, change in ((before, -1), (now, 1)):
            if obj is not None and (job := launched_job(obj)) is not None:
                self._launchers[job] += change

    def _launcher_there(self, owners: list[Obj]) -> bool:
        """Return True if the launcher of an MPI job among the owners has a pod."""
        job = next((each for each in owners if each.get("kind") == "MPIJob"), None)
        return job is None or self._launchers[meta(job).get("namespace", ""), meta(job).get("name", "")] > 0


def _named(key: str) -> str:
    return key or "queues"


def _part_of(key: str) -> Part:
    return _OF_PODS if key != _QUEUES else _OF_QUEUES
