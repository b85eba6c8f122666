"""The memo: the only cache between cycles. What it returns equals what computing again would return.

1. An answer is kept with its *ground*: the versions and stamps of everything that it rests on.
2. It holds while the ground is the same. Nothing else decides that (rules of versions: ``columns.column``).
3. Answers are values: they are replaced, and never modified.
4. Versions of two stores are never compared. Under another store, policy or shard, all answers are forgotten.
5. The memo saves work and changes nothing: a cycle with an empty memo, or with one that keeps nothing, makes the same
   decisions and reports the same reasons.
6. What a plugin remembers during a session is a column, which the journal rolls back, or an answer in the memo. Its own
   attributes are set while it opens.

These modules keep answers (``tests/tidy/test_memo.py`` compares the list with the code):

* ``framework.cycle.session``, ``framework.cycle.closing``: what a session publishes if nothing waits.
* ``framework.plugin.hooks``: the resolved tiers and switches of a policy.
* ``placing.feasibility``: nodes and scores of a class; only rows of changed nodes are computed again.
* ``placing.prefetch``: nodes that were chosen ahead for equal tasks.
* ``placing.derived``: what follows from node objects, alone or with a class. Filters and scorers use it.
* ``placing.claims.offers``: devices that can be claimed.
* ``volcano.failures.failures``: failed attempts, which hold for equal jobs, within a cycle and in later ones.
* ``volcano.failures.trials``: trials of equal tasks in a domain.
* ``volcano.eviction.candidates``, ``volcano.eviction.refuted_nodes``: what may leave a node; nodes where it is too
  little.
* ``volcano.queues.amounts``, ``volcano.queues.gates``: what jobs of each queue hold, request and were promised; jobs
  with gated pods.
* ``volcano.status.closing``, ``kai.status``: jobs and queues whose status needs no write.
* ``kai.engine.placement.shared_gpus``, ``kai.engine.tree_order``: nodes with shared GPUs for a request; the tree of
  queues.
* ``kai.engine.placement.without_place``: parts of jobs that no nodes take, whichever the job and its queue.
* ``ours.free_gpus``: free GPUs of nodes.
* plugins, each what it computes from columns: ``volcano.plugins.capacity``, ``volcano.plugins.cdp``,
  ``volcano.plugins.drf``, ``volcano.plugins.gang``, ``volcano.plugins.numa_aware``, ``volcano.plugins.overcommit``,
  ``volcano.plugins.pdb``, ``volcano.plugins.sla``, ``volcano.plugins.tdm``, ``kai.plugins.proportion``,
  ``kai.plugins.topology``, ``ours.plugins.gpuplacement``.

Three mechanisms need no memo, because they end with the call or the action that began them and are equal to the plain
way by a property test: tasks of one gang chosen together (``placing.k_best``, ``placing.speculative``,
``placing.fill_state``); the repeated solution of one task (``kai.engine.single_task``), which asks anew for all that it
rests on; and equal jobs of KAI that share a failure (``kai.engine.equivalence``). The last one and ``volcano.failures``
are two rules because they rest on different things. A failure in Volcano's language is kept across cycles, so it needs
its whole ground. In KAI's actions a failure holds until the action evicts something: until then, placements only take
room.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pumice.columns.column import AnyColumn, Column
from pumice.columns.dtypes import I64, AnyArray, Bool, read_only
from pumice.framework.cycle.world import STAMPED, World

V = TypeVar("V")

#: A ground: everything that must be equal. Versions of columns, stamps of rows as bytes, values.
Ground = tuple[Hashable, ...]

#: Answers kept in each of two generations, and bytes that they may hold in each. When one is reached, answers that were
#: not used since the last time are forgotten.
ANSWERS_MAX = 20_000
BYTES_MAX = 32 << 20


def ground(*columns: AnyColumn) -> Ground:
    """Return the ground of an answer that rests on all rows of some columns."""
    return tuple([column.version for column in columns])


def ground_of_rows(stamps: I64 | None, rows: AnyArray) -> bytes:
    """Return the ground of an answer that rests on some rows of a table."""
    assert stamps is not None, "the table keeps no stamps"
    return stamps[rows].tobytes()


class Memo:
    """Belongs to the shell, which passes it to each cycle. ``keeps`` False: nothing is kept."""

    __slots__ = ("_bytes", "_left", "_older", "_stamps", "_under", "_young", "keeps")

    def __init__(self, *, keeps: bool = True) -> None:
        self.keeps = keeps
        # Store, policy and shard under which the answers hold, compared by identity.
        self._under: tuple[object, ...] = ()
        self._left: _Left | None = None
        self._stamps: dict[str, tuple[I64, I64]] = {}  # by axis, as the cycle found them, and when plugins were open
        self._clear()

    def _clear(self) -> None:
        self._young: dict[Hashable, tuple[Ground, object, int]] = {}
        self._older: dict[Hashable, tuple[Ground, object, int]] = {}
        self._bytes = 0

    # -- questions ----------------------------------------------------------------------------------------------------

    def get(self, question: Hashable, rests_on: Ground, build: Callable[[], V], size: int = 0) -> V:
        """Return the answer to a question. It is built unless its ground is that of the last time.

        ``question`` names everything that the answer depends on and ``rests_on`` does not. ``size``: bytes that the
        answer holds, if these are many.
        """
        found = self.recall(question, rests_on)
        if found is None:
            found = self.keep(question, rests_on, build(), size)
        return found

    def recall(self, question: Hashable, rests_on: Ground) -> Any | None:
        """Return the answer, or None if there is none that holds."""
        # Two dictionaries and no order of use: most answers that hold were used in the last cycle too, and are found at
        # once.
        known = self._young.get(question)
        if known is None:
            known = self._older.get(question)
            if known is None:
                return None
            if known[0] == rests_on:
                # It was used, so it moves to the young generation and survives the next change of generations.
                self._add(question, known)
        return known[1] if known[0] == rests_on else None

    def keep(self, question: Hashable, rests_on: Ground, answer: V, size: int = 0) -> V:
        """Keep an answer with its ground, instead of an older one."""
        if self.keeps:
            self._add(question, (rests_on, answer, size))
        return answer

    def _add(self, question: Hashable, entry: tuple[Ground, object, int]) -> None:
        before = self._young.get(question)
        self._young[question] = entry
        self._bytes += entry[2] - (0 if before is None else before[2])
        # Generations instead of an order of use: a look-up then costs one access to a dictionary and no bookkeeping.
        if len(self._young) >= ANSWERS_MAX or self._bytes >= BYTES_MAX:
            self._older, self._young, self._bytes = self._young, {}, 0

    def by_row(
        self, question: Hashable, rests_on: Ground, stamps: I64, build: Callable[[AnyArray], AnyArray]
    ) -> AnyArray:
        """Return an answer per row of a table (rows,). ``build`` is called with the rows whose stamps have changed. The
        array is read-only."""
        # An array of another length cannot be updated row by row.
        rests_on = (*rests_on, len(stamps))
        known: tuple[I64, AnyArray] | None = self.recall(question, rests_on)
        if known is None:
            found = build(np.arange(len(stamps)))
        else:
            before, found = known
            rows = (before != stamps).nonzero()[0]
            if not len(rows):
                return found
            now = build(rows)
            # Equal answers keep the same array, so that its bytes need not be compared by whatever rests on it.
            if now.tobytes() != found[rows].tobytes():
                found = found.copy()
                found[rows] = now
        found.setflags(write=False)
        self.keep(question, rests_on, (stamps.copy(), found), stamps.nbytes + found.nbytes)
        return found

    def rows_kept(self, question: Hashable, *stamps: I64) -> Bool:
        """Return True for rows that ``keep_rows`` was given under the stamps that they have now. Shape (rows,)."""
        count = len(stamps[0])
        known: tuple[I64, ...] | None = self.recall(question, (count,))
        if known is None:
            return np.zeros(count, dtype=bool)
        found: Bool = known[0] == stamps[0]
        for before, now in zip(known[1:], stamps[1:], strict=True):
            found &= before == now
        return found

    def keep_rows(self, question: Hashable, rows: Bool, *stamps: I64) -> None:
        """Remember that something is true for ``rows`` (rows,) under their present stamps, and for no other row."""
        # No stamp is negative, so a row that is left out never matches.
        kept = np.where(rows, stamps[0], -1), *[each.copy() for each in stamps[1:]]
        self.keep(question, (len(rows),), kept, sum(each.nbytes for each in kept))

    # -- from one cycle to the next -----------------------------------------------------------------------------------

    def begin(self, world: World, *under: object) -> None:
        """A cycle begins. Answers under another policy, or versions of another store, are forgotten. ``under`` is
        compared by identity."""
        now_under = (world.tables.versions, *under)
        # By identity: equal policies may have different plugins behind them, and comparing stores would cost more than
        # a cycle.
        same = len(now_under) == len(self._under) and all(a is b for a, b in zip(now_under, self._under, strict=True))
        if not same:
            self._clear()
            self._under, self._left = now_under, None
        left = self._left
        # A session that does not write has the snapshot's own stamps, which belong to the store.
        if left is None or not world.to_write:
            return
        # Equal time, equal version, so that answers that rest on the clock hold.
        if left.now.array[0] == world.now.array[0]:
            world.now.version = left.now.version
        for axis, rows in left.stamps.items():
            table = world.table(axis)
            assert table.stamps is not None
            there = table.stamps[: len(rows.found)]  # a table may have got more rows
            # With fewer rows than before, numbers of rows mean other things, and all stamps stay new.
            if len(there) == len(rows.found):
                # Of a table that sessions do not write on, only what plugins say of a row may have moved.
                np.copyto(there, rows.begun if table.MOVING else rows.ended, where=there == rows.found)

    def begin_column(self, world: World, name: str) -> None:
        """A plugin has made a column again. If it equals the column at the end, or at the beginning, of the last cycle,
        it gets the version of that time, and no row keeps a stamp under which the plugin's column had another value."""
        column, left = world.columns[name], self._left
        column.shared = Column.move  # the next cycle compares with what it begins with
        if left is not None:
            begun = left.begun_with.get(name)
            # The plugin made no such column in the last cycle, so no answer can rest on it.
            if begun is None:
                _is_new(column, world)
            elif begun[0] is column.array and left.columns[name].array is column.array:
                column.version = begun[1]  # the usual case: the plugin took it from the memo
            else:
                _begin(column, begun, left.columns[name], left.stamps.get(world.axis_of(name)), world)
        world.begun_with[name] = column.array, column.version

    def begun(self, world: World) -> None:
        """The plugins are open and have made their columns."""
        if self.keeps and world.to_write:
            axes = dict.fromkeys(map(world.axis_of, world.begun_with))
            self._stamps = {axis: (world.stamps_found(axis), world.stamps(axis)) for axis in axes if axis in STAMPED}

    def end(self, world: World) -> None:
        """The cycle is over. Remember in which state it left the plugins' columns."""
        # A cycle that does not write left everything as the one before, whose state stays remembered.
        if not self.keeps or not world.to_write:
            return
        stamps = {axis: _Rows(*known, world.stamps(axis)) for axis, known in self._stamps.items()}
        self._left, self._stamps = _Left(world.now, stamps, world.begun_with, world.columns), {}


