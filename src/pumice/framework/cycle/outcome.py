"""What a cycle returns: what should be written, what was recorded, and the state that it left. A value, which does not
change and holds no session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from msgspec import Struct

from pumice.columns.dtypes import AnyArray
from pumice.columns.tables import Tables
from pumice.framework.cycle.trace import CycleTrace, Entry, Fault
from pumice.framework.plugin.policy_file import Policy
from pumice.model.decisions import GateRemoval, PodGroupUpdate, PodNotice, Writes
from pumice.model.resources import Resource
from pumice.model.status import TaskStatus


class Outcome(Struct, frozen=True):
    """``tables``: the cluster as the session left it. ``now``: seconds since the epoch. ``figures``: numbers that
    plugins publish, by name. ``wakes_at``: when a plugin may decide differently although nothing happens, or None for
    never."""

    uid: str
    now: float
    policy: Policy
    tables: Tables
    trace: CycleTrace
    writes: Writes
    figures: Mapping[str, AnyArray]
    wakes_at: float | None

    @property
    def groups(self) -> tuple[PodGroupUpdate, ...]:
        """Return the statuses of PodGroups that should be written."""
        return self.writes.groups

    @property
    def queues(self) -> Mapping[str, Resource]:
        """Return the allocated amounts of queues that should be written."""
        return self.writes.queues

    @property
    def gates(self) -> tuple[GateRemoval, ...]:
        """Queue gates that should be removed from pods."""
        return self.writes.gates

    @property
    def entries(self) -> list[Entry]:
        """What was tried, in order."""
        return list(self.trace.entries)

    @property
    def faults(self) -> list[Fault]:
        """What plugins did wrong."""
        return self.trace.faults

    @property
    def live_jobs(self) -> AnyArray:
        """Rows of the jobs that belonged to the session: with a pod group and a queue that exists."""
        return self.tables.jobs.live

    @property
    def pipelined(self) -> dict[str, str]:
        """Pods that are promised a node which others are leaving: pod -> node."""
        tables = self.tables
        rows = (tables.tasks.status == TaskStatus.PIPELINED).nonzero()[0].tolist()
        return {tables.tasks.pods[r].key: tables.nodes.facts.names[tables.tasks.node[r]] for r in rows}

    def notices(self) -> Iterator[PodNotice]:
        """Yield why each waiting pod of the session that is not gated waits. Computed when called."""
        # Not stored: texts of thousands of pods are built, and simulations read none of them.
        return self.policy.dialect.notices(self)

    def nominations(self) -> Iterator[PodNotice]:
        """Yield those of the notices that nominate a pod to a node which others are leaving. Computed when called."""
        return self.policy.dialect.nominations(self)

    @property
    def total(self) -> AnyArray:
        """What all nodes have together. Shape (R,)."""
        found: AnyArray = np.asarray(self.tables.nodes.facts.total)
        return found
