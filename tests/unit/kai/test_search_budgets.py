"""``scenarioSearchBudgets``: read and checked as in KAI, and without an effect."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.kai.search_budgets import budget_problems


@pytest.mark.parametrize(
    "section",
    [
        {},
        {"maxActionSearchDuration": {"default": "5m", "reclaim": "0s"}, "maxJobSearchDuration": "4m"},
        {"maxGeneratorSearchDuration": {"NodeLocalGreedy": "30s", "MultiNodeGang": "2m", "default": "1m"}},
        {"minJobSearchDuration": "10s"},
        {"minJobSearchDuration": "10m", "maxJobSearchDuration": "0s"},
    ],
)
def test_what_kai_takes_is_taken(section: dict[str, Any]) -> None:
    assert list(budget_problems(section)) == []


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        (
            {"maxJobSearchDuration": "-1s"},
            "maxJobSearchDuration: found '-1s', wanted a duration of 0 (no limit) or more",
        ),
        ({"maxJobSearchDuration": 4}, "maxJobSearchDuration: found 4, wanted a duration such as 30s"),
        ({"minJobSearchDuration": "5m"}, "minJobSearchDuration: found '5m', wanted less than maxJobSearchDuration"),
        (
            {"maxActionSearchDuration": {"allocate": "1s"}},
            "maxActionSearchDuration: found 'allocate', wanted consolidation, reclaim, preempt or default",
        ),
        (
            {"maxGeneratorSearchDuration": {"Mine": "1s"}},
            "maxGeneratorSearchDuration: found 'Mine', wanted NodeLocalGreedy, MultiNodeGang or default",
        ),
        ({"maxActionSearchDuration": "1s"}, "maxActionSearchDuration: found '1s', wanted a duration for each name"),
        ({"steps": 1}, "steps: unknown key, wanted one of maxActionSearchDuration, maxGeneratorSearchDuration,"),
    ],
)
def test_what_kai_refuses_is_named(section: dict[str, Any], problem: str) -> None:
    (found,) = budget_problems(section)
    assert found.startswith(problem)
