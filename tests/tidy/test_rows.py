"""The page of what hooks can ask is the one that the code would write, and leaves nothing unsaid."""

from docs.rows import PAGE, page
from tests.tidy import repo


def test_the_page_of_rows_is_fresh() -> None:
    assert repo.text(PAGE) == page(), "run .venv/bin/python -m docs.rows"


def test_all_that_can_be_asked_is_explained() -> None:
    assert not [line for line in page().splitlines() if line.startswith("| `") and line.endswith("|  |")]
