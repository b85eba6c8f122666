"""The runner of function tables: what each of the four outcomes takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.tables import table as tables
from tests.conformance.tables.table import (
    NOT_APPLICABLE,
    TABLES,
    UNREAD,
    TableResult,
    TableStatus,
    difference,
    disagreement,
    is_expectation,
    load_checks,
    run_table,
    table,
)


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    found: dict[str, Any] = {}
    monkeypatch.setattr(tables, "TABLES", found)
    monkeypatch.setattr(tables, "UNREAD", {})
    monkeypatch.setattr(tables, "CHECK_MODULES", ())
    return found


@pytest.fixture
def doubling(tmp_path: Path) -> Path:
    path = tmp_path / "plugins-magic" / "TestDouble.yaml"
    path.parent.mkdir()
    path.write_text("source: x\nrows:\n- {index: 0, in: 1, want: 2}\n- {name: by three, in: 3, want: 6}\n")
    return path


FILE = "plugins-magic/TestDouble.yaml"


def test_passes_when_every_row_agrees(checks: dict[str, Any], doubling: Path) -> None:
    table(FILE, factor=2)(lambda row, factor: disagreement(row["in"] * factor, row["want"]))
    assert run_table(doubling) == TableResult(FILE, TableStatus.PASSED, "", 2)


def test_fails_with_the_first_disagreement(checks: dict[str, Any], doubling: Path) -> None:
    table(FILE)(lambda row: disagreement(row["in"] + 1, row["want"]))
    assert run_table(doubling).reason == "1 of 2 rows; row 1 (by three): found 4, wanted 6"
    assert run_table(doubling).status == TableStatus.FAILED


def test_an_error_is_a_failed_row(checks: dict[str, Any], doubling: Path) -> None:
    table(FILE)(lambda row: disagreement(row["nothing"], row["want"]))
    assert run_table(doubling).reason == "2 of 2 rows; row 0: raised KeyError: 'nothing'"


def test_a_table_without_rows_does_not_pass(checks: dict[str, Any], doubling: Path) -> None:
    doubling.write_text("rows: []\n")
    table(FILE)(lambda row: None)
    assert run_table(doubling) == TableResult(FILE, TableStatus.FAILED, "the table has no rows", 0)


def test_without_a_check_it_says_what_is_missing(checks: dict[str, Any], doubling: Path) -> None:
    assert run_table(doubling) == TableResult(FILE, TableStatus.NOT_YET, "no check yet; it needs plugin magic", 2)


def test_what_does_not_apply_is_not_run(
    checks: dict[str, Any], doubling: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(NOT_APPLICABLE, FILE, "a detail of Go")
    assert run_table(doubling) == TableResult(FILE, TableStatus.NOT_APPLICABLE, "a detail of Go", 2)
    with pytest.raises(ValueError, match="has two entries"):
        table(FILE)(lambda row: None)


def test_a_table_has_one_check(checks: dict[str, Any]) -> None:
    table(FILE)(lambda row: None)
    with pytest.raises(ValueError, match=f"table {FILE} has two entries"):
        table(FILE)(lambda row: None)


def test_no_file_both_runs_and_does_not_apply() -> None:
    assert load_checks() is TABLES
    assert not TABLES.keys() & NOT_APPLICABLE.keys()


def test_what_a_check_does_not_read_is_taken_from_what_is_wanted_only(checks: dict[str, Any]) -> None:
    seen: list[Any] = []
    table(FILE, unread={"Device": "no devices here"})(seen.append)
    checks[FILE]({"given": {"Device": 1}, "want": [{"Device": 1, "Name": "n"}], "ExpectedScore": {"Device": 1}})
    assert seen == [{"given": {"Device": 1}, "want": [{"Name": "n"}], "ExpectedScore": {}}]
    assert tables.UNREAD[FILE] == {"Device": "no devices here"}


def test_every_part_that_is_not_read_has_a_reason() -> None:
    load_checks()
    assert all(reason for keys in UNREAD.values() for reason in keys.values())
    assert all(NOT_APPLICABLE.values())


@pytest.mark.parametrize(
    ("found", "wanted", "line"),
    [
        pytest.param({"a": {"b": 1}}, {"a": {"b": 1}}, None, id="same"),
        pytest.param({"a": {"b": 1}}, {"a": {"b": 2}}, "a.b: found 1, wanted 2", id="deep"),
        pytest.param({"a": 1, "b": 2}, {"a": 1}, "b: found 2, wanted None", id="too much"),
        pytest.param({}, {"a": {"b": 1}}, "a: found None, wanted {'b': 1}", id="too little"),
        pytest.param([1], [2], "found [1], wanted [2]", id="no mappings"),
    ],
)
def test_the_first_difference_is_named_by_its_place(found: Any, wanted: Any, line: str | None) -> None:
    assert difference(found, wanted) == line


@pytest.mark.parametrize("column", ["expected", "ExpectedScore", "wantErr", "results"])
def test_columns_that_want_something(column: str) -> None:
    assert is_expectation(column)
    assert not is_expectation("un" + column)


# -- where every recorded row wants the same answer, one that wants the other


def test_a_nomination_that_fits_is_taken() -> None:
    check = load_checks()["actions-allocate/TestValidateNomination_MissBranches.yaml"]
    row = {"leafIdleMilliCPU": 4000, "leafNodeName": "n1", "taskNominatedNodeName": "n1", "taskResMilliCPU": 1000}
    assert check({**row, "expected": True}) is None
    assert check({**row, "taskResMilliCPU": 5000}) is None
