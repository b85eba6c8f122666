"""Small native gangs of different pods have a place whenever there is one, under KAI's language."""

from __future__ import annotations

import random

from bench.native_groups import CONFS, case_of, exists, places
from pumice.runtime.policy.conf import loaded_from_text
from pumice.runtime.policy.languages import builtin_registry


def test_a_placement_is_found_exactly_if_brute_force_finds_one() -> None:
    dice, rules = random.Random(8), loaded_from_text(CONFS["kai"], builtin_registry(), where="kai").policy
    cases = [case_of(dice) for _ in range(60)]
    assert [places(case, "kai", rules) for case in cases] == [exists(case) for case in cases]
