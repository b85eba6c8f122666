"""The cluster port over an API server: the cycle's thread hands over and goes on, tasks on the event loop do the rest.

What a cycle needs to know comes in by ``sink``, from reflectors; what it decided goes out through lanes: binds first,
then evictions and statuses, then what people read. Every decision that is taken comes back in bounded time as an event:
the pod as it became, its end, or ``Undone``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pumice.kube.binding import Binder, PreBind
from pumice.kube.client import Client
from pumice.kube.codec import Codec
from pumice.kube.events_out import Teller, about_group
from pumice.kube.evicting import Evictor
from pumice.kube.flights import Flight, Flights
from pumice.kube.kinds import PODS
from pumice.kube.lanes import Lane
from pumice.kube.pace import Pace
from pumice.kube.pod_status import PodStatuses
from pumice.kube.resync import Resync
from pumice.kube.sent import Sent
from pumice.kube.statuses import Statuses
from pumice.kube.truth import ENDED, Truth
from pumice.model.decisions import Bind, Decision, Evict, PodGroupUpdate, PodNotice, Refusal
from pumice.model.events import Event, Gone, Object, Seen
from pumice.model.manifest import Decoder
from pumice.model.pod import Pod
from pumice.model.podgroup import PodGroup
from pumice.model.queue import Queue
from pumice.model.resources import Resource

if TYPE_CHECKING:
    from pumice.framework.outcome import Outcome

_log = logging.getLogger("pumice.kube")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may wait and be under way at once.

    ``binds``, ``evictions``: waiting; more are refused. A gang that began to be taken is taken whole, up to twice as
    many. ``confirm_s``: a decision that the API server accepted and that no watch has confirmed by then is looked up.
    ``hold_s``: how long events and conditions wait for binds to go first.
    """

    binds: int = 20_000
    bind_workers: int = 16
    evictions: int = 10_000
    evict_workers: int = 4
    statuses: int = 20_000
    status_workers: int = 2
    confirm_s: float = 30.0
    hold_s: float = 0.25


@dataclass(frozen=True, slots=True)
class Style:
    """``scheduler`` signs events and conditions. ``use_eviction`` asks the eviction API in place of deleting pods."""

    scheduler: str = "volcano"
    use_eviction: bool = False


