"""Amounts and times as people read them."""

from __future__ import annotations

import pytest

from pumice.model.plain_words import first_names
from pumice.reasons.words import counted
from pumice.report.units import amount, duration, percent


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(None, "–", id="none"),
        pytest.param(0.0, "0 s", id="zero"),
        pytest.param(0.25, "0.25 s", id="part-of-a-second"),
        pytest.param(59.6, "1 min", id="rounds-up"),
        pytest.param(61.0, "1 min 1 s", id="minute"),
        pytest.param(3600.0, "1 h", id="hour"),
        pytest.param(3720.0, "1 h 2 min", id="hour-and-minutes"),
        pytest.param(86_399.9, "1 d", id="nearly-a-day"),
        pytest.param(97_200.0, "1 d 3 h", id="day-and-hours"),
    ],
)
def test_duration(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_numbers() -> None:
    assert [amount(value) for value in (3.0, 0.12345, 1234.5)] == ["3", "0.123", "1,234"]
    assert [percent(share) for share in (None, 0.6125)] == ["–", "61.3 %"]
    assert [counted(count, "job") for count in (0, 1, 2000)] == ["0 jobs", "1 job", "2,000 jobs"]


def test_some_names() -> None:
    assert first_names(["a", "b"], 3) == "a, b"
    assert first_names(["a", "b", "c"], 2) == "a, b and 1 more"
    assert first_names(["a", "b"], 2, count=1002) == "a, b and 1,000 more"
