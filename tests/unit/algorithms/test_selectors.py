"""Selectors over label columns: every operator, and the same answers as over plain labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.algorithms.selectors import EncodedColumn, holds, holds_over, matches, rows_matching
from pumice.model.pod import LabelSelector, Requirement

ABSENT = None
VALUES = ["a", "b", "", "5", "-3", "+7", "1.5", "0x10", " 5", ABSENT]


@pytest.mark.parametrize(
    ("operator", "wanted", "found"),
    [
        pytest.param("In", ("a", "5"), ["a", "5"], id="one of the values"),
        pytest.param("In", (), [], id="one of no values"),
        pytest.param("In", ("",), [""], id="the empty value is a value"),
        pytest.param("NotIn", ("a", "5"), ["b", "", "-3", "+7", "1.5", "0x10", " 5", ABSENT], id="none of: absent too"),
        pytest.param("Exists", (), [v for v in VALUES if v is not None], id="there"),
        pytest.param("DoesNotExist", (), [ABSENT], id="not there"),
        pytest.param("Gt", ("4",), ["5", "+7"], id="greater: whole numbers only"),
        pytest.param("Gt", ("-4",), ["5", "-3", "+7"], id="greater than a negative"),
        pytest.param("Lt", ("5",), ["-3"], id="less, not equal"),
        pytest.param("Gt", ("four",), [], id="a bound that is no number"),
        pytest.param("Gt", (), [], id="no bound"),
        pytest.param("Gt", ("1", "2"), [], id="two bounds"),
        pytest.param("Near", ("5",), [], id="an operator nobody knows"),
    ],
)
def test_operators(operator: str, wanted: tuple[str, ...], found: list[str | None]) -> None:
    mask = holds_over(Requirement("key", operator, wanted), EncodedColumn(VALUES))
    assert [v for v, hit in zip(VALUES, mask.tolist(), strict=True) if hit] == found


@pytest.mark.parametrize(
    ("text", "is_more"),
    [
        pytest.param("9223372036854775807", True, id="largest"),
        pytest.param("9223372036854775808", False, id="too-large"),
        pytest.param("-9223372036854775808", False, id="smallest"),
        pytest.param("+" + "0" * 60 + "7", True, id="leading-zeros"),
        pytest.param("9" * 5000, False, id="very-long"),
        pytest.param("٧", False, id="other-digits"),
    ],
)
def test_integers_have_64_bits(text: str, is_more: bool) -> None:
    assert holds(Requirement("key", "Gt", ("0",)), {"key": text}) is is_more
    assert holds(Requirement("key", "Lt", (text,)), {"key": "0"}) is is_more


def test_integers_below_the_smallest_are_none() -> None:
    smallest = Requirement("key", "Lt", ("0",))
    assert holds(smallest, {"key": "-9223372036854775808"})
    assert not holds(smallest, {"key": "-9223372036854775809"})


def test_a_column_without_any_value() -> None:
    nothing = EncodedColumn([None, None])
    assert holds_over(Requirement("key", "NotIn", ("a",)), nothing).tolist() == [True, True]
    assert holds_over(Requirement("key", "Exists"), nothing).tolist() == [False, False]
    assert holds_over(Requirement("key", "Exists"), EncodedColumn([])).tolist() == []


def test_an_empty_selector_matches_every_row() -> None:
    assert rows_matching(LabelSelector(), lambda key: EncodedColumn([]), np.array([1, 4])).tolist() == [1, 4]


def test_rows_that_have_one_of_some_values() -> None:
    column = EncodedColumn(["b", None, "a", "b"])
    assert column.rows_with(["b", "c", "b"]).tolist() == [0, 3]
    assert column.rows_with(["a", "b"]).tolist() == [0, 2, 3]
    assert column.rows_with([]).tolist() == []


KEYS = st.sampled_from(["k", "l"])
TEXTS = st.sampled_from(["a", "b", "1", "2", "3", ""])
REQUIREMENTS = st.builds(
    Requirement,
    KEYS,
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Odd"]),
    st.lists(TEXTS, max_size=2).map(tuple),
)


@given(
    st.lists(REQUIREMENTS, max_size=3).map(lambda r: LabelSelector(tuple(r))),
    st.lists(st.dictionaries(KEYS, TEXTS), max_size=6),
)
def test_columns_and_mappings_agree(selector: LabelSelector, rows: list[dict[str, str]]) -> None:
    columns = {key: EncodedColumn(row.get(key) for row in rows) for key in ("k", "l")}
    for key, column in columns.items():
        sparse = EncodedColumn.of({i: row[key] for i, row in enumerate(rows) if key in row}, len(rows))
        assert (sparse.values, sparse.codes.tolist()) == (column.values, column.codes.tolist())
    found = rows_matching(selector, columns.__getitem__, np.arange(len(rows)))
    assert found.tolist() == [i for i, row in enumerate(rows) if matches(selector, row)]
    for requirement in selector.requirements:
        assert holds_over(requirement, columns[requirement.key]).tolist() == [holds(requirement, r) for r in rows]
