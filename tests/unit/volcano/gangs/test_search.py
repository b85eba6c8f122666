"""Small native gangs of different pods have a place whenever there is one."""

from __future__ import annotations

import random

import pytest

from bench.native_groups import case_of, exists, places
from pumice.framework.plugin.policy_file import Policy
from pumice.runtime.policy.conf import loaded_from_text
from pumice.runtime.policy.languages import builtin_registry
from pumice.volcano.gangs import search
from pumice.volcano.table import DEFAULT_CONF


def policy() -> Policy:
    return loaded_from_text(DEFAULT_CONF, builtin_registry(), where="default").policy


def test_a_placement_is_found_exactly_if_brute_force_finds_one() -> None:
    dice, rules = random.Random(7), policy()
    cases = [case_of(dice) for _ in range(60)]
    assert [places(case, "volcano", rules) for case in cases] == [exists(case) for case in cases]


@pytest.mark.parametrize("limit", ["STEPS_MAX", "STEPS_IN_ALL_MAX", "PODS_MAX"])
def test_without_steps_pods_are_placed_one_by_one(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(search, limit, 0)
    dice, rules = random.Random(7), policy()
    possible = [case for case in (case_of(dice) for _ in range(60)) if exists(case)]
    assert not all(places(case, "volcano", rules) for case in possible)
