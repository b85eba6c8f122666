"""A scheduling cycle. The session connects its parts and does nothing itself: the core below computes on ``world``, and
plugins and actions are given the session."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from pumice.columns.column import Column
from pumice.columns.dtypes import F64, AnyArray
from pumice.columns.snapshot import Snapshot
from pumice.framework.cycle.contents import Contents
from pumice.framework.cycle.observer import Observer, unobserved
from pumice.framework.cycle.ordering import Ordering
from pumice.framework.cycle.ports import NO_PROGRAMS, Outside
from pumice.framework.cycle.statement import FaultScope, Planner, Statement
from pumice.framework.cycle.trace import CycleTrace
from pumice.framework.cycle.world import World
from pumice.framework.memo import Memo
from pumice.framework.plugin.errors import PluginError
from pumice.framework.plugin.hooks import Hooks
from pumice.framework.plugin.policy_file import Policy

V = TypeVar("V")

#: Key in the memo: what a session publishes in which no job waits and which writes nothing.
QUIET = "nothing waits and nothing is to be written"


class Session(Contents):
    """A session on a snapshot, under a policy, at the time ``now`` (seconds since the epoch). ``tables`` are the state,
    written through ``journal`` and, for tasks, ``ledger``. ``total`` (R,): sum of all nodes. ``publishes``: figures are
    wanted even if no job waits. ``quiet``: what an equal session published in which no job waited and which wrote
    nothing, None if unknown. ``ask`` puts a question to the plugins, ``has`` says whether any answers it. ``memo``
    keeps answers that hold, ``order`` orders rows, ``trace`` records what happens, and ``notes`` go into the next
    snapshot. Versions above ``opened_at`` are of later writes. ``outside``: port to external programs."""

    def __init__(
        self,
        snapshot: Snapshot,
        policy: Policy,
        now: float,
        planner: Planner,
        memo: Memo,
        outside: Outside = NO_PROGRAMS,
        *,
        publishes: bool = False,
    ) -> None:
        self.snapshot, self.policy, self.now, self.planner, self.memo = snapshot, policy, now, planner, memo
        self.uid, self.opened_at, self.outside = snapshot.uid, 0, outside
        # A policy may need a cycle even if no job waits, for example to evict pods when a time is over.
        self.is_idle = policy.only_for_waiting and policy.dialect.nothing_waits(snapshot.tables)
        # An idle session writes nothing, so it reads the snapshot's own tables and saves the copy.
        self.world = World(snapshot, now, policy.accounting, to_write=not self.is_idle)
        # Before plugins are opened, because answers from the last cycle hold only under the same policy and shard.
        memo.begin(self.world, policy, snapshot.shard)
        self.publishes = publishes
        self.quiet: dict[str, AnyArray] | None = (
            memo.recall((QUIET, publishes), (snapshot.tables.version,)) if self.is_idle else None
        )
        self.tables, self.journal, self.ledger = self.world.tables, self.world.journal, self.world.ledger
        self.total: F64 = self.tables.nodes.facts.total
        self.trace, self.hooks = CycleTrace(self.tables), Hooks(policy)
        self.ask, self.has, self.add = self.hooks.ask, self.hooks.has, self.hooks.add
        self.order = Ordering(self.tables, self.hooks)
        self.notes: dict[str, float] = {}
        self._shared: dict[Hashable, Any] = {}

    def open(self, observe: Observer = unobserved) -> None:
        """Open the plugins, and call ``observe`` for each. If no job waits, only those that are notified of the end,
        wake up, or publish what is wanted; none if nothing has changed since an equal session. Raises: PluginFault."""
        if self.quiet is not None:
            self.hooks.open(self, ())  # a plugin that is asked nevertheless is opened at that time
            return
        if not self.is_idle:
            self.policy.dialect.opens(self)
            positions = self.policy.all_positions
        else:
            positions = self.policy.heard_when_idle
            positions = sorted({*positions, *self.policy.publishing}) if self.publishes else positions
        self.hooks.open(self, positions, observe)
        self.memo.begun(self.world)
        # Taken after plugins have written their columns, which is no change of the cluster that a status would have to
        # show.
        self.opened_at = self.tables.versions.next()

    def close(self) -> None:
        """Clear all references. The parts refer to each other; so they are freed at once, without the collector."""
        self.memo.end(self.world)
        self.__dict__.clear()

    # -- for plugins --------------------------------------------------------------------------------------------------

    def column(
        self, name: str, axis: str = "", *shape: int, values: AnyArray | None = None, per_task: AnyArray | None = None
    ) -> Column[AnyArray]:
        """Return a plugin's own column, as ``World.column``. Raises: PluginError unless the plugin is being opened."""
        # A column that appears later would be missing from what memoized answers rest on.
        if not self.hooks.is_opening:
            raise PluginError(f"column {name} asked for when the plugin was open already")
        name, column = self.world.column(name, axis, *shape, values=values, per_task=per_task)
        self.memo.begin_column(self.world, name)
        return column

    def shared(self, key: Hashable, build: Callable[[], V]) -> V:
        """Return what several plugins need in this session. The first caller builds it."""
        if key not in self._shared:
            self._shared[key] = build()
        return self._shared[key]  # type: ignore[no-any-return]

    # -- for actions --------------------------------------------------------------------------------------------------

    def statement(self) -> Statement:
        """Return a set of operations that is committed or undone."""
        return Statement(self.world, self.hooks, self.planner, self.trace)

    def fault_scope(self, subject: str) -> FaultScope:
        """Return a block. If a plugin raises in it, its writes are undone, ``subject`` is blamed, and the cycle goes
        on."""
        return FaultScope(self.journal, self.trace, subject)
