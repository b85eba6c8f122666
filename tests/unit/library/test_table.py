"""Tables of results: what Arrow consumers, pandas and people read of them."""

from __future__ import annotations

import nanoarrow as na
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.library.column import count, flag, number, text
from pumice.library.table import Table

COLUMNS = (
    text("name", "a name"),
    count("pods", "pods", "how many"),
    number("wait_s", "s", "wait"),
    flag("ok", "or not"),
)
ROW = st.tuples(
    st.none() | st.text(st.characters(exclude_categories=("Cs",)), max_size=8),
    st.none() | st.integers(-(2**53), 2**53),
    st.none() | st.floats(allow_nan=False),
    st.booleans(),
)


def table(*rows: tuple[object, ...]) -> Table:
    return Table("things", COLUMNS, lambda: rows)


@given(st.lists(ROW, max_size=20))
def test_polars_reads_the_rows_that_were_given(rows: list[tuple[object, ...]]) -> None:
    frame = pl.DataFrame(table(*rows))
    assert frame.rows() == rows
    assert frame.dtypes == [pl.String, pl.Int64, pl.Float64, pl.Boolean]


def test_pyarrow_reads_the_rows_that_were_given() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    assert pyarrow.table(table(("ä", 1, None, True))).to_pylist() == [
        {"name": "ä", "pods": 1, "wait_s": None, "ok": True}
    ]


def test_units_are_in_the_metadata_of_fields() -> None:
    fields = {child.name: dict(child.metadata.items()) for child in na.c_schema(table()).children}
    assert fields["wait_s"] == {b"unit": b"s", b"description": b"wait"}
    assert table().schema["unit"] == ["", "pods", "s", ""]


def test_dictionaries_have_arrays_with_nan_for_missing_numbers() -> None:
    found = table(("a", 1, 2.5, True), (None, None, None, False)).to_dict()
    assert found["name"] == ["a", None]
    assert np.isnan(np.asarray(found["pods"])[1]) and np.asarray(found["ok"]).tolist() == [True, False]


def test_columns_by_name_and_rows_as_dictionaries() -> None:
    found = table(("a", 1, 2.5, True))
    assert found["pods"] == [1] and next(iter(found))["name"] == "a" and len(found) == 1
    with pytest.raises(KeyError, match="things has no column 'pod'; it has name, pods"):
        _ = found["pod"]


def test_a_row_by_name_has_its_values_with_units() -> None:
    row = table(("a", 1, None, True), ("b", 2, 2.5, False)).row("b")
    assert dict(row) == {"name": "b", "pods": 2, "wait_s": 2.5, "ok": False}
    assert repr(row).splitlines() == [
        "row of things",
        "  name    b",
        "  pods    2 pods",
        "  wait_s  2.5 s",
        "  ok      False",
    ]
    assert "2.5 s" in row._repr_html_()
    assert "wait_s" not in repr(table(("a", 1, None, True)).row("a"))
    with pytest.raises(KeyError, match="a row of things has no column 'pod'; it has name, pods"):
        _ = row["pod"]
    with pytest.raises(LookupError, match=r"things has no row 'default/bett' \(did you mean"):
        table(("default/bert", 1, 1.0, True)).row("default/bett")


def test_no_text_of_a_table_is_longer_than_a_screen() -> None:
    wide = Table("wide", [text(f"column-{i}", "x") for i in range(200)], lambda: [("y" * 500,) * 200] * 5000)
    lines = repr(wide).splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 100
    assert lines[0] == "wide: 5,000 rows × 200 columns"
    assert wide._repr_html_().count("<tr>") == 21 and "and 4,980 more rows" in wide._repr_html_()


def test_names_from_the_input_are_escaped() -> None:
    hostile = table(("<script>\x1b[31m\nx", 1, 1.0, True))
    row = Table("<b>", COLUMNS, lambda: [("<script>", 1, 1.0, True)]).row("<script>")
    assert "<script>" not in hostile._repr_html_() + row._repr_html_() and "<b>" not in row._repr_html_()
    assert "\x1b" not in repr(hostile) and len(repr(hostile).splitlines()) == 3
