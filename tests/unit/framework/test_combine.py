"""How answers of several plugins become one: for every way a table of tiers, what is answered and who was asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from pumice.framework import combine
from pumice.framework.combine import Vote

NO, ABSTAIN, YES = Vote
Answers = Sequence[Sequence[Any]]


class Asked:
    """Hooks with fixed answers; ``order`` are the hooks that were asked, ``11`` being the first of the first tier."""

    def __init__(self, answers: Answers) -> None:
        self.order: list[int] = []
        self.tiers = [[self._hook(10 * t + h, a) for h, a in enumerate(tier, 1)] for t, tier in enumerate(answers, 1)]

    def _hook(self, number: int, answer: Any) -> Callable[..., Any]:
        def hook(*args: Any) -> Any:
            self.order.append(number)
            return answer

        return hook


def check(combinator: Callable[..., Any], answers: Answers, wanted: Any, asked: list[int], *args: Any) -> None:
    hooks = Asked(answers)
    found = combinator(hooks.tiers, *args)
    assert (found, type(found), hooks.order) == (wanted, type(wanted), asked)


@pytest.mark.parametrize(
    ("answers", "wanted", "asked"),
    [
        pytest.param([], 0, [], id="nobody"),
        pytest.param([[0, 0], [0]], 0, [11, 12, 21], id="no opinion"),
        pytest.param([[0, -1, 1]], -1, [11, 12], id="the first opinion of a tier"),
        pytest.param([[0], [1], [-1]], 1, [11, 21], id="an earlier tier"),
        pytest.param([[7]], 7, [11], id="any number"),
    ],
)
def test_first_nonzero(answers: Answers, wanted: int, asked: list[int]) -> None:
    check(combine.first_nonzero, answers, wanted, asked)


@pytest.mark.parametrize(
    ("answers", "wanted", "asked"),
    [
        pytest.param([], True, [], id="nobody"),
        pytest.param([[ABSTAIN, ABSTAIN], [ABSTAIN]], True, [11, 12, 21], id="all abstain"),
        pytest.param([[NO, YES]], False, [11], id="a reject ends it at once"),
        pytest.param([[YES, NO]], False, [11, 12], id="a permit waits for its tier"),
        pytest.param([[YES, ABSTAIN], [NO]], True, [11, 12], id="a permit ends it after its tier"),
        pytest.param([[ABSTAIN, YES], [NO]], True, [11, 12], id="whoever permits"),
        pytest.param([[ABSTAIN], [NO]], False, [11, 21], id="abstaining leaves it to the next tier"),
        pytest.param([[-7]], False, [11], id="any negative number rejects"),
    ],
)
def test_vote(answers: Answers, wanted: bool, asked: list[int]) -> None:
    check(combine.vote, answers, wanted, asked)


@pytest.mark.parametrize(
    ("answers", "wanted", "asked"),
    [
        pytest.param([], False, [], id="nobody means no"),
        pytest.param([[], []], False, [], id="empty tiers mean no"),
        pytest.param([[True, True], [False]], True, [11, 12], id="later tiers are not asked"),
        pytest.param([[True, False, True], [True]], False, [11, 12], id="one against, and it is no"),
        pytest.param([[], [True]], True, [21], id="a tier without hooks is passed over"),
    ],
)
def test_first_tier_agrees(answers: Answers, wanted: bool, asked: list[int]) -> None:
    check(combine.first_tier_agrees, answers, wanted, asked)


@pytest.mark.parametrize(
    ("answers", "wanted", "asked"),
    [
        pytest.param([], [], [], id="nobody"),
        pytest.param([[("ab", YES)]], ["a", "b"], [11], id="one"),
        pytest.param([[("cab", YES), ("abx", YES)]], ["a", "b"], [11, 12], id="in the order of the first"),
        pytest.param([[("ab", YES), ("", ABSTAIN)]], ["a", "b"], [11, 12], id="an abstaining one is passed over"),
        pytest.param([[("ab", YES), ("a", ABSTAIN)]], ["a", "b"], [11, 12], id="whatever it names"),
        pytest.param([[("", ABSTAIN)], [("b", YES)]], ["b"], [11, 21], id="all abstain: the next tier"),
        pytest.param([[("a", YES)], [("b", YES)]], ["a"], [11], id="the first tier with victims decides"),
        pytest.param([[("ab", YES), ("", YES), ("a", YES)]], [], [11, 12], id="an empty list ends its tier"),
        pytest.param([[("ab", YES), ("", NO)], [("b", YES)]], ["b"], [11, 12, 21], id="but is no veto on later tiers"),
        pytest.param([[("a", NO)]], ["a"], [11], id="a reject that names victims counts as naming them"),
        pytest.param([[("a", YES), ("b", YES), ("xy", YES)]], ["x", "y"], [11, 12, 13], id="nothing in common: afresh"),
        pytest.param([[("a", YES), ("b", YES)], [("z", YES)]], ["z"], [11, 12, 21], id="nothing in common: next tier"),
    ],
)
def test_intersect(answers: Answers, wanted: list[str], asked: list[int]) -> None:
    check(combine.intersect, answers, wanted, asked, "preemptor", ["a", "b", "c", "x", "y", "z"])


def test_each_hook_of_an_intersection_sees_all_candidates_and_the_rest() -> None:
    seen = []

    def hook(*args: Any) -> tuple[list[str], Vote]:
        seen.append(args)
        return ["a"], YES

    named = ["a"]
    found = combine.intersect([[hook, hook]], "preemptor", ["a", "b"], "more")
    assert seen == [("preemptor", ["a", "b"], "more")] * 2
    assert combine.intersect([[lambda *_: (named, YES)]], "preemptor", ["a"]) is not named, "a plugin's list is its own"
    assert found == ["a"]


@pytest.mark.parametrize(
    ("answers", "wanted", "asked"),
    [
        pytest.param([], [], [], id="nobody"),
        pytest.param([["ba", "cb"]], ["b", "a", "c"], [11, 12], id="everybody's, once each, in order of naming"),
        pytest.param([["", "a"], ["b"]], ["a"], [11, 12], id="the first tier that names any"),
        pytest.param([["", ""], ["b"], ["c"]], ["b"], [11, 12, 21], id="an empty tier is passed over"),
    ],
)
def test_union(answers: Answers, wanted: list[str], asked: list[int]) -> None:
    check(combine.union, answers, wanted, asked, ["a", "b", "c"])


@pytest.mark.parametrize(
    ("answers", "all_of", "any_of"),
    [
        pytest.param([], (True, []), (False, []), id="nobody"),
        pytest.param([[True], [True]], (True, [11, 21]), (True, [11]), id="all for it"),
        pytest.param([[True], [False], [True]], (False, [11, 21]), (True, [11]), id="a later tier is asked too"),
        pytest.param([[False, True]], (False, [11]), (True, [11, 12]), id="first against"),
        pytest.param([[False], [False]], (False, [11]), (False, [11, 21]), id="all against"),
    ],
)
def test_all_of_and_any_of(answers: Answers, all_of: tuple[bool, list[int]], any_of: tuple[bool, list[int]]) -> None:
    check(combine.all_of, answers, *all_of)
    check(combine.any_of, answers, *any_of)


@pytest.mark.parametrize(
    ("answers", "wanted", "asked"),
    [
        pytest.param([], 0, [], id="nobody"),
        pytest.param([[True], [True]], 0, [11, 21], id="all agree"),
        pytest.param([[True, False]], 1, [11, 12], id="no, without saying by how many"),
        pytest.param([[2], [5, 3]], 5, [11, 21, 22], id="the most of all tiers"),
        pytest.param([[False], [4]], 4, [11, 21], id="a number says more than a no"),
        pytest.param([[-3], [True]], 0, [11, 21], id="more than enough is enough"),
        pytest.param([[0]], 0, [11], id="nothing missing"),
        pytest.param([[np.True_], [np.False_]], 1, [11, 21], id="truth of an array is truth"),
    ],
)
def test_most_missing(answers: Answers, wanted: int, asked: list[int]) -> None:
    hooks = Asked(answers)
    assert (combine.most_missing(hooks.tiers, "job"), hooks.order) == (wanted, asked)


@pytest.mark.parametrize(
    ("answers", "wanted", "asked"),
    [
        pytest.param([], None, [], id="nobody"),
        pytest.param([[None], [None]], None, [11, 21], id="nothing against it"),
        pytest.param([[None, "late", "later"], ["last"]], "late", [11, 12], id="the first reason ends it"),
        pytest.param([[None], [0]], 0, [11, 21], id="a false answer is an answer: node 0"),
    ],
)
def test_first_failure_and_first_answer(answers: Answers, wanted: Any, asked: list[int]) -> None:
    check(combine.first_failure, answers, wanted, asked)
    check(combine.first_answer, answers, wanted, asked)


@pytest.mark.parametrize(
    ("answers", "wanted", "asked"),
    [
        pytest.param([], None, [], id="nobody"),
        pytest.param([[], ["a", "b"], ["c"]], "a", [21], id="the first there is"),
        pytest.param([[None, "b"]], None, [11], id="even if it has nothing to say"),
    ],
)
def test_first_registered(answers: Answers, wanted: Any, asked: list[int]) -> None:
    check(combine.first_registered, answers, wanted, asked)


@pytest.mark.parametrize(
    ("answers", "wanted", "asked"),
    [
        pytest.param([], {}, [], id="nobody"),
        pytest.param([[None, {}]], {}, [11, 12], id="nothing to add"),
        pytest.param([[{"a": 1}, None], [{"b": 2}]], {"a": 1, "b": 2}, [11, 12, 21], id="of all tiers"),
        pytest.param([[{"a": 1}, {"a": 2, "b": 2}], [{"b": 3}]], {"a": 1, "b": 2}, [11, 12, 21], id="first key wins"),
        pytest.param([[{"a": None}], [{"a": 2}]], {"a": None}, [11, 21], id="also with nothing under it"),
    ],
)
def test_merge(answers: Answers, wanted: dict[str, Any], asked: list[int]) -> None:
    check(combine.merge, answers, wanted, asked)


def test_merge_leaves_the_mappings_of_plugins_alone() -> None:
    first, second = {"a": 1}, {"b": 2}
    combine.merge([[lambda: first], [lambda: second]])
    assert (first, second) == ({"a": 1}, {"b": 2})


@pytest.mark.parametrize(
    ("answers", "wanted", "asked"),
    [
        pytest.param([], 0.0, [], id="nobody"),
        pytest.param([[1, 2.5], [-0.5]], 3.0, [11, 12, 21], id="over all tiers"),
        pytest.param([[None], [2]], 2.0, [11, 21], id="None counts as nothing"),
    ],
)
def test_total(answers: Answers, wanted: float, asked: list[int]) -> None:
    check(combine.total, answers, wanted, asked)


@pytest.mark.parametrize(
    ("answers", "wanted", "asked"),
    [
        pytest.param([], None, [], id="nobody"),
        pytest.param([[None], [None]], None, [11, 21], id="no refusal"),
        pytest.param([[None, "no"], ["nor I", None]], "no", [11, 12, 21, 22], id="all are told, the first counts"),
    ],
)
def test_notify(answers: Answers, wanted: Any, asked: list[int]) -> None:
    check(combine.notify, answers, wanted, asked)


@pytest.mark.parametrize(
    "combinator",
    [
        combine.first_nonzero,
        combine.vote,
        combine.first_tier_agrees,
        combine.union,
        combine.all_of,
        combine.any_of,
        combine.most_missing,
        combine.first_failure,
        combine.first_registered,
        combine.merge,
        combine.total,
        combine.notify,
    ],
    ids=lambda combinator: combinator.__name__,
)
def test_the_question_is_handed_on_as_it_is(combinator: Callable[..., Any]) -> None:
    seen = []

    def hook(*args: Any) -> Any:
        seen.append(args)

    hooks = {combine.vote: lambda *args: hook(*args) or 0, combine.union: lambda *args: hook(*args) or ""}
    hooks[combine.most_missing] = hooks[combine.vote]
    combinator([[hooks.get(combinator, hook)]], "left", "right")
    assert seen == [("left", "right")]
