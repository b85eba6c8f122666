"""No reader looks into a text: what stands in the way of a job is a value, and its kind decides."""

from __future__ import annotations

import re

import pytest

from tests.tidy.repo import SRC

#: How a text of the trace, a detail or a reason would be compared.
_COMPARES = re.compile(
    r"(finding|entry|why|refused|blocker|limit)\.(what|detail|reason|message)"
    r"(\.startswith|\.endswith|\s*(==|!=|in\b|not in\b))\s*[(\[{]?[\"']"
)


def texts_compared(source: str) -> list[str]:
    return [line.strip() for line in source.splitlines() if _COMPARES.search(line)]


def test_no_reader_compares_a_text_of_the_trace() -> None:
    found = {
        str(path.relative_to(SRC)): lines
        for path in sorted(SRC.rglob("*.py"))
        if (lines := texts_compared(path.read_text()))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ('if entry.what == "queue full":', True),
        ('elif entry.what.startswith("cannot "):', True),
        ('if finding.detail in ("a", "b"):', True),
        ("if isinstance(entry.finding, QueueLimit):", False),
        ("if refused.what == JOB:", False),
    ],
)
def test_the_search_finds_what_it_looks_for(line: str, is_found: bool) -> None:
    assert bool(texts_compared(line)) is is_found
