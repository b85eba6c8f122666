"""Repeat warnings that still hold before the API server deletes their events, and report jobs whose queue does not
exist.

What holds is read from objects: conditions of waiting pods and PodGroups, and objects that cannot be read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from pumice.kube.api.kinds import Kind
from pumice.kube.informers.informer_cache import InformerCache
from pumice.kube.informers.unparsable import Unparsable
from pumice.kube.writers.event_recorder import EventRecorder, about_group, about_pod, about_unparsable
from pumice.kube.writers.pod_status import SCHEDULED
from pumice.kube.writers.statuses import group_event
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.gangs_below_minimum import GangsBelowMinimum

if TYPE_CHECKING:
    from pumice.framework.cycle.outcome import Outcome

#: Events are kept for an hour, unless the API server is configured otherwise.
AGAIN_S = 1200.0

UnparsableNow = Callable[[], Iterable[tuple[Kind, Unparsable]]]


class Reminders:
    """``unparsable``: returns the objects that cannot be read at present."""

    def __init__(
        self,
        cache: InformerCache,
        recorder: EventRecorder,
        unparsable: UnparsableNow,
        again_s: float = AGAIN_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._cache, self._recorder, self._unparsable, self._again_s = cache, recorder, unparsable, again_s
        self._without_queue: dict[str, PodGroup] = {}
        self.below_minimum = GangsBelowMinimum()

    async def run(self) -> None:
        """Run until cancelled. Objects that could not be read before the start are reported at once."""
        self._remind_of_unparsable()
        while True:
            await asyncio.sleep(self._again_s)
            self.remind()

    def remind(self) -> None:
        """Report everything that holds."""
        self._remind_of_unparsable()
        for pod in self._cache.pods.values():
            if pod.node_name or pod.phase != "Pending" or pod.deletion is not None or pod.gates:
                continue
            for condition in pod.conditions:
                if condition.type == SCHEDULED and condition.status == "False":
                    self._recorder.record(about_pod(pod), "Warning", "FailedScheduling", condition.message)
        for group in self._cache.groups.values():
            event = group_event(group.status)
            if event is not None and event[0] == "Warning":
                self._recorder.record(about_group(group), *event)
        for group in list(self._without_queue.values()):
            self._tell_of_queue(group)

    def note(self, outcome: Outcome) -> None:
        """Note, in the thread of cycles, PodGroups whose queue does not exist: they are in no session, so nothing else
        says why they wait. Warn of gangs that hold nodes below their minimum."""
        for group, text in self.below_minimum.note(outcome, self._clock()):
            self._recorder.record(about_group(group), "Warning", "BelowMinimum", text)
        jobs = outcome.tables.jobs
        rows = (jobs.alive & (jobs.queue < 0)).nonzero()[0].tolist()
        found: dict[str, PodGroup] = {group.key: group for row in rows if (group := jobs.groups[row]) is not None}
        for key, group in found.items():
            before = self._without_queue.get(key)
            if before is None or (before.uid, before.queue) != (group.uid, group.queue):
                self._tell_of_queue(group)
        self._without_queue = found

    def _tell_of_queue(self, group: PodGroup) -> None:
        text = f"queue {group.queue!r} does not exist: create it, or name another in spec.queue"
        self._recorder.record(about_group(group), "Warning", "QueueNotFound", text)

    def _remind_of_unparsable(self) -> None:
        for kind, unparsable in self._unparsable():
            record_unparsable(self._recorder, kind, unparsable)


def record_unparsable(recorder: EventRecorder, kind: Kind, unparsable: Unparsable) -> None:
    """Emit an event on an object that could not be read, if it has a name."""
    if unparsable.uid:
        recorder.record(about_unparsable(kind, unparsable), "Warning", "Unreadable", unparsable.why)
