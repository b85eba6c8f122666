"""Tables: which row is handed out, what a fresh one holds, what is written, and what a frozen or forked one shares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.column import Versions, Writer
from pumice.columns.dtypes import F64, I32, Bool
from pumice.columns.journal import Journal
from pumice.columns.table import Table, number, objects
from pumice.model.events import Seen
from pumice.model.workloads.podgroup import PodGroupStatus
from pumice.testing.build import cluster, podgroup

FIRST = 64  # rows of a table that has any


class Boats(Table):
    """A table with a column of each kind."""

    names: list[str] = objects()
    berth: I32 = number(np.int32, -1, moves=True)
    afloat: Bool = number(np.bool_, True)
    cargo: F64 = number(np.float64, moves=True)


def boats(count: int = 0, *, stamped: bool = True) -> Boats:
    table = Boats(Versions(), {"cargo": (2,)}, stamped=stamped)
    for each in range(count):
        table.new_rows(1, berth=each, cargo=[each, 1], names=f"boat {each}")
    return table


def versions(table: Boats) -> dict[str, int]:
    return {name: column.version for name, column in table.columns.items()}


# -- rows


def test_a_table_knows_its_columns() -> None:
    assert list(Boats.FIELDS) == ["alive", "names", "berth", "afloat", "cargo"]
    assert Boats.MOVING == ("berth", "cargo")
    table = boats(1)
    for name in Boats.FIELDS:
        assert np.shares_memory(getattr(table, name), table[name].array), "the array and the column are one"


def test_an_empty_table() -> None:
    table = boats()
    assert (table.capacity, len(table.berth), table.cargo.shape, len(table.names)) == (0, 0, (0, 2), 0)


def test_a_fresh_row_is_at_its_unused_values() -> None:
    table = boats()
    (row,) = table.new_rows(1)
    assert (row, table.alive[row]) == (0, True)
    found = table.berth[row], table.afloat[row], table.cargo[row].tolist(), table.names[row]
    assert found == (-1, True, [0, 0], None)
    assert (table.berth.dtype, table.afloat.dtype, table.cargo.dtype) == (np.int32, np.bool_, np.float64)
    assert table.alive.sum() == 1


@pytest.mark.parametrize(
    ("count", "capacity"),
    [
        pytest.param(1, FIRST, id="the first row makes many"),
        pytest.param(FIRST, FIRST, id="full"),
        pytest.param(FIRST + 1, 2 * FIRST, id="as many again, while they are few"),
        pytest.param(5 * FIRST + 1, 5 * FIRST + 5 * FIRST // 4, id="then a quarter"),
    ],
)
def test_growth_keeps_what_is_there(count: int, capacity: int) -> None:
    table = boats(count)
    lengths = {len(column) for column in (table.alive, table.berth, table.afloat, table.cargo, table.names)}
    assert (table.capacity, lengths) == (capacity, {capacity})
    assert np.flatnonzero(table.alive).tolist() == list(range(count))
    assert table.berth[:count].tolist() == table.cargo[:count, 0].tolist() == list(range(count))
    assert list(table.names[:count]) == [f"boat {each}" for each in range(count)]
    assert set(table.berth[count:].tolist()) <= {-1}
    assert table.afloat.all()


def test_rows_made_at_once_are_as_many_as_are_wanted() -> None:
    table = boats(1)
    table.new_rows(4 * FIRST, names="one of many")
    assert (table.capacity, table.names[4 * FIRST]) == (4 * FIRST + 1, "one of many")


def test_a_freed_row_is_blank() -> None:
    table = boats(3)
    table.write(1, afloat=False)
    table.free_row(1)
    assert table.alive[:4].tolist() == [True, False, True, False]
    assert (table.berth[1], table.afloat[1], table.cargo[1].tolist(), table.names[1]) == (-1, True, [0, 0], None)
    assert table.berth[[0, 2]].tolist() == [0, 2]


@pytest.mark.parametrize(
    ("freed", "handed_out"),
    [
        pytest.param([], [3, 4], id="none was freed: the next ones"),
        pytest.param([1], [1, 3], id="a freed row comes first"),
    ],
)
def test_which_row_is_handed_out(freed: list[int], handed_out: list[int]) -> None:
    table = boats(3)
    for row in freed:
        table.free_row(row)
    assert [table.new_rows(1)[0] for _ in handed_out] == handed_out
    assert table.capacity == FIRST


@pytest.mark.parametrize("count", [1, 3, FIRST, 3 * FIRST])
def test_rows_that_come_together(count: int) -> None:
    table = boats(2)
    rows = table.new_rows(count, berth=list(range(count)) if count > 1 else 0, afloat=False, names="new")
    assert len(set(rows)) == count and not {0, 1} & set(rows)
    assert table.berth[rows].tolist() == list(range(count)), "a value a row"
    assert not table.afloat[rows].any() and set(table.names[rows]) == {"new"}, "one value for all"
    assert (table.cargo[rows] == 0).all(), "and the rest unused"
    assert table.alive.sum() == count + 2
    table.free_rows(rows)
    assert table.alive.sum() == 2
    assert (table.berth[rows] == -1).all() and table.afloat[rows].all()


# -- writing facts


@pytest.mark.parametrize(
    ("rows", "value", "berths"),
    [
        pytest.param(1, 9, [0, 9, 2], id="one row"),
        pytest.param([2, 0], 9, [9, 1, 9], id="rows, one value"),
        pytest.param(np.array([2, 0]), [8, 9], [9, 1, 8], id="rows, a value each"),
        pytest.param(slice(0, 2), 9, [9, 9, 2], id="a range"),
    ],
)
def test_what_is_written(rows: Any, value: Any, berths: list[int]) -> None:
    table = boats(3)
    before, stamps = versions(table), table.stamps.copy()
    table.write(rows, berth=value)
    assert table.berth[:3].tolist() == berths
    assert [name for name, version in versions(table).items() if version != before[name]] == ["berth"]
    assert [table.stamps[row] != stamps[row] for row in range(3)] == [b != i for i, b in enumerate(berths)]


def test_nobody_writes_past_the_writer() -> None:
    table = boats(2)
    for column in (table.berth, table.cargo, table.names, table.alive):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


@pytest.mark.parametrize("act", ["write", "new_rows", "free_row", "grow"])
def test_no_version_is_ever_given_twice(act: str) -> None:
    table = boats(FIRST if act == "grow" else 2)
    seen = set(versions(table).values()) | set(table.stamps.tolist())
    match act:
        case "write":
            table.write(0, berth=0)  # the same value is a write like any other
        case "new_rows" | "grow":
            table.new_rows(1)
        case "free_row":
            table.free_row(0)
    new = (set(versions(table).values()) | set(table.stamps.tolist())) - seen
    assert new and min(new) > max(seen)


def test_a_table_without_stamps_keeps_none() -> None:
    table = boats(2, stamped=False)
    table.write(0, berth=5)
    assert table.stamps is None
    assert all(column.stamps is None for column in table.columns.values())
    assert table.freeze().fork().stamps is None and table.freeze().stamps is None


# -- a frozen table: a value


def test_a_frozen_table_is_what_was() -> None:
    table = boats(2)
    frozen = table.freeze()
    table.write(0, berth=9, names="other")
    table.free_row(1)
    assert frozen.berth[:2].tolist() == [0, 1]
    assert list(frozen.names[:2]) == ["boat 0", "boat 1"]
    assert frozen.alive[:2].all()
    for name in Boats.FIELDS:
        with pytest.raises(ValueError, match="read-only"):
            frozen[name].data[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        frozen.stamps[0] = 0


def test_freezing_again_copies_what_was_written_since() -> None:
    table = boats(2)
    first = table.freeze()
    assert table.freeze() is first, "nothing was written: the same value"
    table.write(0, berth=9)
    second = table.freeze()
    shared = {name for name in Boats.FIELDS if second[name] is first[name]}
    assert shared == set(Boats.FIELDS) - {"berth"}
    assert (first.berth[0], second.berth[0]) == (0, 9)


def test_a_frozen_table_has_the_versions_of_the_table() -> None:
    table = boats(2)
    frozen = table.freeze()
    assert versions(frozen) == versions(table)
    assert frozen.stamps.tolist() == table.stamps.tolist()


def test_a_table_that_grows_leaves_the_others_as_they_are() -> None:
    table = boats(FIRST)
    frozen = table.freeze()
    twin = frozen.fork()
    table.new_rows(1)
    assert {t.capacity for t in (frozen, twin)} == {len(twin.berth)} == {FIRST}
    assert table.capacity == 2 * FIRST


@pytest.mark.parametrize("holds", ["the value", "a fork of it", "an older value", "no reader"])
@pytest.mark.parametrize("how", ["write", "grow", "writer"])
def test_memory_is_copied_only_where_somebody_reads_it(holds: str, how: str) -> None:
    """What is held stays as it was, column by column, stamps included; what no reader holds is written in place."""
    versions = Versions()
    table = Boats(versions, {"cargo": (2,)})
    table.new_rows(FIRST, berth=list(range(FIRST)), names="boat", cargo=3)
    held: Any = {
        "the value": table.freeze,
        "a fork of it": lambda: table.freeze().fork(),
        "an older value": lambda: (table.freeze(), table.write(1, afloat=False), table.freeze())[0],
        "no reader": lambda: table.freeze() and None,
    }[holds]()
    then = None if held is None else {name: getattr(held, name).tolist() for name in Boats.FIELDS}
    stamps = None if held is None else held.stamps.tolist()
    memory = table["berth"].data
    for first in (True, False):
        match how:
            case "write":
                table.write([0, 1], berth=9, names="other")
            case "grow":
                table.new_rows(1, berth=9)
            case "writer":
                Writer(versions).put(table["berth"], 0, 9)
        moves = first and (held is not None or how == "grow")
        assert (table["berth"].data is not memory) is moves, "copied once, or not at all"
        memory = table["berth"].data
        assert table["berth"].shared is None
        if held is not None:
            assert {name: getattr(held, name).tolist() for name in Boats.FIELDS} == then
            assert held.stamps.tolist() == stamps
    assert np.shares_memory(table.berth, memory) and table["berth"].stamps is table.stamps


def test_a_value_that_is_given_back_is_not_copied_for_any_more() -> None:
    table = boats(2)
    held = table.freeze()
    table.write(0, berth=5)
    again = table.freeze()
    del held, again
    memory = table["berth"].data
    table.write(0, berth=6)
    assert table["berth"].data is memory
    assert (table.freeze().berth[0], table.freeze().names[0]) == (6, "boat 0")


def test_what_is_let_go_between_two_writes_is_not_copied_for_at_the_second() -> None:
    table = boats(2)
    held = table.freeze()
    table.write(0, berth=5)
    assert held.berth[0] == 0
    memory = table["cargo"].data
    del held
    table.write(0, cargo=7.0)
    assert table["cargo"].data is memory
    value = table.freeze()
    assert (value.berth[0], value.cargo[0, 0]) == (5, 7)


@pytest.mark.parametrize("how", ["write", "writer"])
def test_what_was_written_in_place_is_in_the_next_value(how: str) -> None:
    table = boats(2)
    before = {name: table.freeze()[name] for name in Boats.FIELDS}
    match how:
        case "write":
            table.write(1, berth=7, cargo=7.0)
        case "writer":
            Writer(table._versions).add(table["berth"], 1, 6)
    after = table.freeze()
    assert after.berth[1] == 7 and versions(after) == versions(table)
    others = {name for name in Boats.FIELDS if after[name] is not before[name]}
    assert others == ({"berth", "cargo"} if how == "write" else {"berth"})


def test_what_was_done_elsewhere_alone_has_its_own_version_here() -> None:
    """A column that only a session wrote to, and left as it was: the store's values know its version of before."""
    table = boats(2)
    fork = table.freeze().fork()
    Journal(table._versions).put(fork["berth"], 1, 1)
    table.write(0, cargo=4.0)
    table.adopt(fork)
    assert versions(table.freeze()) == versions(table)


