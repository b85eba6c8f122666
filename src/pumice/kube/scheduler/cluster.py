"""The cluster port over an API server: the thread of cycles hands work over and goes on; tasks on the event loop do it.

What a cycle needs arrives through ``sink``, from reflectors. What it decided leaves through work queues: binds first,
then nominations, then evictions and statuses, then messages for people. Every accepted decision comes back in bounded
time as an event: the pod's new state, its end, or ``Undone``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from pumice.kube.api.client import Client
from pumice.kube.api.codec import Codec
from pumice.kube.api.kinds import PODS
from pumice.kube.api.rate_limit import RateLimit
from pumice.kube.binding.bind import Binder, PreBind
from pumice.kube.binding.bind_requests import RequestBinder
from pumice.kube.binding.gpu_reservations import GpuReservations
from pumice.kube.binding.resync import Resync
from pumice.kube.informers.informer_cache import InformerCache
from pumice.kube.writers.event_recorder import EventRecorder, about_group
from pumice.kube.writers.evicting import Evictor
from pumice.kube.writers.evictions import Evictions
from pumice.kube.writers.hint_conditions import HintConditions, without_hint
from pumice.kube.writers.pending_writes import PendingWrites
from pumice.kube.writers.pod_status import SCHEDULER_ERROR, PodStatuses
from pumice.kube.writers.scheduling_gates import Gates
from pumice.kube.writers.statuses import Statuses
from pumice.kube.writers.work_queue import WorkQueue
from pumice.kube.writers.writing import AS_VOLCANO_DOES, UNTIMED, Timers, Writing
from pumice.model.bind_request import BindRequest
from pumice.model.config_map import ConfigMap
from pumice.model.decisions import GPU_GROUPS, Bind, Decision, Evict, PodGroupUpdate, PodNotice, Refusal
from pumice.model.events import Event, Gone, Object, Seen
from pumice.model.manifest import Decoder
from pumice.model.node import Node
from pumice.model.pod import ENDED, Pod
from pumice.model.queue import Queue, QueueUsage
from pumice.model.resources import Resource
from pumice.model.workloads.composite import CompositePodGroup, tree_key
from pumice.model.workloads.podgroup import PodGroup
from pumice.reasons.outside_sessions import notices_outside, notices_passed_over, unreadable_groups
from pumice.runtime.bind_checks import BindChecks, refusal_of_state
from pumice.runtime.in_flight import InFlightDecision, InFlightDecisions
from pumice.volcano.status import rejections

if TYPE_CHECKING:
    from pumice.framework.cycle.outcome import Outcome

_log = logging.getLogger("pumice.kube")


class KubeCluster:
    """Implements ``runtime.ports.Cluster``. One object, with one store, serves one term of leadership.

    * ``sink(events)``: events of reflectors; from any thread, oldest first. Every kind that the store takes goes here.
    * ``drain``, ``submit``, ``write_group``, ``write_queue``, ``notice``, ``report``: from the thread of cycles; they
      return at once. ``Loop.step`` calls the first four. ``report(outcome)`` after it is for what users read, and
      ``evictions.release`` in any case: evictions that were submitted wait for it.
    * ``changed``: a hook, called from any thread that receives news that may change a decision; it must not wait.
    * ``is_synced``: a hook that returns whether everything was listed; before that it is unknown what is not needed.
    * ``run()``: the workers; once, until cancelled. Work that is handed over before waits. When it is cancelled, work
      in progress was done or was not, and the next leader reads from the API server which.
    * ``flush(seconds)``: accept no more decisions, and wait until those that are begun are done. Then cancel ``run``.

    ``scheduler``: name in events and conditions. ``hooks``: run before each bind.
    """

    def __init__(
        self,
        client: Client,
        writing: Writing = AS_VOLCANO_DOES,
        *,
        scheduler: str = "volcano",
        hooks: Sequence[PreBind] = (),
        timers: Timers = UNTIMED,
    ) -> None:
        self.changed: Callable[[], None] = lambda: None
        self.is_synced: Callable[[], bool] = lambda: True
        self.limits = limits = writing.limits
        self.in_flight = in_flight = InFlightDecisions(time.monotonic)
        self.cache = cache = InformerCache(self._wake)
        self._checks = BindChecks(cache, in_flight)
        self.recorder = recorder = EventRecorder(client, scheduler, self._room)
        self._sent = PendingWrites(limits.confirm_s, time.monotonic)
        self._conditions = PodStatuses(client, cache, recorder, self._sent, self._room)
        self._statuses = Statuses(client, cache, recorder, limits.confirm_s)
        self._gates = Gates(client, cache, limits.confirm_s, limits.status_workers, limits.statuses)
        self.remove_gate = self._gates.put
        self._hints = HintConditions(self._statuses.groups.is_under_way, recorder)
        self._request_binder: RequestBinder | None = None
        self._devices = GpuReservations(client, cache, in_flight, recorder, scheduler, writing.reserving)
        self._binder = self._binder_for(client, writing, hooks, timers)
        self._evictor = Evictor(client, cache, in_flight, recorder, scheduler, use_eviction=writing.use_eviction)
        self._resync = Resync(client, Codec(PODS, Decoder()), self._settle, RateLimit())
        self._failed_binds: dict[str, tuple[str, str]] = {}  # pod -> its UID, and why its last bind failed
        self._failures = RateLimit(first_s=0.25, rate=0.0)  # per pod, because each failure triggers a cycle
        self.binds = WorkQueue("binds", self._send, workers=limits.bind_workers, waiting_max=2 * limits.binds)
        self.shared_binds = WorkQueue(  # a queue of its own, so that no other pod waits for a device
            "shared binds", self._send, workers=limits.shared_bind_workers, waiting_max=2 * limits.binds
        )
        self.evictions = Evictions(
            self._send, self._conditions.write_at_once, limits.evict_workers, limits.evictions, limits.hold_s
        )
        self._group_work_queue: WorkQueue[PodGroupUpdate] = WorkQueue(
            "podgroups", self._statuses.write_group, workers=limits.status_workers, waiting_max=limits.statuses
        )
        self._queue_work_queue: WorkQueue[tuple[str, Resource, QueueUsage | None]] = WorkQueue(
            "queues", lambda item: self._statuses.write_queue(*item), workers=1, waiting_max=limits.statuses
        )
        self._notice_work_queue: WorkQueue[PodNotice] = WorkQueue(
            "conditions", self._conditions.write, workers=limits.status_workers, waiting_max=limits.statuses
        )
        self._aged = timers.aged
        self._stopping = False
        self._taking = ""  # the job whose binds are being accepted
        self._rejected: set[str] = set()  # jobs whose first bind in this cycle was refused
        self._evicting: dict[str, None] = {}  # jobs with evictions in this cycle, of which no status says so yet

    def _binder_for(
        self, client: Client, writing: Writing, hooks: Sequence[PreBind], timers: Timers
    ) -> Binder | RequestBinder:
        """Return what carries out binds: this program, or KAI's binder, which is asked."""
        cache, in_flight, recorder = self.cache, self.in_flight, self.recorder
        stages, why_not = (timers.timed, self._reached), self._checks.why_not
        if writing.requests is None:
            statuses, devices = self._conditions, self._devices
            return Binder(client, cache, in_flight, recorder, statuses, hooks, *stages, devices, why_not)
        limit = writing.requests.backoff_limit
        self._request_binder = RequestBinder(
            client, cache, in_flight, recorder, *stages, self._request_failed, limit, why_not
        )
        return self._request_binder

    # -- what comes in -------------------------------------------------------------------------------------------------

    def sink(self, events: list[Event]) -> None:
        """Apply events, oldest first. Echoes of our own writes and heartbeats trigger no cycle."""
        nothing_new = [isinstance(event, Seen) and self._is_heartbeat(event.obj) for event in events]
        self.cache.apply(events)  # first, because a pod that is no longer in flight must be known as bound
        news = False
        for event, is_heartbeat in zip(events, nothing_new, strict=True):
            if not is_heartbeat:
                self._checks.observe(event)  # before a bind is no longer in flight
            self._devices.take(event)
            if isinstance(event, Seen):
                news |= not (is_heartbeat or self._is_echo(event.obj))
            else:
                news = True
                self._forget(event)
        if news:
            self.changed()

    def _wake(self) -> None:
        """Call the present hook."""
        self.changed()

    def _is_heartbeat(self, obj: Object) -> bool:
        """Return True if a change decides nothing: kubelets write statuses, and of a ConfigMap only the name counts."""
        if not isinstance(obj, Node):
            return isinstance(obj, ConfigMap) and self.cache.has_config_map(obj)
        known = self.cache.nodes.get(obj.name)
        return known is not None and replace(obj, resource_version=known.resource_version) == known

    def _is_echo(self, obj: Object) -> bool:
        match obj:
            case BindRequest():
                return self._request_binder is not None and self._request_binder.observe(obj)
            case Pod():
                ours = self._sent.observe(obj.key, obj.resource_version)
                is_done = self.in_flight.observe(obj)
                if is_done or (obj.node_name and self._request_binder is not None):
                    self._forget_failures(obj.key)
                return is_done or ours
            case PodGroup():
                return self._statuses.groups.observe(obj.key, obj.resource_version)
            case CompositePodGroup():
                return self._statuses.groups.observe(tree_key(obj.key), obj.resource_version)
            case Queue():
                return self._statuses.queues.observe(obj.name, obj.resource_version)
            case _:
                return False

    def _forget(self, event: Event) -> None:
        """Note that an object is gone."""
        if not isinstance(event, Gone):
            return
        if event.kind is Pod:
            self.in_flight.gone(event.key)
            self._conditions.gone(event.key)
            self._gates.gone(event.key)
            self._forget_failures(event.key)
        elif event.kind is PodGroup:
            self._statuses.group_gone(event.key)
        elif event.kind is CompositePodGroup:
            self._statuses.group_gone(tree_key(event.key))
        elif event.kind is Queue:
            self._statuses.queue_gone(event.key)
        elif event.kind is BindRequest and self._request_binder is not None:
            self._request_binder.gone(event.key)

    def drain(self) -> list[Event]:
        """Return the events since the last call, oldest first."""
        self._taking = ""
        self._rejected.clear()
        self._checks.begin()
        return self.cache.drain()

    # -- what goes out -------------------------------------------------------------------------------------------------

    def submit(self, decisions: Sequence[Decision]) -> Mapping[int, Refusal]:
        """Accept decisions one by one; each may be refused."""
        answers = (
            self.bind(decision) if isinstance(decision, Bind) else self._hold(decision) for decision in decisions
        )
        return {place: refusal for place, refusal in enumerate(answers) if refusal is not None}

    def bind(self, decision: Bind) -> Refusal | None:
        """Accept a bind, unless the pod has changed since the snapshot, or too many binds are waiting."""
        begun = decision.job == self._taking
        why = self._reason_against(decision) or self._no_room_for(decision, begun)
        if why is not None:
            if not begun:
                self._rejected.add(decision.job)
            return Refusal(why)
        self._taking = decision.job
        entry = self._checks.entry(decision)
        self.in_flight.add(entry)
        self._reached("Assumed", decision)
        self.recorder.record_ignored_group(self.cache.pods.get(decision.pod))
        (self.binds if GPU_GROUPS not in decision.context else self.shared_binds).put(entry.key, entry)
        return None

    def evict(self, decision: Evict) -> Refusal | None:
        """Accept an eviction, and send it."""
        refusal = self._hold(decision)
        self.evictions.release()
        return refusal

    def _hold(self, decision: Evict) -> Refusal | None:
        entry, before = InFlightDecision(decision), self.in_flight.of(decision.pod)
        why = self._not_this(self.cache.pods.get(decision.pod), decision)
        if why is None and before is not None and isinstance(before.decision, Evict):
            why = f"pod {decision.pod} is being evicted already"
        if why is None and len(self.evictions) >= self.limits.evictions:
            why = f"{len(self.evictions)} evictions are under way already"
        if why is not None:
            return Refusal(why)
        self.in_flight.add(entry)
        self._evicting[decision.job] = None
        self.evictions.hold(entry)
        return None

    def write_group(self, update: PodGroupUpdate) -> None:
        """Write the difference, unless that is under way. An update that finds the queue full comes again with the next
        cycle."""
        update = without_hint(update)
        if eviction := self._statuses.eviction_of(update.job, self.in_flight):
            self._evicting.pop(update.job, None)
            update = replace(update, eviction=eviction)
        if self._statuses.begin_group(update) and not self._group_work_queue.put(update.job, update):
            self._statuses.groups.gone(update.job)

    def write_queue(self, name: str, allocated: Resource, usage: QueueUsage | None = None) -> None:
        """Write a queue's status, as ``write_group``."""
        status = allocated, usage
        if self._statuses.begin_queue(name, *status) and not self._queue_work_queue.put(name, (name, *status)):
            self._statuses.queues.gone(name)

    def notice(self, notice: PodNotice) -> None:
        """Write a notice, as ``write_group``, with an event. While a pod is held back because its bind failed, that is
        its reason."""
        failed = self._failed_binds.get(notice.pod)
        if failed is not None and failed[0] == notice.uid and self._failures.left_s(notice.pod):
            notice = replace(notice, reason=SCHEDULER_ERROR, message=failed[1])
        if self.in_flight.of(notice.pod) is not None or not self._conditions.begin(notice):
            return
        self.recorder.record_ignored_group(self.cache.pods.get(notice.pod))
        work_queue = self.evictions.nominations if self._conditions.nominates(notice) else self._notice_work_queue
        if not work_queue.put(notice.pod, notice):
            self._sent.gone(notice.pod)

    def report(self, outcome: Outcome) -> None:
        """Write to pods and PodGroups what a cycle found: why they wait."""
        for notice in chain(outcome.notices(), notices_outside(outcome), notices_passed_over(outcome)):
            self.notice(notice)
        for update in chain(self._hints.updates(outcome), unreadable_groups(outcome)):
            self.write_group(update)
        # Those of earlier cycles whose write failed come again, although no cycle may say anything of their groups.
        for job in dict.fromkeys((*self._evicting, *self._statuses.unwritten_evictions())):
            if (group := self.cache.groups.get(job)) is not None and group.native is not None:
                self.write_group(PodGroupUpdate(job, group.status))
        self._evicting.clear()
        for event in rejections.events(outcome):
            group = self.cache.groups.get(event.job)
            if group is not None:
                self.recorder.record(about_group(group), event.type, event.reason, event.message)

    # -- reasons against a decision -----------------------------------------------------------------------------------

    def _reason_against(self, bind: Bind) -> str | None:
        pod = self.cache.pods.get(bind.pod)
        why = self._not_this(pod, bind)
        if why is not None or pod is None:
            return why
        if pod.node_name:
            return f"pod {bind.pod} is already on node {pod.node_name}"
        if bind.node not in self.cache.nodes:
            return f"node {bind.node} does not exist"
        entry = self.in_flight.of(bind.pod)
        return f"pod {bind.pod} is on its way to {entry.decision.node}" if entry is not None else None

    def _not_this(self, pod: Pod | None, decision: Decision) -> str | None:
        """Return why a decision is not about the present pod, is too late, or too soon after one that failed."""
        if self._stopping:
            return "the scheduler is stopping"
        why = refusal_of_state(pod, decision)
        if why is not None or pod is None:
            return why
        if pod.phase in ENDED:
            return f"pod {decision.pod} has {pod.phase.lower()}"
        left_s = self._failures.left_s(decision.pod)
        return f"pod {decision.pod} failed recently: next attempt in {left_s:.1f} s" if left_s else None

    def _no_room_for(self, bind: Bind, begun: bool) -> str | None:
        """Return why a bind is not accepted. A gang is accepted as a whole or not at all: the limit counts where a job
        begins, and a refusal of its first pod is one for all."""
        if bind.job in self._rejected:
            return f"another pod of {bind.job} was refused"
        waiting = len(self.binds) + len(self.shared_binds)
        if waiting >= (2 if begun else 1) * self.limits.binds:
            return f"{waiting} binds are under way already"
        return None

    # -- the workers ---------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until cancelled. What is not done by then is known to the API server, or never happened."""
        async with asyncio.TaskGroup() as group:
            for work_queue in (
                self.binds,
                self.shared_binds,
                self.evictions.work_queue,
                self._resync.work_queue,
                *self._quiet_work_queues(),
            ):
                group.create_task(work_queue.run())
            if self._request_binder is not None:
                group.create_task(self._request_binder.deletes.run())
            group.create_task(self._confirm())
            group.create_task(self._devices.run(self.limits.release_s, self.is_synced))

    async def flush(self, seconds: float) -> int:
        """Refuse further decisions; wait for accepted ones for this time at most, then briefly for statuses and events.
        Gangs of which nothing was sent after ``Limits.stop_s`` are left to the next leader.

        Return how many decisions are still in flight.
        """
        self._stopping = True
        deciding = (self.binds, self.shared_binds, self.evictions.work_queue, self._resync.work_queue)
        begins = asyncio.get_running_loop().call_later(self.limits.stop_s, self._checks.stop)
        await _empty(deciding, seconds)
        begins.cancel()
        await _empty(self._quiet_work_queues(), min(self.limits.stop_s, seconds))
        return sum(work_queue.left for work_queue in deciding)

    def _quiet_work_queues(self) -> tuple[WorkQueue[Any], ...]:
        """Statuses, then what people read."""
        statuses = self._gates.work_queue, self._group_work_queue, self._queue_work_queue, self.evictions.nominations
        return *statuses, self._notice_work_queue, self.recorder.work_queue

    async def _room(self) -> None:
        """Wait briefly, so that binds go first."""
        if len(self.binds) > self.limits.bind_workers:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.binds.empty(), self.limits.hold_s)

    async def _send(self, entry: InFlightDecision) -> None:
        try:
            known = await self._writer_of(entry).send(entry)
        except Exception:  # the task must be given back in any case
            _log.exception("pod %s: a fault of this program", entry.decision.pod)
            known, entry.why = False, "a fault of the scheduler, see its log"
        if not known:
            self._resync.put(entry)

    async def _settle(self, entry: InFlightDecision, pod: Pod | None) -> None:
        if await self._writer_of(entry).settle(entry, pod):
            decision = entry.decision
            self._failures.delay(decision.pod)
            if isinstance(decision, Bind):
                self._failed_binds[decision.pod] = decision.uid, entry.why
                self._reached("Failed", decision)
            self.cache.give_back(decision)

    def _request_failed(self, pod: str, uid: str, why: str) -> None:
        """Note that KAI's binder has given up: the pod waits, longer each time, and its status says why."""
        _log.warning("pod %s: %s", pod, why)
        self._failures.delay(pod)
        self._failed_binds[pod] = uid, why

    def _forget_failures(self, pod: str) -> None:
        """Forget failures of a pod."""
        self._failures.forget(pod)
        self._failed_binds.pop(pod, None)

    def _writer_of(self, entry: InFlightDecision) -> Binder | RequestBinder | Evictor:
        return self._binder if isinstance(entry.decision, Bind) else self._evictor

    def _reached(self, stage: str, bind: Bind) -> None:
        pod = self.cache.pods.get(bind.pod)
        if pod is not None:
            self._aged(stage, bind, max(time.time() - pod.creation, 0.0) if pod.creation else 0.0)

    async def _confirm(self) -> None:
        """Look up decisions that were accepted and not confirmed: without the API server's word, they are assumed only
        for a limited time."""
        while True:
            await asyncio.sleep(self.limits.confirm_s / 4)
            self.cache.release_refused_evictions()
            if self.is_synced():
                await self._sweep()
            for entry in self.in_flight.overdue(self.limits.confirm_s):
                _log.warning("pod %s: no watch has confirmed a decision: looking it up", entry.decision.pod)
                self.in_flight.accept(entry)  # so that it is not looked up again at once
                self._resync.put(entry)

    async def _sweep(self) -> None:
        """Delete what is no longer needed, and what cannot be carried out."""
        if self._request_binder is not None:
            self._request_binder.sweep()
        await self._devices.end_unreserved()


async def _empty(work_queues: Sequence[WorkQueue[Any]], seconds: float) -> None:
    """Wait until nothing is left in these work queues, for this time at most."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            # Again, because one may put something into another.
            while any(work_queue.left for work_queue in work_queues):
                for work_queue in work_queues:
                    await work_queue.empty()
