"""Columns and versions: who may write, what a write raises, and the store's writer, which remembers nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.columns.column import Column, Versions, Writer


def column(*values: Any, stamped: bool = True, versions: Versions | None = None) -> Column[Any]:
    versions = versions or Versions()
    stamps = np.full(len(values), versions.next(), dtype=np.int64) if stamped else None
    return Column(np.array(values), versions.next(), stamps)


@pytest.mark.parametrize(
    "source", [pytest.param(Versions(), id="from one"), pytest.param(Versions(500), id="from elsewhere")]
)
def test_no_version_comes_twice(source: Versions) -> None:
    found = [source.next() for _ in range(100)]
    assert found == sorted(set(found))


@pytest.mark.parametrize(
    ("values", "act", "after"),
    [
        pytest.param([1, 2, 3], ("put", 1, 9), [1, 9, 3], id="put a number"),
        pytest.param([1, 2, 3], ("put", [2, 0], 9), [9, 2, 9], id="put at rows"),
        pytest.param([1, 2, 3], ("put", np.array([True, False, True]), 0), [0, 2, 0], id="put by mask"),
        pytest.param([[1.0, 2.0], [3.0, 4.0]], ("put", 1, [7, 8]), [[1, 2], [7, 8]], id="put a wide row"),
        pytest.param([1, 2, 3], ("add", 0, 4), [5, 2, 3], id="add a number"),
        pytest.param([1, 2, 3], ("add", np.array([0, 2]), [1, -1]), [2, 2, 2], id="add at rows"),
        pytest.param([[1.0], [2.0]], ("add", [0, 1], np.array([[1.0], [2.0]])), [[2], [4]], id="add wide rows"),
    ],
)
@pytest.mark.parametrize("stamped", [True, False], ids=["stamped", "without stamps"])
def test_the_writer(values: list[Any], act: tuple[str, Any, Any], after: list[Any], stamped: bool) -> None:
    versions = Versions()
    written = column(*values, stamped=stamped, versions=versions)
    version, stamps = written.version, None if written.stamps is None else written.stamps.copy()
    how, index, value = act
    getattr(Writer(versions), how)(written, index, value)
    assert written.array.tolist() == written.data.tolist() == after
    assert written.version > version
    if stamps is not None:
        rows = np.arange(len(values))[index].reshape(-1).tolist()
        raised = np.flatnonzero(written.stamps != stamps).tolist()
        assert raised == sorted(rows), "the stamps of the rows that were written, and no others"
        assert set(written.stamps[rows].tolist()) == {written.version}


def test_who_reads_cannot_write() -> None:
    read = column(1, 2)
    with pytest.raises(ValueError, match="read-only"):
        read.array[0] = 5
    read.data[0] = 5  # a writer's
    assert read.array.tolist() == [5, 2]


@pytest.mark.parametrize("how", ["put", "add"])
def test_who_shares_memory_is_left_what_is_there(how: str) -> None:
    versions = Versions()
    live = column(1, 2, versions=versions)
    reader = live.reader()
    assert np.shares_memory(reader.array, live.array)
    live.shared = Column.move
    getattr(Writer(versions), how)(live, 0, 8)
    assert (reader.array.tolist(), reader.stamps) == ([1, 2], None)
    assert live.array.tolist() == live.data.tolist() == [8 if how == "put" else 9, 2]
    assert reader.version < live.version and live.shared is None
    for array in (reader.array, reader.data, live.array):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5


def test_what_a_placement_adds_is_said_by_who_keeps_the_column() -> None:
    assert column(1.0).per_task is None
