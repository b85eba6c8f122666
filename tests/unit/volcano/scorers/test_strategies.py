"""What a policy says of each resource: which rule counts for which name, and what is as if it were not said."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.model.strategy import ResourceStrategy
from pumice.volcano.scorers.strategies import DEFAULT_WEIGHT, Proportions, Rule, Scarce, Strategies, argument_problems

LEAST, MOST = {"type": "LeastAllocated"}, {"type": "MostAllocated"}


def test_the_longest_prefix_counts() -> None:
    rules = {"a/*": Rule(False, 1.0), "a/b/*": Rule(True, 2.0), "a/b/c": Rule(False, 3.0)}
    found = [Strategies(1, rules).of(name) for name in ("a/x", "a/b/x", "a/b/c", "b")]
    assert [None if rule is None else rule.weight for rule in found] == [1.0, 2.0, 3.0, None]


def test_without_rules_cpu_and_memory_are_left_empty_and_a_pod_names_its_own() -> None:
    assert Strategies.read(-1, None) == Strategies(
        DEFAULT_WEIGHT, {"cpu": Rule(False, 1.0), "memory": Rule(False, 1.0)}
    )
    assert Strategies.read(0, {"cpu": LEAST}).weight == 0, "0 switches it off"
    own = ResourceStrategy(most=True, weights=(("gpu", 3), ("cpu", 0)))
    assert Strategies.of_pod(own) == Strategies(1, {"gpu": Rule(True, 3.0), "cpu": Rule(True, 0.0)})


@pytest.mark.parametrize(
    ("name", "given", "rule"),
    [
        pytest.param("gpu", MOST, Rule(True, 1.0), id="a weight of 1 where none is said"),
        pytest.param("gpu", LEAST | {"weight": 2.5}, Rule(False, 2.5), id="a weight"),
        pytest.param("gpu", MOST | {"weight": 0}, Rule(True, 1.0), id="0 counts as 1"),
        pytest.param("gpu", MOST | {"weight": 10**7}, Rule(True, 1.0), id="too much counts as 1"),
        pytest.param("gpu", MOST | {"weight": True}, Rule(True, 1.0), id="a truth counts as 1"),
        pytest.param("gpu", {"type": "Most"}, Rule(False, 1.0), id="an unknown type leaves it empty"),
        pytest.param("a/*", MOST, Rule(True, 1.0), id="a prefix"),
        pytest.param("*", MOST, None, id="a prefix of nothing"),
        pytest.param("", MOST, None, id="no name"),
        pytest.param("a*b", MOST, None, id="a star within"),
        pytest.param("a**", MOST, None, id="two stars"),
        pytest.param(7, MOST, None, id="a number"),
        pytest.param("gpu", 3, None, id="no mapping"),
    ],
)
def test_rules_that_are_read(name: Any, given: Any, rule: Rule | None) -> None:
    assert Strategies.read(1, {name: given}).rules == ({} if rule is None else {name: rule})


NAMES = {"enable": True, "resources": "a, b,,"}


@pytest.mark.parametrize(
    ("given", "weights"),
    [
        pytest.param(NAMES | {"weight": 5, "resourceWeight": {"a": 3, "b": "x"}}, {"a": 3.0, "b": 1.0}, id="1 each"),
        pytest.param(NAMES | {"weight": 5, "resourceWeight": 3}, {"a": 1.0, "b": 1.0}, id="weights that are none"),
        pytest.param({"enable": True, "weight": 5, "resources": ["a"]}, {}, id="names are one text"),
    ],
)
def test_scarce_resources(given: Any, weights: dict[str, float]) -> None:
    assert Scarce.read(given) == Scarce(5.0, weights)


@pytest.mark.parametrize("given", [None, [], NAMES | {"enable": "true"}, NAMES | {"enable": 1}, {"resources": "a"}])
def test_what_is_not_enabled_is_off(given: Any) -> None:
    assert (Scarce.read(given), Proportions.read(given)) == (Scarce(), Proportions())


def test_proportions_are_of_cpu_and_memory_for_each_device() -> None:
    given = NAMES | {"resourceProportion": {"a.cpu": 4, "a.memory": 8, "b.cpu": -1}}
    assert Proportions.read(given).rates == {"a": (4.0, 8.0), "b": (1.0, 1.0)}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(({"cpu": MOST}, {"enable": False}, None), [], id="nothing"),
        pytest.param((["cpu"], None, None), ["found a list, wanted a mapping by resource"], id="no mapping"),
        pytest.param(
            ({"*": MOST, "cpu": 3}, None, None), ["one * at its end", "wanted type and weight"], id="each rule"
        ),
        pytest.param(
            (None, "on", {"enable": "yes"}), ["sra: found a text", "proportional.enable: found 'yes'"], id="others"
        ),
    ],
)
def test_what_is_not_used_as_it_is_written_is_said(arguments: tuple[Any, Any, Any], said: list[str]) -> None:
    found = list(argument_problems(*arguments))
    assert len(found) == len(said)
    assert all(part in text for part, text in zip(said, found, strict=True))
