"""Repeat warnings that still hold before the API server deletes their events, and report jobs whose queue does not
exist.

What holds is read from objects: conditions of waiting pods and PodGroups, and objects that cannot be read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from pumice.kube.api.kinds import Kind
from pumice.kube.informers.informer_cache import InformerCache
from pumice.kube.informers.unparsable import Unparsable
from pumice.kube.writers.event_recorder import EventRecorder, about_group, about_pod, about_unread
from pumice.kube.writers.pod_status import SCHEDULED
from pumice.kube.writers.statuses import group_event
from pumice.model.workloads.podgroup import PodGroup

if TYPE_CHECKING:
    from pumice.framework.cycle.outcome import Outcome

#: Events are kept for an hour, unless the API server is configured otherwise.
AGAIN_S = 1200.0

Unreads = Callable[[], Iterable[tuple[Kind, Unparsable]]]


class Reminders:
    """``unread``: returns the objects that cannot be read at present."""

    def __init__(self, truth: InformerCache, teller: EventRecorder, unread: Unreads, again_s: float = AGAIN_S) -> None:
        self._truth, self._teller, self._unread, self._again_s = truth, teller, unread, again_s
        self._without_queue: dict[str, PodGroup] = {}

    async def run(self) -> None:
        """Run until cancelled. Objects that could not be read before the start are reported at once."""
        self._remind_of_unread()
        while True:
            await asyncio.sleep(self._again_s)
            self.remind()

    def remind(self) -> None:
        """Report everything that holds."""
        self._remind_of_unread()
        for pod in self._truth.pods.values():
            if pod.node_name or pod.phase != "Pending" or pod.deletion is not None or pod.gates:
                continue
            for condition in pod.conditions:
                if condition.type == SCHEDULED and condition.status == "False":
                    self._teller.tell(about_pod(pod), "Warning", "FailedScheduling", condition.message)
        for group in self._truth.groups.values():
            event = group_event(group.status)
            if event is not None and event[0] == "Warning":
                self._teller.tell(about_group(group), *event)
        for group in list(self._without_queue.values()):
            self._tell_of_queue(group)

    def note(self, outcome: Outcome) -> None:
        """Note, in the thread of cycles, PodGroups whose queue does not exist. They are in no session, so nothing else
        says why they wait."""
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
        self._teller.tell(about_group(group), "Warning", "QueueNotFound", text)

    def _remind_of_unread(self) -> None:
        for kind, unread in self._unread():
            tell_of_unread(self._teller, kind, unread)


def tell_of_unread(teller: EventRecorder, kind: Kind, unread: Unparsable) -> None:
    """Emit an event on an object that could not be read, if it has a name."""
    if unread.uid:
        teller.tell(about_unread(kind, unread), "Warning", "Unreadable", unread.why)
