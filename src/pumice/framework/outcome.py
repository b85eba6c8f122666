"""What a cycle hands back: decisions, what to write, and the story."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pumice.columns.dtypes import I64
from pumice.framework.story import Entry, GroupEvent
from pumice.model.decisions import PodGroupUpdate, PodNotice
from pumice.model.resources import Resource
from pumice.model.status import TaskStatus

if TYPE_CHECKING:
    from pumice.framework.session import Session


@dataclass(slots=True)
class Outcome:
    """``groups`` and ``queues`` hold only what differs from the snapshot. ``settled``: rows of jobs whose status needs
    no further look until they change, ``settled_as`` the failures that they took over in this session. These and
    ``job_hypernodes`` and ``sub_hypernodes`` (row -> hypernode row) are for the store to remember.
    """

    session: Session
    groups: list[PodGroupUpdate] = field(default_factory=list)
    queues: dict[str, Resource] = field(default_factory=dict)
    settled: I64 = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    settled_as: I64 = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    job_hypernodes: dict[int, int] = field(default_factory=dict)
    sub_hypernodes: dict[int, int] = field(default_factory=dict)

    @property
    def story(self) -> list[Entry]:
        """What was tried, in order, one entry a step and subject."""
        uids, found = self.session.tables.jobs.uids, []
        for told in self.session.story:
            if isinstance(told, Entry):
                found.append(told)
            else:
                found += [Entry(told.action, uids[row], told.what, told.detail) for row in told.jobs.tolist()]
        return found

    @property
    def events(self) -> list[GroupEvent]:
        """Messages for users of pod groups, rejections at admission first, those by job."""
        uids = self.session.tables.jobs.uids
        rejected = ((uids[row], text) for rows, text in self.session.turned_down for row in rows.tolist())
        turned_down = [GroupEvent(uid, "Normal", "Unschedulable", text) for uid, text in sorted(rejected)]
        return turned_down + self.session.events

    @property
    def pipelined(self) -> dict[str, str]:
        """Pods promised a node that others are leaving: pod -> node."""
        tables = self.session.tables
        rows = (tables.tasks.status == TaskStatus.PIPELINED).nonzero()[0].tolist()
        return {tables.tasks.pods[r].key: tables.nodes.facts.names[tables.tasks.node[r]] for r in rows}

    def notices(self) -> Iterator[PodNotice]:
        """For every waiting pod of the session that is not gated: why it waits. Made when asked for."""
        ssn = self.session
        tasks = ssn.tables.tasks
        waiting = np.isin(tasks.status, (TaskStatus.PENDING, TaskStatus.ALLOCATED, TaskStatus.PIPELINED))
        for job in ssn.live_jobs().tolist():
            rows = ssn.tables.jobs.tasks[job]
            rows = [r for r in rows[waiting[rows]].tolist() if not tasks.pods[r].gates]
            text = ssn.fit_notes.job_text(job) if rows else ""
            for row in rows:
                reason, message, nominated = ssn.fit_notes.task_reason(row)
                pod = tasks.pods[row]
                yield PodNotice(pod.key, pod.uid, reason, message or text or "all nodes are unavailable", nominated)
