"""Volcano's own function tables (``conformance/volcano/tables``), and that each check looks at all a row expects."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance.tables.table import TABLES, UNREAD, WANTED, TableStatus, is_expectation, load_checks, run_table

SHARED = Path(os.environ.get("PUMICE_SHARED") or Path(__file__).parents[3] / "shared")
FOLDER = SHARED / "conformance" / "volcano" / "tables"

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(
        not FOLDER.is_dir(),
        reason=f"no recorded tables at {FOLDER}: put `shared` beside the checkout or set PUMICE_SHARED",
    ),
]
#: Columns that list what must not be: a shorter list wants less.
NEGATIVE = ("expectNo",)

load_checks()
#: libyaml's, where it is there: ten times as fast.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@pytest.mark.parametrize("file", TABLES)
def test_table_agrees(file: str) -> None:
    result = run_table(FOLDER / file)
    assert (result.status, result.reason) == (TableStatus.PASSED, "")


@pytest.mark.parametrize("file", TABLES)
def test_check_notices_any_other_expectation(file: str) -> None:
    rows = yaml.load((FOLDER / file).read_text(), LOADER)["rows"]
    wanted = WANTED[file]
    examples = {key: value for row in rows for key, value in row.items() if is_expectation(key) or key in wanted}
    examples = examples or {"expected": []}  # nothing is wanted in any row
    for row in rows:
        for key, example in examples.items():
            shorter = not key.startswith(NEGATIVE)
            for other in others(row[key], UNREAD[file], shorter=shorter) if key in row else [beside(example)]:
                try:
                    answer = TABLES[file]({**row, key: other})
                except (KeyError, ValueError, TypeError, AttributeError):
                    continue
                assert answer is not None, f"{row} with {key}={other!r}"


def beside(example: Any) -> Any:
    """Something of the kind that is not its zero value."""
    match example:
        case bool():
            return True
        case int() | float():
            return 4711
        case str():
            return "another"
        case list():
            return ["another"]
    return {"MilliCPU": 4711}


def others(value: Any, unread: Container[str], *, shorter: bool = True) -> Iterator[Any]:
    """Values near this one, other only in what is read."""
    match value:
        case bool():
            yield not value
        case int() | float():
            yield value + 1
        case str():
            yield value + "x"
        case list():
            yield [*value, "another"]
            for i in range(len(value) if shorter else 0):
                if "" not in unread or value[i] not in ("", [""]):
                    yield value[:i] + value[i + 1 :]
        case dict():
            for key, inner in value.items():
                if key not in unread:
                    for other in others(inner, unread):
                        yield {**value, key: other}
            if not value:
                yield {"MilliCPU": 4711}
