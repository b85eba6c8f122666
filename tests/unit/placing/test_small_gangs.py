"""The search for small native gangs of different pods is bounded."""

from __future__ import annotations

import random

import pytest

from bench.native_groups import CONFS, case_of, exists, places
from pumice.placing import small_gangs
from pumice.runtime.policy.conf import loaded_from_text
from pumice.runtime.policy.languages import builtin_registry


@pytest.mark.parametrize("dialect", CONFS)
@pytest.mark.parametrize("limit", ["STEPS_MAX", "STEPS_IN_ALL_MAX", "PODS_MAX"])
def test_without_steps_pods_are_placed_one_by_one(monkeypatch: pytest.MonkeyPatch, limit: str, dialect: str) -> None:
    monkeypatch.setattr(small_gangs, limit, 0)
    dice, rules = random.Random(7), loaded_from_text(CONFS[dialect], builtin_registry(), where=dialect).policy
    possible = [case for case in (case_of(dice) for _ in range(60)) if exists(case)]
    assert not all(places(case, dialect, rules) for case in possible)
