"""The statuses of PodGroups and Queues, written as differences from what they are.

Whether a kind has a status subresource is asked of the server: Volcano's PodGroup has none, its Queue has one. What
could not be written is not tried again here: a later cycle wants it again, from what there is by then. What was refused
is held back for a while, object by object: else each cycle would be refused again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pumice.kube.client import ONCE, Client
from pumice.kube.errors import ApiError, KubeError
from pumice.kube.events_out import Teller, about_group
from pumice.kube.kinds import POD_GROUPS, QUEUES, Kind
from pumice.kube.refusals import Refusals
from pumice.kube.sent import Sent, version_of
from pumice.kube.truth import Truth
from pumice.model.decisions import PodGroupUpdate
from pumice.model.podgroup import PodGroup, PodGroupCondition, PodGroupStatus
from pumice.model.resources import Resource
from pumice.runtime.controllers.writes import merge_patch, stamp


def group_status(status: PodGroupStatus) -> dict[str, Any]:
    """A PodGroup's status as the API has it; counts of nothing are left out."""
    found: dict[str, Any] = {"phase": status.phase}
    if status.conditions:
        found["conditions"] = [_condition(condition) for condition in status.conditions]
    counts = {"running": status.running, "succeeded": status.succeeded, "failed": status.failed}
    return found | {name: count for name, count in counts.items() if count}


def _condition(condition: PodGroupCondition) -> dict[str, Any]:
    found = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "transitionID": condition.transition_id,
    }
    if condition.last_transition:
        found["lastTransitionTime"] = stamp(condition.last_transition)
    return {name: value for name, value in found.items() if value}


def group_words(status: PodGroupStatus) -> PodGroupStatus:
    """The status without what differs from session to session: when a condition was set, and in which session."""
    conditions = (replace(condition, transition_id="", last_transition=0.0) for condition in status.conditions)
    return replace(status, conditions=tuple(conditions))


def group_difference(group: PodGroup, wanted: PodGroupStatus) -> dict[str, Any]:
    """What to merge into the PodGroup's status; empty where it says the same already."""
    if group_words(group.status) == group_words(wanted):
        return {}
    return merge_patch(group_status(group.status), group_status(wanted))


def queue_difference(before: Resource | None, allocated: Resource) -> dict[str, Any]:
    """What to merge into a Queue's ``status.allocated``; empty where there is nothing to write."""
    return merge_patch(before.to_list() if before is not None else {}, allocated.to_list())


def group_event(status: PodGroupStatus) -> tuple[str, str, str] | None:
    """(type, reason, message): what users of the PodGroup are told beside its status.

    Source: Volcano, which says in every session that a gang is unschedulable; here it is told with the status.
    """
    if status.phase in ("Running", "Completed"):
        return "Normal", "Scheduled", "pod group is ready"
    said = next((c.message for c in status.conditions if c.type == "Unschedulable"), "")
    return ("Warning", "Unschedulable", said) if said else None


class Statuses:
    """Writes statuses, and never the same thing twice. ``keep_s``: when to stop waiting for an echo."""

    def __init__(
        self, client: Client, truth: Truth, tell: Teller, keep_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.groups = Sent(keep_s, clock)
        self.queues = Sent(keep_s, clock)
        self._refusals = {kind: Refusals(f"status of {kind.kind}", clock) for kind in (POD_GROUPS, QUEUES)}
        self._client, self._truth, self._tell = client, truth, tell
        self._subresource: dict[Kind, bool] = {}

    def begin_group(self, update: PodGroupUpdate) -> bool:
        """Whether this is to be written: it differs from what is known, and is not on its way already."""
        group = self._truth.groups.get(update.job)
        if group is None or self._refusals[POD_GROUPS].holds_back(update.job):
            return False
        wanted = bool(group_difference(group, update.status))
        return wanted and self.groups.begin(update.job, group_words(update.status))

    def group_gone(self, job: str) -> None:
        """A PodGroup is not there any more."""
        self.groups.gone(job)
        self._refusals[POD_GROUPS].gone(job)

    def queue_gone(self, name: str) -> None:
        """As for a PodGroup."""
        self.queues.gone(name)
        self._refusals[QUEUES].gone(name)

    async def write_group(self, update: PodGroupUpdate) -> None:
        """Write what differs by now, and tell an event."""
        group = self._truth.groups.get(update.job)
        change = group_difference(group, update.status) if group is not None else {}
        words = group_words(update.status)
        version = await self._merge(POD_GROUPS, update.job, group.uid, change) if group is not None and change else ""
        if group is None or not version:
            self.groups.failed(update.job, words)
            return
        self.groups.done(update.job, words, version, self._truth.groups.get(update.job, group).resource_version)
        if (event := group_event(update.status)) is not None:
            self._tell.tell(about_group(group), *event)

    def begin_queue(self, name: str, allocated: Resource) -> bool:
        """As for a PodGroup."""
        queue = self._truth.queues.get(name)
        if queue is None or self._refusals[QUEUES].holds_back(name):
            return False
        return bool(queue_difference(queue.allocated, allocated)) and self.queues.begin(name, allocated)

    async def write_queue(self, name: str, allocated: Resource) -> None:
        """Write what differs by now."""
        queue = self._truth.queues.get(name)
        change = queue_difference(queue.allocated, allocated) if queue is not None else {}
        version = ""
        if queue is not None and change:
            version = await self._merge(QUEUES, name, queue.uid, {"allocated": change})
        if queue is None or not version:
            self.queues.failed(name, allocated)
            return
        self.queues.done(name, allocated, version, self._truth.queues.get(name, queue).resource_version)

    async def _merge(self, kind: Kind, key: str, uid: str, status: dict[str, Any]) -> str:
        """The version that it made; empty where nothing was written."""
        body = {"metadata": {"uid": uid}, "status": status}
        try:
            if kind not in self._subresource:
                self._subresource[kind] = await self._client.served(kind, "status")
            path = kind.path(key, "status" if self._subresource[kind] else "")
            version = version_of(await self._client.patch(path, body, retries=ONCE))
        except ApiError as error:
            if error.status == 404:
                self._subresource.pop(kind, None)  # the object is gone, or another definition was installed
            elif error.status != 409:
                self._refusals[kind].refused(key, error)
            return ""
        except KubeError as error:
            self._refusals[kind].refused(key, error)
            return ""
        self._refusals[kind].written(key)
        return version
