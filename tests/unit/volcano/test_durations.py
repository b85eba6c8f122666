"""Arguments of plugins that are durations."""

from __future__ import annotations

import pytest

from pumice.volcano.durations import argument_s, duration_problems


@pytest.mark.parametrize(
    ("text", "default", "seconds"),
    [("90s", "1m", 90.0), ("soon", "1m", 60.0), ("", "1m", 60.0), ("-5s", "1m", 0.0), ("soon", "", 0.0)],
)
def test_what_is_no_duration_is_worth_the_default(text: str, default: str, seconds: float) -> None:
    assert argument_s(text, default) == seconds


@pytest.mark.parametrize(
    ("text", "default", "such_as", "problems"),
    [
        ("90s", "1m", "", []),
        ("", "", "1h", []),
        ("soon", "1m", "", ["argument a: found 'soon', wanted a duration such as 1m; it is 1m"]),
        ("soon", "", "1h", ["argument a: found 'soon', wanted a duration such as 1h; there is none"]),
        ("x" * 90, "1m", "", [f"argument a: found {'x' * 80!r}, wanted a duration such as 1m; it is 1m"]),
    ],
)
def test_what_is_no_duration_is_named(text: str, default: str, such_as: str, problems: list[str]) -> None:
    assert [*duration_problems("a", text, default, such_as)] == problems
