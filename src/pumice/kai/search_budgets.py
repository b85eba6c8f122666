"""Check ``scenarioSearchBudgets`` of a policy file, which limits the search for victims by wall clock in KAI.

Here steps are counted (``kai.engine.budget``), so that one input gives one decision on every machine: the section is
checked and has no effect. Source: KAI search_budget, its validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pumice.kai.engine.points import GENERATORS
from pumice.model.quantity import duration_or_none

SEARCH_BUDGETS = "scenarioSearchBudgets"
_ACTIONS = ("consolidation", "reclaim", "preempt")
_DEFAULT = "default"
_JOB, _LEAST_JOB = "maxJobSearchDuration", "minJobSearchDuration"
#: Keys with one duration for each name, and the names that KAI knows.
_BY_NAME = {"maxActionSearchDuration": _ACTIONS, "maxGeneratorSearchDuration": GENERATORS}


def budget_problems(section: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each budget with which KAI would not search, or not open a session."""
    for key, value in section.items():
        if key in _BY_NAME:
            yield from _by_name(key, value)
        elif key in (_JOB, _LEAST_JOB):
            yield from _problems(key, value)
        else:
            yield f"{key}: unknown key, wanted one of {', '.join((*_BY_NAME, _JOB, _LEAST_JOB))}"
    most, least = duration_or_none(section.get(_JOB, "4m")), duration_or_none(section.get(_LEAST_JOB, "0s"))
    # 0 is no limit, of which no minimum is too long.
    if most and least and least >= most > 0:
        yield f"{_LEAST_JOB}: found {section[_LEAST_JOB]!r:.80}, wanted less than {_JOB}"


def _by_name(key: str, value: object) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{key}: found {value!r:.80}, wanted a duration for each name"
        return
    for name, duration in value.items():
        if name not in (*_BY_NAME[key], _DEFAULT):
            yield f"{key}: found {name!r:.80}, wanted {', '.join(_BY_NAME[key])} or {_DEFAULT}"
        yield from _problems(f"{key}.{name}", duration)


def _problems(where: str, value: object) -> Iterator[str]:
    seconds = duration_or_none(value)
    if seconds is None:
        yield f"{where}: found {value!r:.80}, wanted a duration such as 30s"
    elif seconds < 0:
        yield f"{where}: found {value!r:.80}, wanted a duration of 0 (no limit) or more"
