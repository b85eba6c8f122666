"""Statuses of PodGroups and Queues, written as differences.

Whether a kind has a status subresource is asked of the server: Volcano's PodGroup has none, its Queue has one. A write
that failed is not retried here: a later cycle requests it again, from the state at that time. Objects whose writes were
refused are held back for a while, because otherwise each cycle would be refused again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from pumice.kube.api.client import ONCE, Client
from pumice.kube.api.encode_statuses import kai_group_status, native_group_status, volcano_group_status
from pumice.kube.api.errors import ApiError, KubeError
from pumice.kube.api.kinds import WORKLOADS, Kind, kind_of_composite, kind_of_group, kind_of_queue
from pumice.kube.informers.informer_cache import InformerCache
from pumice.kube.writers.event_recorder import EventRecorder, about_group
from pumice.kube.writers.evicting import eviction_of_group
from pumice.kube.writers.kai_statuses import kai_queue_status, time_annotations
from pumice.kube.writers.native_statuses import (
    composite_conditions,
    group_conditions,
    news_in_tree,
    news_of,
)
from pumice.kube.writers.pending_writes import PendingWrites, version_of
from pumice.kube.writers.refused_writes import RefusedWrites
from pumice.model.decisions import PodGroupUpdate
from pumice.model.pod import NATIVE_SUB_GROUP_MARK
from pumice.model.queue import Queue, QueueUsage
from pumice.model.resources import Resource
from pumice.model.workloads.composite import COMPOSITE_PREFIX, CompositePodGroup
from pumice.model.workloads.gang import GangTimes
from pumice.model.workloads.podgroup import PodGroup, PodGroupStatus
from pumice.runtime.controllers.writes import merge_patch
from pumice.runtime.in_flight import InFlightDecisions


def group_words(status: PodGroupStatus) -> PodGroupStatus:
    """Return the status without what differs between sessions: the time and the session of each condition."""
    conditions = (replace(condition, transition_id="", last_transition=0.0) for condition in status.conditions)
    scheduling = (replace(condition, transition_id="", last_transition=0.0) for condition in status.scheduling)
    return replace(status, conditions=tuple(conditions), scheduling=tuple(scheduling))


def group_difference(group: PodGroup, update: PodGroupUpdate, now: float = 0.0, placed: int = 0) -> dict[str, Any]:
    """Return what to merge into the PodGroup's status, empty if nothing differs. ``now``: seconds since the epoch, for
    conditions that have to say since when they hold. ``placed``: number of its pods that are on nodes and stay."""
    if group.native is not None:
        if not group.native.has_object:
            return {}
        conditions = group_conditions(group, news_of(update, placed), now)
        return native_group_status(conditions) if conditions != group.status.conditions else {}
    wanted = update.status
    if group_words(group.status) == group_words(wanted):
        return {}
    written = volcano_group_status if group.gang is None else kai_group_status
    return merge_patch(written(group.status), written(wanted))


def times_difference(group: PodGroup, times: GangTimes | None) -> dict[str, str | None]:
    """Return annotations to merge into the PodGroup, empty if nothing differs."""
    # Pod groups of one Workload would share its annotations.
    if group.gang is None or times is None or kind_of_group(group) is WORKLOADS:
        return {}
    before = time_annotations(group.gang.times)
    return {key: at for key, at in time_annotations(times).items() if at != before[key]}


def queue_difference(queue: Queue, allocated: Resource, usage: QueueUsage | None = None) -> dict[str, Any]:
    """Return what to merge into a Queue's status, empty if nothing differs."""
    if queue.sharing is not None:
        return merge_patch(kai_queue_status(queue.allocated, queue.usage), kai_queue_status(allocated, usage))
    change = merge_patch(queue.allocated.to_list() if queue.allocated is not None else {}, allocated.to_list())
    return {"allocated": change} if change else {}


