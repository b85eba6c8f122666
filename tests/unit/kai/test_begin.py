"""What a session of KAI's language begins with: pods that are stuck in their deletion."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.kai.begin import stuck_problems
from tests.unit.kai.cluster import NOW, cycle, job, node, policy, queue, store


@pytest.mark.parametrize(
    ("section", "state"),
    [
        pytest.param({}, "StuckInReleasing@n", id="two minutes if nothing is said"),
        pytest.param({"threshold": "5m"}, "Releasing@n", id="longer"),
        pytest.param({"threshold": "2m59s"}, "StuckInReleasing@n", id="shorter than it takes"),
    ],
)
def test_a_pod_is_stuck_when_its_deletion_takes_longer_than_the_policy_says(section: Any, state: str) -> None:
    leaves = job("a", "q", ["n"], pod={"deletion": NOW - 180})
    ran = cycle(store(node("n"), queue("q"), leaves), policy(sections={"stuckInReleasing": section}))
    assert ran.states == {"a-0": state}


@pytest.mark.parametrize(
    ("section", "problems"),
    [
        ({"threshold": "0s"}, []),
        ({"threshold": "-1s"}, ["threshold: found '-1s', wanted a duration such as 2m"]),
        ({"threshold": 2}, ["threshold: found 2, wanted a duration such as 2m"]),
        ({"treshold": "2m"}, ["treshold: unknown key, wanted threshold"]),
    ],
)
def test_wrong_entries_are_named(section: Any, problems: list[str]) -> None:
    assert list(stuck_problems(section)) == problems