class _Rows(NamedTuple):
    """Stamps of a table when the cycle began, when its plugins were open, and when it ended."""

    found: I64
    begun: I64
    ended: I64


class _Left(NamedTuple):
    """What a cycle left of plugins' columns: its time, stamps of rows by axis, and the columns by name as they began
    (array and version) and as they ended."""

    now: AnyColumn
    stamps: dict[str, _Rows]
    begun_with: dict[str, tuple[AnyArray, int]]
    columns: dict[str, AnyColumn]


def _is_new(column: AnyColumn, world: World) -> None:
    """A new column: no row may keep a stamp from before it existed."""
    if column.stamps is not None:
        column.stamps[:] = world.tables.versions.next()


def _begin(column: AnyColumn, begun: tuple[AnyArray, int], ended: AnyColumn, rows: _Rows | None, world: World) -> None:
    """Compare a column with that of the last cycle, as it began and as it ended, and set version and stamps."""
    before, array, changed = begun[0], column.array, _NONE
    as_ended, written = _equal(ended.array, array), before is not ended.array
    if as_ended:
        column.version = ended.version
    # The next cycle often begins as the last one did, because what it decided was undone or came to nothing.
    elif written and _equal(before, array):
        column.version = begun[1]
    if column.stamps is None:
        return
    # Rows cannot be compared one by one, so all of them count as changed.
    if rows is None or not _goes_on(before, array):
        _is_new(column, world)
        return
    if not as_ended:
        changed = _differing(ended.array, array)
        _raise(column.stamps, changed, rows.ended, world)
    if written:
        changed = _differing(before, array)
    _raise(column.stamps, changed, rows.begun, world)


