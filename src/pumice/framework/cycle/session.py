"""One scheduling cycle: what is known, what plugins say about it, and what has been noted so far. The session ties
these together and does nothing itself. The core below computes on ``world``; plugins and actions are given the session.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from pumice.columns.column import Column
from pumice.columns.dtypes import F64, AnyArray
from pumice.columns.snapshot import Snapshot
from pumice.framework.cycle.contents import Contents
from pumice.framework.cycle.observer import Observer, nobody
from pumice.framework.cycle.ordering import Ordering
from pumice.framework.cycle.ports import NOBODY, Outside
from pumice.framework.cycle.statement import Planner, Statement, Turn
from pumice.framework.cycle.trace import CycleTrace
from pumice.framework.cycle.world import World
from pumice.framework.memo import Memo
from pumice.framework.plugin.errors import PluginError
from pumice.framework.plugin.hooks import Hooks
from pumice.framework.plugin.policy_file import Policy

V = TypeVar("V")

#: The memo's question what a session publishes in which no job waits, and which wrote nothing. It rests on the tables.
QUIET = "nothing waits and nothing is to be written"


class Session(Contents):
    """Opened on a snapshot under a policy at a moment. ``now`` is seconds since the epoch.

    ``tables`` are the state, written through ``journal`` and, for tasks, ``ledger``; ``total`` (R,) is what all nodes
    have together. ``publishes``: figures are wanted even where no job waits. ``quiet``: what an equal session
    published in which no job waited and which wrote nothing; None where this has to be found out. ``ask``
    puts a question to the plugins, ``has`` whether any answers it. ``memo`` keeps answers that hold, ``order`` says who
    goes first, ``trace`` is what is told of all that, ``notes`` go into the next snapshot.
    ``opened_at``: versions above it are of later writes. ``outside``: whom plugins may ask.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        policy: Policy,
        now: float,
        planner: Planner,
        memo: Memo,
        outside: Outside = NOBODY,
        *,
        publishes: bool = False,
    ) -> None:
        self.snapshot, self.policy, self.now, self.planner, self.memo = snapshot, policy, now, planner, memo
        self.uid, self.opened_at, self.outside = snapshot.uid, 0, outside
        self.is_idle = policy.only_for_waiting and policy.dialect.nothing_waits(snapshot.tables)
        self.world = World(snapshot, now, policy.accounting, to_write=not self.is_idle)
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

    def open(self, observe: Observer = nobody) -> None:
        """Open the plugins and tell ``observe`` of each; where nothing waits, those that hear of the end, say when they
        wake, or publish what is wanted, and none where nothing has changed either. Raises: PluginFault."""
        if self.quiet is not None:
            self.hooks.open(self, ())  # a plugin that is asked all the same is opened then
            return
        if not self.is_idle:
            self.policy.dialect.opens(self)
            positions = self.policy.everyone
        else:
            positions = self.policy.heard_when_idle
            positions = sorted({*positions, *self.policy.publishing}) if self.publishes else positions
        self.hooks.open(self, positions, observe)
        self.memo.begun(self.world)
        self.opened_at = self.tables.versions.next()

    def close(self) -> None:
        """Forget everything: parts that know each other are free at once, and no collector has to find that out."""
        self.memo.end(self.world)
        self.__dict__.clear()

    # -- for plugins --------------------------------------------------------------------------------------------------

    def column(
        self, name: str, axis: str = "", *shape: int, values: AnyArray | None = None, per_task: AnyArray | None = None
    ) -> Column[Any]:
        """Numbers of a plugin's own, as ``World.column`` says; asked for while it opens, so that all who read know of
        them. Raises: PluginError."""
        if not self.hooks.is_opening:
            raise PluginError(f"column {name} asked for when the plugin was open already")
        name, column = self.world.column(name, axis, *shape, values=values, per_task=per_task)
        self.memo.begin_column(self.world, name)
        return column

    def shared(self, key: Hashable, build: Callable[[], V]) -> V:
        """What several plugins need in this session, built by the first that asks."""
        if key not in self._shared:
            self._shared[key] = build()
        return self._shared[key]  # type: ignore[no-any-return]

    # -- for actions --------------------------------------------------------------------------------------------------

    def statement(self) -> Statement:
        """A set of operations that is committed or leaves no trace."""
        return Statement(self.world, self.hooks, self.planner, self.trace)

    def turn(self, subject: str) -> Turn:
        """Somebody's turn: what a plugin does wrong in it costs this one the turn, and nobody else anything."""
        return Turn(self.journal, self.trace, subject)
