"""Two policies on the same random cases, each small enough for an exact solver."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from pumice.framework.plugin.policy_file import Policy

C = TypeVar("C")


class Solved(Struct):
    """``possible``: cases that the exact solver solves. ``off``, ``on``: those that the policy solves with a setting
    off and on. ``cpu_ratio``: CPU seconds of all cases with the setting on, over those with it off."""

    possible: int
    off: int
    on: int
    cpu_ratio: float


def solved(
    cases: int,
    seed: int,
    case_of: Callable[[random.Random], C],
    is_possible: Callable[[C], bool],
    policy_of: Callable[[bool], Policy],
    solves: Callable[[C, Policy], bool],
) -> Solved:
    """Run both policies on each case, in turns. Raises: AssertionError if one solves what the exact solver does not."""
    dice, policies = random.Random(seed), {on: policy_of(on) for on in (False, True)}
    possible, count, took = 0, dict.fromkeys(policies, 0), dict.fromkeys(policies, 0.0)
    for _ in range(cases):
        case = case_of(dice)
        expected = is_possible(case)
        possible += expected
        for on, policy in policies.items():
            began = time.process_time()
            found = solves(case, policy)
            took[on] += time.process_time() - began
            assert expected or not found, f"solved, although no solution exists: {case}"
            count[on] += found
    return Solved(possible, count[False], count[True], round(took[True] / took[False], 2))