def _raise(stamps: I64, rows: AnyArray, known: I64, world: World) -> None:
    """Give new stamps to those rows that have a stamp under which the plugin's column had another value."""
    if len(rows):
        # Rows that were written since have newer stamps anyway.
        rows = rows[stamps[rows] == known[rows]]
        if len(rows):
            stamps[rows] = world.tables.versions.next()


def _equal(left: AnyArray, right: AnyArray) -> bool:
    """Return True if two arrays have the same shape and the same bytes."""
    # By bytes, so that NaN equals NaN, and 0.0 does not equal -0.0.
    return left is right or (left.shape == right.shape and left.tobytes() == right.tobytes())


def _goes_on(left: AnyArray, right: AnyArray) -> bool:
    """Return True if the second array has at least as many rows as the first, of the same shape."""
    return left.shape[1:] == right.shape[1:] and len(left) <= len(right)


def _differing(left: AnyArray, right: AnyArray) -> AnyArray:
    """Return the rows in which another array, of at least as many rows, differs. Rows may appear several times."""
    differ = left != (right if len(left) == len(right) else right[: len(left)])
    places: AnyArray = differ.reshape(-1).nonzero()[0]
    if left.ndim == 1 or not len(places):
        return places
    return places // (left.size // len(left))


_NONE: AnyArray = read_only(np.zeros(0, dtype=np.int64))
