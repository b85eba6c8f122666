"""The runner of function tables: what each of the four outcomes takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pumice.testing import tables
from pumice.testing.tables import (
    NOT_APPLICABLE,
    TABLES,
    TableResult,
    TableStatus,
    disagreement,
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