class KubeCluster:
    """Implements ``runtime.ports.Cluster``. One object serves one term of leadership or many.

    * ``sink(events)``: what reflectors tell; from any thread, oldest first. Every kind that the store takes goes here.
    * ``drain``, ``bind``, ``evict``, ``write_group``, ``write_queue``, ``notice``, ``tell``: from the thread of the
      cycle; they return at once. ``Loop.step`` calls the first five; after it, ``tell(outcome)`` is for what users read.
    * ``changed``: a hook, called from whichever thread brings news that may change a decision; it must not wait.
    * ``run()``: the workers; until cancelled. What is handed over before it runs waits.
    * ``flush(seconds)``: take no more decisions, and wait until those that were taken are done. Then cancel ``run``.

    ``pods`` is the reflector's codec of pods, or one of its own. ``hooks`` run before each bind. ``timed`` is told the
    stages ``PreBind`` and ``Bind`` with the seconds they took.
    """

    def __init__(
        self,
        client: Client,
        *,
        pods: Codec | None = None,
        hooks: Sequence[PreBind] = (),
        limits: Limits | None = None,
        style: Style | None = None,
        timed: Callable[[str, float], None] = lambda stage, seconds: None,
        pace: Pace | None = None,
    ) -> None:
        self.changed: Callable[[], None] = lambda: None
        self.limits = limits or Limits()
        style = style or Style()
        clock = time.monotonic
        self.flights = Flights(clock)
        self.truth = Truth(lambda: self.changed())
        self.teller = Teller(client, style.scheduler, self._room)
        self._sent = Sent(self.limits.confirm_s, clock)
        self._conditions = PodStatuses(client, self.truth, self.teller, self._sent, self._room)
        self._statuses = Statuses(client, self.truth, self.teller, self.limits.confirm_s, clock)
        self._binder = Binder(client, self.truth, self.flights, self.teller, self._conditions, hooks, timed)
        self._evictor = Evictor(
            client, self.truth, self.flights, self.teller, style.scheduler, use_eviction=style.use_eviction
        )
        self._resync = Resync(client, pods or Codec(PODS, Decoder()), self._settle, pace or Pace())
        limits = self.limits
        self.binds: Lane[Flight] = Lane(
            "binds", self._send_bind, workers=limits.bind_workers, waiting_max=2 * limits.binds
        )
        self.evictions: Lane[Flight] = Lane(
            "evictions", self._send_evict, workers=limits.evict_workers, waiting_max=limits.evictions
        )
        self._group_lane: Lane[PodGroupUpdate] = Lane(
            "podgroups", self._statuses.write_group, workers=limits.status_workers, waiting_max=limits.statuses
        )
        self._queue_lane: Lane[tuple[str, Resource]] = Lane(
            "queues", lambda item: self._statuses.write_queue(*item), workers=1, waiting_max=limits.statuses
        )
        self._notice_lane: Lane[PodNotice] = Lane(
            "conditions", self._conditions.write, workers=limits.status_workers, waiting_max=limits.statuses
        )
        self._stopping = False
        self._taking = ""  # the job whose binds are being taken
        self._turned_away: set[str] = set()  # jobs that there was no room for in this cycle

    # -- what comes in -------------------------------------------------------------------------------------------------

    def sink(self, events: list[Event]) -> None:
        """What was heard from the API server, oldest first. Echoes of our own writes wake nobody."""
        news = False
        for event in events:
            news |= not (self._is_echo(event.obj) if isinstance(event, Seen) else self._ended(event))
        self.truth.hear(events, news=news)

    def _is_echo(self, obj: Object) -> bool:
        match obj:
            case Pod():
                ours = self._sent.heard(obj.key, obj.resource_version)
                return self.flights.heard(obj) or ours
            case PodGroup():
                return self._statuses.groups.heard(obj.key, obj.resource_version)
            case Queue():
                return self._statuses.queues.heard(obj.name, obj.resource_version)
            case _:
                return False

    def _ended(self, event: Event) -> bool:
        """Forget an object that is gone; that is news."""
        if isinstance(event, Gone):
            if event.kind is Pod:
                self.flights.gone(event.key)
                self._sent.gone(event.key)
                self._resync.pace.forget(event.key)
            elif event.kind is PodGroup:
                self._statuses.groups.gone(event.key)
            elif event.kind is Queue:
                self._statuses.queues.gone(event.key)
        return False

    def drain(self) -> list[Event]:
        self._turned_away.clear()
        return self.truth.drain()

    # -- what goes out -------------------------------------------------------------------------------------------------

    def bind(self, decision: Bind) -> Refusal | None:
        """Take a bind on, unless the pod has changed since the snapshot by what is known, or there is no room."""
        why = self._stands_against(decision) or self._no_room_for(decision)
        if why:
            self._turned_away.add(decision.job)
            return Refusal(why)
        self._taking = decision.job
        flight = Flight(decision)
        self.flights.add(flight)
        self.binds.put(decision.uid, flight)
        return None

    def evict(self, decision: Evict) -> Refusal | None:
        """Take an eviction on."""
        why = self._not_this(decision)
        if why is None and isinstance(getattr(self.flights.of(decision.pod), "decision", None), Evict):
            why = f"pod {decision.pod} is being evicted already"
        if why is None:
            flight = Flight(decision)
            before = self.flights.of(decision.pod)
            self.flights.add(flight)
            if self.evictions.put(decision.uid, flight):
                return None
            self.flights.end(flight)
            if before is not None:
                self.flights.add(before)
            why = f"{self.limits.evictions} evictions are under way already"
        return Refusal(why)

    def write_group(self, update: PodGroupUpdate) -> None:
        """Write the difference, unless it is on its way already. One that finds no room comes again with the next cycle."""
        if self._statuses.begin_group(update) and not self._group_lane.put(update.job, update):
            self._statuses.groups.gone(update.job)

    def write_queue(self, name: str, allocated: Resource) -> None:
        """As for a PodGroup."""
        if self._statuses.begin_queue(name, allocated) and not self._queue_lane.put(name, (name, allocated)):
            self._statuses.queues.gone(name)

    def notice(self, notice: PodNotice) -> None:
        """As for a PodGroup, with an event."""
        if self.flights.of(notice.pod) is None and self._conditions.begin(notice):
            if not self._notice_lane.put(notice.pod, notice):
                self._sent.gone(notice.pod)

    def tell(self, outcome: Outcome) -> None:
        """Say on pods and PodGroups what a cycle found out: why they wait."""
        for notice in outcome.notices():
            self.notice(notice)
        for event in outcome.events:
            group = self.truth.groups.get(event.job)
            if group is not None:
                self.teller.tell(about_group(group), event.type, event.reason, event.message)

    # -- what stands against a decision --------------------------------------------------------------------------------

    def _stands_against(self, bind: Bind) -> str | None:
        why = self._not_this(bind)
        if why is not None:
            return why
        pod = self.truth.pods[bind.pod]
        if pod.node_name:
            return f"pod {bind.pod} is already on node {pod.node_name}"
        if bind.node not in self.truth.nodes:
            return f"node {bind.node} does not exist"
        flight = self.flights.of(bind.pod)
        return f"pod {bind.pod} is on its way to {flight.decision.node}" if flight is not None else None

    def _not_this(self, decision: Decision) -> str | None:
        """Why a decision is not about the pod that is there, or comes too late."""
        pod = self.truth.pods.get(decision.pod)
        if self._stopping:
            return "the scheduler is stopping"
        if pod is None:
            return f"pod {decision.pod} does not exist"
        if pod.uid != decision.uid:
            return f"pod {decision.pod} is another one by now: uid {pod.uid}, not {decision.uid}"
        if pod.deletion is not None:
            return f"pod {decision.pod} is being deleted"
        return f"pod {decision.pod} has {pod.phase.lower()}" if pod.phase in ENDED else None

    def _no_room_for(self, bind: Bind) -> str | None:
        """A gang is taken whole or not at all: the limit counts where a job begins."""
        begun = bind.job == self._taking and bind.job not in self._turned_away
        if len(self.binds) < (2 if begun else 1) * self.limits.binds and bind.job not in self._turned_away:
            return None
        return f"{len(self.binds)} binds are under way already"

    # -- the workers ---------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until cancelled. What is not done by then is known to the API server, or never happened."""
        async with asyncio.TaskGroup() as group:
            for lane in (self.binds, self.evictions, self._resync.lane, *self._quiet_lanes()):
                group.create_task(lane.run())
            group.create_task(self._confirm())

    async def flush(self, seconds: float) -> int:
        """Refuse all further decisions and wait for those that were taken, then for statuses and events, so long at most.

        Returns how many decisions are still under way.
        """
        self._stopping = True
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.binds.left or self.evictions.left or self._resync.lane.left:
                    for lane in (self.binds, self.evictions, self._resync.lane):
                        await lane.empty()
                for quiet in self._quiet_lanes():
                    await quiet.empty()
        return self.binds.left + self.evictions.left + self._resync.lane.left

    def _quiet_lanes(self) -> tuple[Lane[PodGroupUpdate] | Lane[tuple[str, Resource]] | Lane[PodNotice], ...]:
        return self._group_lane, self._queue_lane, self._notice_lane, self.teller.lane  # type: ignore[return-value]

    async def _room(self) -> None:
        """Let binds go first, for a moment."""
        if len(self.binds) > self.limits.bind_workers:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.binds.empty(), self.limits.hold_s)

    async def _send_bind(self, flight: Flight) -> None:
        if not await self._binder.send(flight):
            self._resync.put(flight)

    async def _send_evict(self, flight: Flight) -> None:
        if not await self._evictor.send(flight):
            self._resync.put(flight)

    async def _settle(self, flight: Flight, pod: Pod | None) -> None:
        await (self._binder if isinstance(flight.decision, Bind) else self._evictor).settle(flight, pod)

    async def _confirm(self) -> None:
        """Look up what was accepted and never heard of: an assumption holds room only so long without the API's word."""
        while True:
            await asyncio.sleep(self.limits.confirm_s / 4)
            for flight in self.flights.overdue(self.limits.confirm_s):
                _log.warning("pod %s: no watch has confirmed a decision: looking it up", flight.decision.pod)
                self.flights.land(flight)  # not again at once
                self._resync.put(flight)
