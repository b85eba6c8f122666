"""Each change of KAI 0.17 outside of decisions is decided: done, with the tests that hold it, or not applicable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance.test_letter import ROWS as LETTER

Raw = dict[str, Any]
ROWS: list[Raw] = yaml.safe_load(Path(__file__).with_suffix("").with_name("kai_0_17.yaml").read_text())
_TESTS = Path(__file__).parents[1]
_RULES = {row["rule"] for row in LETTER}


@pytest.mark.parametrize("row", ROWS, ids=[row["change"] for row in ROWS])
def test_a_change_names_what_holds_it_or_why_it_does_not_apply(row: Raw) -> None:
    assert row["here"] in ("done", "not applicable")
    named = row.get("tests", [])
    for file, _, test in (each.partition("::") for each in named):
        assert f"def {test}(" in (_TESTS / file).read_text(), f"{file} has no {test}"
    rules = set(row.get("letter", []))
    assert rules <= _RULES, f"no such rule: {rules - _RULES}"
    assert (named or rules) if row["here"] == "done" else row["why"]
