"""Many selectors at once say what each of them says alone."""

from __future__ import annotations

import random

import pytest

from pumice.model.pod import LabelSelector, Requirement
from pumice.model.selectors import matches
from pumice.placing.filters.selector_index import SelectorIndex

KEYS, VALUES = ("a", "b", "c"), ("1", "2", "30", "x")
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Later")


def requirement(dice: random.Random) -> Requirement:
    values = tuple(dice.sample(VALUES, dice.randint(0, 3)))
    return Requirement(dice.choice(KEYS), dice.choice(OPERATORS), values)


def selector(dice: random.Random) -> LabelSelector:
    return LabelSelector(tuple(requirement(dice) for _ in range(dice.randint(0, 3))))


@pytest.mark.parametrize("seed", range(40))
def test_each_selector_says_what_it_says_alone(seed: int) -> None:
    dice = random.Random(seed)
    selectors = [selector(dice) for _ in range(dice.randint(0, 30))]
    index = SelectorIndex(selectors)
    for _ in range(20):
        labels = {key: dice.choice(VALUES) for key in KEYS if dice.random() < 0.7}
        assert index.matching(labels).tolist() == [matches(each, labels) for each in selectors]
