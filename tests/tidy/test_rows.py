"""The page of what hooks can ask is the one that the code would write, and leaves nothing unsaid."""

import re

import pytest

from docs.rows import PAGE, page
from pumice.runtime.policy.languages import builtin_registry
from tests.tidy import repo


def test_the_page_of_rows_is_fresh() -> None:
    assert repo.text(PAGE) == page(), "run .venv/bin/python -m docs.rows"


def test_all_that_can_be_asked_is_explained() -> None:
    assert not [line for line in page().splitlines() if line.startswith("| `") and line.endswith("|  |")]


#: What a hook takes that explains itself: arrays, and values of Python's.
PLAIN = {"F64", "I32", "I64", "Bool", "bool", "int", "str", "Sequence[Job]"}


@pytest.mark.parametrize("language", ["volcano", "kai"])
def test_all_that_a_hook_is_given_has_a_section(language: str) -> None:
    text = page()
    points = builtin_registry().dialects[language].points.values()
    taken = {each for point in points for form in point.forms for each in form} - PLAIN
    assert {"Task", "NodeRows"} <= taken
    missing = [each for each in sorted(taken) if not re.search(rf"^###? {each}$", text, re.MULTILINE)]
    assert not missing, repo.listed("give it a section (docs/rows.py)", missing)
