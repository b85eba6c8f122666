"""What a cycle computes with: tables of its own, columns that plugins put beside them, and a digest of all of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.placement import Placement
from pumice.columns.runs import TaskRun
from pumice.framework.cycle.world import AXES, STAMPED, World
from pumice.framework.plugin.errors import PluginError
from pumice.model.status import TaskStatus
from pumice.testing.build import cluster, node, pod, podgroup, pods
from pumice.volcano.accounting import ACCOUNTING


def world(*more: Any, **how: Any) -> World:
    state = cluster(node("n0"), node("n1"), podgroup("g"), pods("g", 2), *more)
    return World(state.snapshot(), 5.0, ACCOUNTING, **how)


# -- plugins' columns


@pytest.mark.parametrize("axis", AXES)
def test_a_column_has_a_row_for_each_of_its_axis(axis: str) -> None:
    found = world()
    name, column = found.column("a.b", axis)
    assert (name, column.array.shape, column.array.dtype) == ("a.b", (found.table(axis).capacity,), np.float64)
    assert not column.array.any()
    assert (column.stamps is not None) is (axis in STAMPED)
    assert column.stamps is None or column.stamps is found.table(axis).stamps


@pytest.mark.parametrize(
    ("axis", "shape", "wanted"),
    [
        pytest.param("node", (), (2,), id="one a node"),
        pytest.param("node", (3,), (2, 3), id="several a node"),
        pytest.param("", (4, 2), (4, 2), id="rows of its own"),
    ],
)
def test_shapes(axis: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    assert world().column("a.b", axis, *shape)[1].array.shape == wanted


def test_values_to_begin_with_become_the_column_s() -> None:
    values = np.array([1.5, 2.5])
    _, column = world().column("a.b", "node", values=values)
    assert np.shares_memory(column.array, values)
    with pytest.raises(ValueError, match="read-only"):
        column.array[0] = 1


def test_a_plugin_that_is_listed_twice_has_two_columns() -> None:
    found = world()
    assert [found.column(name)[0] for name in ("a.b", "a.b", "a.c", "a.b")] == ["a.b", "a.b#2", "a.c", "a.b#3"]
    assert len(found.columns_of("a")) == 4
    assert found.columns_of("b") == []


def test_a_column_is_named_after_its_plugin() -> None:
    with pytest.raises(PluginError, match=r'column "share": wanted the name of the plugin, a dot and a name'):
        world().column("share")


def test_an_unknown_axis_is_reported_with_the_known_ones() -> None:
    wanted = 'found axis "nodes", wanted one of node, task, job, sub, queue, class, or none'
    with pytest.raises(PluginError, match=wanted):
        world().column("a.share", "nodes")


def test_which_columns_are_on_an_axis() -> None:
    found = world()
    on_nodes = found.column("a.nodes", "node")[1]
    found.column("a.jobs", "job")
    found.column("a.own")
    assert found.columns_on("node") == [on_nodes]


def test_what_a_plugin_writes_is_rolled_back() -> None:
    found = world()
    _, column = found.column("a.b", "node")
    before, version, stamps = found.digest(), column.version, found.tables.nodes.stamps.tolist()
    mark = found.journal.mark()
    found.journal.add(column, 1, 2.5)
    assert (found.digest() != before, column.array.tolist()) == (True, [0, 2.5])
    found.journal.rollback(mark)
    assert (found.digest(), column.version, found.tables.nodes.stamps.tolist()) == (before, version, stamps)


# -- the tables


def test_two_worlds_on_one_snapshot_do_not_see_each_other() -> None:
    snapshot = cluster(node("n0"), podgroup("g"), pods("g", 1)).snapshot()
    one, other = World(snapshot, 0.0, ACCOUNTING), World(snapshot, 0.0, ACCOUNTING)
    before = other.digest()
    assert one.digest() == before
    one.ledger.move(TaskRun(one.tables, Placement([0], [0])), TaskStatus.ALLOCATED)
    assert one.digest() != before
    assert other.digest() == before


def test_a_world_that_is_not_to_be_written_on_copies_nothing() -> None:
    found = world(to_write=False)
    with pytest.raises(ValueError, match="read-only"):
        found.ledger.move(TaskRun(found.tables, Placement([0], [0])), TaskStatus.ALLOCATED)


@pytest.mark.parametrize(
    ("more", "differ"),
    [
        pytest.param([], False, id="nobody leaves"),
        pytest.param([pod("old", on="n0")], False, id="one runs"),
        pytest.param([pod("old", on="n0", deletion=1.0)], True, id="one leaves"),
        pytest.param([pod("old", on="gone", deletion=1.0)], False, id="one leaves from where nobody knows"),
    ],
)
def test_whether_what_will_be_idle_may_be_other_than_what_is(more: list[Any], differ: bool) -> None:
    assert world(*more).futures_differ is differ


def test_the_clock_is_a_column_of_one_row() -> None:
    assert world().now.array.tolist() == [5.0]


# -- the digest


def test_the_digest_is_of_every_byte_that_may_move() -> None:
    found = world()
    found.column("a.b", "node")
    names = [name for name, _ in found.moving()]
    assert len(names) == len(set(names)) and "a.b" in names
    for axis, attribute in AXES.items():
        for name in found.table(axis).MOVING:
            assert f"{attribute}.{name}" in names
    seen = {found.digest()}
    for name, array in found.moving():
        column = next(each for each in _columns(found) if each.array is array)
        first = (0,) * array.ndim
        column.part()
        column.data[first] = not array[first] if array.dtype == bool else array[first] + 1
        assert found.digest() not in seen, name
        seen.add(found.digest())


def _columns(found: World) -> list[Any]:
    tables = [found.table(axis) for axis in AXES]
    return [c for table in tables for c in table.columns.values()] + list(found.columns.values())
