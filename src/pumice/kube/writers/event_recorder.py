"""Events on objects, for users of kubectl: emitted from any thread, aggregated, bounded.

A repeated event is counted on the existing one, at most once in a while. Events that cannot be written are dropped. An
API server keeps an event for an hour after it was last written, so what lasts longer must be repeated.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any

from pumice.kube.api.backoff import TokenBucket
from pumice.kube.api.client import FOR_CREATES, Client
from pumice.kube.api.errors import ApiError, KubeError, clean
from pumice.kube.api.kinds import EVENTS, WORKLOADS, Kind, kind_of_group
from pumice.kube.informers.unparsable import Unparsable
from pumice.kube.writers.work_queue import WorkQueue
from pumice.model.decisions import Bind, Decision
from pumice.model.instants import stamp
from pumice.model.pod import NATIVE_GROUP_MARK, Pod
from pumice.model.workloads.composite import COMPOSITE_PREFIX
from pumice.model.workloads.podgroup import PodGroup
from pumice.model.workloads.workload import workloads_of
from pumice.runtime.controllers.writes import Ref
from pumice.runtime.problems.validation import ignored_group

MESSAGE_MAX = 1024  # limit of the API server
_NAME_MAX = 236  # leaves room for what makes it unique

_log = logging.getLogger("pumice.kube")


@dataclass(slots=True, eq=False)
class _Event:
    """An event, and how often it happened. ``name`` is "" until it is written."""

    ref: Ref
    type: str
    reason: str
    message: str
    first: float
    count: int = 1
    name: str = ""
    written: float = 0.0


async def _at_once() -> None:
    """Wait for nothing."""


class EventRecorder:
    """Writes events. ``component``: the scheduler's name. ``room``: awaited before each write, because others go first.

    ``again_s``: how long a count may be behind. ``rate``: writes per second. Events that will never be written are
    counted by the client.
    """

    def __init__(
        self,
        client: Client,
        component: str,
        room: Callable[[], Awaitable[None]] = _at_once,
        *,
        now: Callable[[], float] = time.time,
        workers: int = 4,
        waiting_max: int = 20_000,
        rate: float = 500.0,
        again_s: float = 60.0,
    ) -> None:
        self.work_queue: WorkQueue[_Event | Bind] = WorkQueue(
            "events", self._write, workers=workers, waiting_max=waiting_max
        )
        self._client, self._component, self._room, self._now = client, component, room, now
        self._bucket = TokenBucket(rate, rate)
        self._again_s = again_s
        self._events: OrderedDict[tuple[Ref, str, str], _Event] = OrderedDict()
        self._lock = Lock()
        self._number = time.time_ns()

    def record(self, ref: Ref, kind: str, reason: str, message: str) -> None:
        """Emit an event about an object. ``kind``: Normal or Warning."""
        key, message, now = (ref, kind, reason), clean(message, MESSAGE_MAX - 1), self._now()
        with self._lock:
            event = self._events.pop(key, None)
            if event is not None and event.message == message:
                event.count += 1
                self._events[key] = event
                if now - event.written < self._again_s:
                    return
            else:
                event = self._events[key] = _Event(ref, kind, reason, message, now)
                if len(self._events) > self.work_queue.waiting_max:
                    self._events.popitem(last=False)
        if not self.work_queue.put(f"{ref.uid} {ref.name} {reason}", event):
            self._client.counts.events_lost += 1

    def record_bound(self, bind: Bind) -> None:
        """Emit an event that a pod is bound. It happens once per pod, so nothing is remembered, and nothing is prepared
        while pods are being bound."""
        if not self.work_queue.put(bind.uid, bind):
            self._client.counts.events_lost += 1

    def record_ignored_group(self, pod: Pod | None) -> None:
        """Emit an event on a pod whose annotation names another PodGroup than the field that counts."""
        other = pod.annotations.get(NATIVE_GROUP_MARK) if pod is not None else ""
        if pod is not None and other:
            self.record(about_pod(pod), "Warning", "IgnoredGroup", ignored_group(pod, other))

    async def _write(self, item: _Event | Bind) -> None:
        await self._room()
        await self._bucket.take()
        event = _of_bind(item, self._now()) if isinstance(item, Bind) else item
        event.written = self._now()
        try:
            if event.name:
                with suppress(_Forgotten):
                    await self._count(event)
                    return
            await self._create(event)
        except KubeError as error:
            if isinstance(error, ApiError) and error.namespace_goes:
                return  # the namespace and everything in it is deleted
            self._client.counts.events_lost += 1
            _log.info("event %s on %s %s is lost: %s", event.reason, event.ref.kind, event.ref.name, error)

    async def _count(self, event: _Event) -> None:
        """Update the count. Raises: _Forgotten if the server no longer has the event."""
        path = EVENTS.path(f"{event.ref.namespace or 'default'}/{event.name}")
        try:
            await self._client.patch(path, {"count": event.count, "lastTimestamp": stamp(event.written)})
        except ApiError as error:
            if error.status == 404:
                raise _Forgotten from None
            raise

    async def _create(self, event: _Event) -> None:
        self._number += 1
        name = f"{event.ref.name[:_NAME_MAX].rstrip('.-')}.{self._number:x}"
        namespace = event.ref.namespace or "default"
        path = EVENTS.namespace_path(namespace)
        await self._client.post(path, self._event(event, namespace, name), retries=FOR_CREATES)
        event.name = name

    def _event(self, event: _Event, namespace: str, name: str) -> dict[str, Any]:
        ref = event.ref
        about = {"apiVersion": ref.api_version, "kind": ref.kind, "name": ref.name, "uid": ref.uid}
        if ref.namespace:
            about["namespace"] = ref.namespace
        return {
            "metadata": {"namespace": namespace, "name": name},
            "involvedObject": about,
            "type": event.type,
            "reason": event.reason,
            "message": event.message,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "count": event.count,
            "firstTimestamp": stamp(event.first),
            "lastTimestamp": stamp(event.written),
        }


def _of_bind(bind: Bind, now: float) -> _Event:
    text = clean(f"Successfully assigned {bind.pod} to {bind.node}", MESSAGE_MAX - 1)
    return _Event(about_pod(bind), "Normal", "Scheduled", text, now)


class _Forgotten(Exception):
    """An event that was written no longer exists."""


def about_pod(what: Pod | Decision) -> Ref:
    """Return a reference to a pod."""
    key = what.key if isinstance(what, Pod) else what.pod
    namespace, _, name = key.partition("/")
    return Ref("v1", "Pod", namespace, name, what.uid)


def about_unparsable(kind: Kind, unparsable: Unparsable) -> Ref:
    """Return a reference to an object that could not be read."""
    namespace, _, name = unparsable.key.rpartition("/")
    return Ref(kind.api_version, kind.kind, namespace, name, unparsable.uid)


def about_group(group: PodGroup) -> Ref:
    """Return a reference to a PodGroup, to the root of a tree, or to the Workload of a pod group."""
    kind = kind_of_group(group)
    if kind is WORKLOADS:
        workload = next(workloads_of((group,)))
        return Ref(kind.api_version, kind.kind, workload.namespace, workload.name, workload.uid)
    return Ref(kind.api_version, kind.kind, group.namespace, group.name.removeprefix(COMPOSITE_PREFIX), group.uid)
