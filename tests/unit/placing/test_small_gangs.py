"""The search for small native gangs of different pods is bounded."""

from __future__ import annotations

import random

import pytest

from bench.native_groups import CONFS, case_of, exists, places
from pumice.placing import small_gangs
from pumice.placing.small_gangs import has_second_tries, with_second_tries
from pumice.runtime.policy.conf import loaded_from_text
from pumice.runtime.policy.languages import builtin_registry


@pytest.mark.parametrize("dialect", CONFS)
@pytest.mark.parametrize("limit", ["STEPS_MAX", "STEPS_IN_ALL_MAX", "PODS_MAX"])
def test_without_steps_pods_are_placed_one_by_one(monkeypatch: pytest.MonkeyPatch, limit: str, dialect: str) -> None:
    monkeypatch.setattr(small_gangs, limit, 0)
    dice, rules = random.Random(7), loaded_from_text(CONFS[dialect], builtin_registry(), where=dialect).policy
    possible = [case for case in (case_of(dice) for _ in range(60)) if exists(case)]
    assert not all(places(case, dialect, rules) for case in possible)


SWITCHED = "actions: allocate\nconfigurations:\n- name: allocate\n  arguments: {{secondTries: {}}}"


@pytest.mark.parametrize(
    ("conf", "is_on", "has_switch"),
    [
        ("actions: allocate", False, True),
        ("actions: allocate\nconfigurations: [{name: allocate, arguments: {secondTries: true}}]", True, True),
        ("actions: allocate\ndialect: pumice", True, True),
        (
            "actions: allocate\ndialect: pumice\nconfigurations: [{name: allocate, arguments: {secondTries: false}}]",
            False,
            True,
        ),
        ("actions: allocate\ndialect: kai", False, False),
        ("actions: backfill", False, False),
    ],
)
def test_the_switch_is_found_and_set(conf: str, is_on: bool, has_switch: bool) -> None:
    policy = loaded_from_text(conf, builtin_registry(), where="conf").policy
    assert has_second_tries(policy) is is_on
    changed = with_second_tries(policy)
    assert (changed is not None) is (has_switch and not is_on)
    assert changed is None or has_second_tries(changed)
