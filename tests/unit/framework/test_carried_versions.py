"""Versions and stamps that go from one cycle to the next."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.snapshot import Snapshot
from pumice.framework.cycle.world import World
from pumice.framework.memo import Memo
from pumice.model.events import Seen
from pumice.testing.build import cluster, node, pod, podgroup, pods, policy, queue

ACCOUNTING = policy().dialect.accounting


def snapshot() -> Snapshot:
    return cluster(node("n"), podgroup("g"), pods("g", 1)).snapshot()


def begun(memo: Memo, on: Snapshot) -> World:
    world = World(on, 0.0, ACCOUNTING)
    memo.begin(world)
    return world


def test_a_table_that_the_store_left_alone_has_the_versions_of_before() -> None:
    """What a session writes is its own: the next one begins where it began, and knows that."""
    memo, on = Memo(), snapshot()
    first = begun(memo, on)
    before = first.tables.nodes["books"].version
    first.journal.put(first.tables.nodes["books"], 0, 1.0)
    memo.end(first)
    assert begun(memo, on).tables.nodes["books"].version == before != first.tables.nodes["books"].version


@pytest.mark.parametrize("axis", ["job", "queue"])
def test_a_row_does_not_have_the_stamp_of_before_when_a_plugin_says_otherwise_of_it(axis: str) -> None:
    """A plugin's numbers may change where nothing of the row does: a stamp of before the change never comes again."""
    memo, on = Memo(), snapshot()
    stamps: list[int] = []
    for value in (1.0, 2.0, 2.0):
        world = begun(memo, on)
        table: Any = world.table(axis)
        world.column("p.c", axis, values=np.full(table.capacity, value))
        memo.begin_column(world, "p.c")
        memo.begun(world)
        stamps.append(int(table.stamps[0]))
        memo.end(world)
    assert stamps[0] != stamps[1] == stamps[2]


def test_what_a_cycle_put_aside_and_the_next_does_not_find_is_not_taken_for_there() -> None:
    """What is promised in a cycle and not bound is gone in the next, in which versions are as they were before."""
    memo, on = Memo(), snapshot()
    first = begun(memo, on)
    fresh = int(first.tables.jobs.stamps[0])
    first.journal.put(first.tables.jobs["waits"], 0, 7)
    memo.end(first)
    second = begun(memo, on)
    assert int(second.tables.jobs.stamps[0]) == fresh != int(first.tables.jobs.stamps[0])


@pytest.mark.parametrize("axis", ["node", "job", "queue"])
def test_equal_stamps_mean_equal_rows_in_every_column_through_many_cycles(axis: str) -> None:
    """Whatever plugins make of their columns, sessions write, the store takes over or writes, and cycles leave out; and
    however often the table grows."""
    dice, store, memo = np.random.default_rng(7), _store(), Memo()
    known: dict[tuple[int, int, str], bytes] = {}
    carried = 0
    made: Any = {"node": node, "job": podgroup, "queue": queue}[axis]
    for cycle in range(200):
        world = begun(memo, store.snapshot())
        table: Any = world.table(axis)
        for name in ("p.c", "p.d")[: dice.integers(1, 3)]:  # a plugin may leave one out
            world.column(name, axis, 2, values=dice.integers(0, 2, (table.capacity, 2)).astype(float))
            memo.begin_column(world, name)
        memo.begun(world)
        for _ in range(dice.integers(0, 4)):
            columns = [*world.columns.values(), *(table[name] for name in table.MOVING if table[name].array.ndim > 1)]
            column = columns[dice.integers(0, len(columns))]
            row = int(dice.integers(0, table.alive.sum()))
            world.journal.put(column, row, float(dice.integers(0, 2)))
            carried += _note(known, world, axis)
        carried += _note(known, world, axis)
        memo.end(world)
        if dice.random() < 0.3:
            store.apply(Seen(podgroup(f"g{dice.integers(0, 2)}", int(dice.integers(1, 3)))))
        if dice.random() < 0.3:
            store.apply(Seen(pod("p-0", "g0", on=("", "n0", "n1")[dice.integers(0, 3)])))
        if dice.random() < 0.3 and axis == "node":
            store._tables.nodes.adopt(world.tables.nodes)
        if cycle in (160, 180):
            store.apply_all(Seen(made(f"more-{cycle}-{i}")) for i in range(65))  # more than a table has rows left
    assert carried, "some rows were known again"


def _store() -> Any:
    return cluster(node("n0"), node("n1"), queue("q"), podgroup("g0"), podgroup("g1"), pods("g0", 1), pods("g1", 1))


def _note(known: dict[tuple[int, int, str], bytes], world: World, axis: str) -> int:
    """Hold what rows are against what they were under the same stamp; how often one was known."""
    table: Any = world.table(axis)
    again = 0
    for row in table.alive.nonzero()[0].tolist():
        for name, column in {**table.columns, **world.columns}.items():
            if column.array.dtype != object:
                key, is_now = (row, int(table.stamps[row]), name), column.array[row].tobytes()
                again += key in known
                assert known.setdefault(key, is_now) == is_now, key
    return again