def test_what_was_done_elsewhere_is_known_to_be_the_same() -> None:
    """A session did to its fork what the store does to the table afterwards."""
    table = boats(3)
    source = table.freeze()
    fork = source.fork()
    journal = Journal(table._versions)
    journal.put(fork["berth"], 1, 7)
    journal.put(fork["cargo"], 2, 5.0)
    table.write(1, berth=7)
    table.write(2, cargo=4.0)
    table.adopt(fork)
    assert table["berth"].version == fork["berth"].version
    assert table["cargo"].version != fork["cargo"].version, "it is another"
    assert (table.stamps[:3] == fork.stamps[:3]).tolist() == [True, True, False]
    assert (source.stamps[:3] != table.stamps[:3]).tolist() == [False, True, True], "a value that is held is left alone"


# -- a forked table: a session's own


def test_a_fork_has_moving_columns_of_its_own_and_shares_the_rest() -> None:
    frozen = boats(2).freeze()
    twin = frozen.fork()
    assert type(twin) is Boats
    assert all(np.shares_memory(getattr(twin, name), getattr(frozen, name)) for name in Boats.FIELDS), "until then"
    for name, row in (("berth", 0), ("cargo", 1)):
        twin[name].part()
        twin[name].data[row] = 9
    twin.stamps[0] = -7
    assert (frozen.berth[0], frozen.cargo[1].tolist(), frozen.stamps[0] != -7) == (0, [1, 1], True)
    assert (twin.berth[0], twin.cargo[1].tolist()) == (9, [9, 9])
    assert {name for name in Boats.FIELDS if twin[name] is frozen[name]} == {"alive", "names", "afloat"}
    assert twin.capacity == frozen.capacity


def test_a_fork_cannot_be_frozen() -> None:
    """A write to a fork does not reach the value, which would stay what it was."""
    with pytest.raises(AssertionError, match="only the store's tables have values"):
        boats(1).freeze().fork().freeze()


def test_a_write_on_what_a_fork_shares_is_an_error() -> None:
    twin = boats(2).freeze().fork()
    with pytest.raises(ValueError, match="read-only"):
        twin["afloat"].data[0] = False


def test_a_status_that_is_new_raises_the_stamp_of_its_row() -> None:
    store = cluster(podgroup("g", creation=1.0))
    before = store.snapshot().tables.jobs
    store.apply(Seen(podgroup("g", creation=1.0, status=PodGroupStatus("Pending", running=1))))
    after = store.snapshot().tables.jobs
    row = after.live[0]
    assert after.groups[row].status.running == 1
    assert after.stamps[row] > before.stamps[row]