def group_event(status: PodGroupStatus) -> tuple[str, str, str] | None:
    """Return (type, reason, message) of an event for users of the PodGroup, or None.

    Source: Volcano, which emits in every session that a gang is unschedulable; here it is emitted with the status.
    """
    waits = next((condition.message for condition in reversed(status.scheduling) if condition.status == "True"), "")
    if waits:
        return "Warning", "Unschedulable", waits
    if status.phase in ("Running", "Completed"):
        return "Normal", "Scheduled", "pod group is ready"
    reason = next((c.message for c in status.conditions if (c.type, c.status) == ("Unschedulable", "True")), "")
    return ("Warning", "Unschedulable", reason) if reason else None


class Statuses:
    """Writes statuses, and nothing twice. ``keep_s``: how long to wait for an echo. ``now``: seconds of the epoch."""

    def __init__(
        self,
        client: Client,
        cache: InformerCache,
        recorder: EventRecorder,
        keep_s: float,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._now = now
        self.groups = PendingWrites(keep_s, clock)
        self.queues = PendingWrites(keep_s, clock)
        self._refused_groups, self._refused_queues = (
            RefusedWrites("status of PodGroup", clock),
            RefusedWrites("status of Queue", clock),
        )
        self._client, self._cache, self._recorder = client, cache, recorder
        self._subresource: dict[Kind, bool] = {}
        self._evictions: dict[str, str] = {}  # PodGroup -> why all its pods are evicted, until its status says so

    def begin_group(self, update: PodGroupUpdate) -> bool:
        """Return True if this must be written: it differs from what is known, and is not under way."""
        group = self._cache.groups.get(update.job)
        if group is None or self._refused_groups.holds_back(update.job):
            return False
        wanted = bool(self._group_difference(group, update) or times_difference(group, update.times))
        wanted = wanted or any(self._changes_in_tree(group, update))
        return wanted and self.groups.begin(update.job, _write_of(update))

    def eviction_of(self, job: str, in_flight: InFlightDecisions) -> str:
        """Return why all pods of a PodGroup of Kubernetes' own that hold nodes are evicted, "" if one stays."""
        if found := eviction_of_group(self._cache, in_flight, job):
            # The pods may be gone before it is written, or the write may fail.
            self._evictions[job] = found
        elif self._cache.placed_of(job):
            self._evictions.pop(job, None)
        last = self.groups.content(job)
        # Until its echo arrives, each further status has to say it again, because it replaces all conditions.
        written = last.eviction if isinstance(last, _GroupWrite) else ""
        return self._evictions.get(job, "") or written

    def unwritten_evictions(self) -> list[str]:
        """Return the PodGroups whose status does not say yet that all their pods were evicted."""
        return list(self._evictions)

    def group_gone(self, job: str) -> None:
        """Note that a PodGroup no longer exists."""
        self.groups.gone(job)
        self._evictions.pop(job, None)
        self._refused_groups.gone(job)

    def queue_gone(self, name: str) -> None:
        """Note that a Queue no longer exists."""
        self.queues.gone(name)
        self._refused_queues.gone(name)

    async def write_group(self, update: PodGroupUpdate) -> None:
        """Write what differs by now, and emit an event."""
        group = self._cache.groups.get(update.job)
        version = await self._write_group(group, update) if group is not None else ""
        if group is None or not version:
            self.groups.failed(update.job, _write_of(update))
            return
        if self._evictions.get(update.job) == update.eviction:
            del self._evictions[update.job]
        self.groups.done(
            update.job, _write_of(update), version, self._cache.groups.get(update.job, group).resource_version
        )
        if (event := group_event(update.status)) is not None:
            self._recorder.record(about_group(group), *event)

    def _group_difference(self, group: PodGroup, update: PodGroupUpdate) -> dict[str, Any]:
        return group_difference(group, update, self._now(), len(self._cache.placed_of(update.job)))

    async def _write_group(self, group: PodGroup, update: PodGroupUpdate) -> str:
        """Write differences. Return the version of the last write, "" if nothing was written."""
        kind, version = kind_of_group(group), ""
        key = update.job.replace(COMPOSITE_PREFIX, "")
        if annotations := times_difference(group, update.times):
            body = {"metadata": {"uid": group.uid, "annotations": annotations}}
            version = await self._patch(kind.path(key), body, update.job, self._refused_groups)
        if change := self._group_difference(group, update):
            version = await self._merge(kind, key, group.uid, change, self._refused_groups)
        for member_kind, member, change in self._changes_in_tree(group, update):
            written = await self._merge(member_kind, member.key, member.uid, change, self._refused_groups)
            version = version or (written and group.resource_version)
        return version

    def _changes_in_tree(
        self, group: PodGroup, update: PodGroupUpdate
    ) -> Iterator[tuple[Kind, CompositePodGroup | PodGroup, dict[str, Any]]]:
        """Yield the groups below the root of a tree whose status differs, each with its kind and what to merge into the
        status; none for other groups."""
        if group.native is None or not group.native.is_tree:
            return
        placed = Counter(
            pod.annotations.get(NATIVE_SUB_GROUP_MARK, "")
            for key in self._cache.placed_of(update.job)
            if (pod := self._cache.pods.get(key)) is not None
        )
        members, now = self._cache.members_of(update.job), self._now()
        for member, news in news_in_tree(members, placed, news_of(update, sum(placed.values()))):
            if isinstance(member, PodGroup):
                kind, before = kind_of_group(member), member.status.conditions
                after = group_conditions(member, news, now)
            else:
                kind, before = kind_of_composite(member), member.conditions
                after = composite_conditions(member, news, now)
            if after != before:
                yield kind, member, native_group_status(after)

    def begin_queue(self, name: str, allocated: Resource, usage: QueueUsage | None = None) -> bool:
        """Return True if a queue's status must be written, as ``begin_group``."""
        queue = self._cache.queues.get(name)
        if queue is None or self._refused_queues.holds_back(name):
            return False
        return bool(queue_difference(queue, allocated, usage)) and self.queues.begin(name, (allocated, usage))

    async def write_queue(self, name: str, allocated: Resource, usage: QueueUsage | None = None) -> None:
        """Write what differs by now."""
        queue = self._cache.queues.get(name)
        change = queue_difference(queue, allocated, usage) if queue is not None else {}
        version = ""
        if queue is not None and change:
            version = await self._merge(kind_of_queue(queue), name, queue.uid, change, self._refused_queues)
        if queue is None or not version:
            self.queues.failed(name, (allocated, usage))
            return
        self.queues.done(name, (allocated, usage), version, self._cache.queues.get(name, queue).resource_version)

    async def _merge(self, kind: Kind, key: str, uid: str, status: dict[str, Any], refusals: RefusedWrites) -> str:
        """Return the new version, "" if nothing was written."""
        try:
            if kind not in self._subresource:
                self._subresource[kind] = await self._client.served(kind, "status")
        except KubeError as error:
            refusals.refused(key, error)
            return ""
        path = kind.path(key, "status" if self._subresource[kind] else "")
        return await self._patch(path, {"metadata": {"uid": uid}, "status": status}, key, refusals)

    async def _patch(self, path: str, body: dict[str, Any], key: str, refusals: RefusedWrites) -> str:
        """Return the new version, "" if nothing was written."""
        try:
            version = version_of(await self._client.patch(path, body, retries=ONCE))
        except ApiError as error:
            if error.status == 404:
                self._subresource.clear()  # the object is gone, or its definition was replaced
            elif error.status != 409:
                refusals.refused(key, error)
            return ""
        except KubeError as error:
            refusals.refused(key, error)
            return ""
        refusals.written(key)
        return version


class _GroupWrite(NamedTuple):
    """What an update says, without what differs between sessions."""

    status: PodGroupStatus
    times: GangTimes | None
    error: str
    eviction: str


def _write_of(update: PodGroupUpdate) -> _GroupWrite:
    return _GroupWrite(group_words(update.status), update.times, update.error, update.eviction)
