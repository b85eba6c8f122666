"""How answers of several plugins become one: for every way a table of tiers, what is answered and who was asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pumice.columns.dtypes import Bool
from pumice.columns.rows import Candidates
from pumice.framework.plugin import combine
from pumice.framework.plugin.combine import Vote
from pumice.framework.plugin.errors import WrongAnswer
from pumice.framework.plugin.filter_result import FilterResult, Invalid, Unfit
from pumice.model.decisions import Refusal
from pumice.testing.build import cluster, session

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
        pytest.param([], None, [], id="nobody"),
        pytest.param([[ABSTAIN], [YES]], None, [11, 21], id="yes"),
        pytest.param([[ABSTAIN, NO, YES]], "", [11, 12], id="no, without a text"),
        pytest.param([[ABSTAIN, "too much", NO]], "too much", [11, 12], id="no, with a text"),
        pytest.param([[YES, "too much"]], "too much", [11, 12], id="a permit waits for its tier"),
        pytest.param([[YES], ["too much"]], None, [11], id="a permit ends it after its tier"),
        pytest.param([[""]], "", [11], id="an empty text is a no"),
    ],
)
def test_rejection(answers: Answers, wanted: str | None, asked: list[int]) -> None:
    check(combine.rejection, answers, wanted, asked)


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


CANDIDATES = "abcxyz"


def mask(names: str) -> Bool:
    """The candidates that a word names, by letter."""
    return np.array([name in names for name in CANDIDATES], dtype=bool)


def named(answer: Bool) -> str:
    return "".join(name for name, chosen in zip(CANDIDATES, answer.tolist(), strict=True) if chosen)


@pytest.mark.parametrize(
    ("answers", "wanted", "asked"),
    [
        pytest.param([], "", [], id="nobody"),
        pytest.param([["ab"]], "ab", [11], id="one"),
        pytest.param([["cab", "abx"]], "ab", [11, 12], id="what all of a tier name"),
        pytest.param([["ab", None]], "ab", [11, 12], id="who abstains is passed over"),
        pytest.param([[None], ["b"]], "b", [11, 21], id="all abstain: the next tier"),
        pytest.param([["a"], ["b"]], "a", [11], id="the first tier with victims decides"),
        pytest.param([["ab", "", "a"]], "", [11, 12], id="a mask without anybody ends its tier"),
        pytest.param([["ab", ""], ["b"]], "b", [11, 12, 21], id="but is no veto on later tiers"),
        pytest.param([["a", "b", "xy"]], "xy", [11, 12, 13], id="nothing in common: afresh"),
        pytest.param([["a", "b"], ["z"]], "z", [11, 12, 21], id="nothing in common: next tier"),
    ],
)
def test_intersect(answers: Answers, wanted: str, asked: list[int]) -> None:
    hooks = Asked([[None if each is None else mask(each) for each in tier] for tier in answers])
    found = combine.intersect(hooks.tiers, "preemptor", CANDIDATES)
    assert (named(found), found.dtype, hooks.order) == (wanted, np.bool_, asked)


@pytest.mark.parametrize(
    ("answers", "wanted", "asked"),
    [
        pytest.param([], "", [], id="nobody"),
        pytest.param([["cab", None, "abx"]], "ab", [11, 12, 13], id="what all of a tier name"),
        pytest.param([["ab", ""], ["b"]], "b", [11, 12, 21], id="a mask without anybody ends its tier"),
        pytest.param([["a", "b", "xy"]], "", [11, 12], id="nothing in common ends it too: no vote is lost"),
        pytest.param([["a", "b", "xy"], ["z"]], "z", [11, 12, 21], id="but is no veto on later tiers"),
    ],
)
def test_agree(answers: Answers, wanted: str, asked: list[int]) -> None:
    hooks = Asked([[None if each is None else mask(each) for each in tier] for tier in answers])
    found = combine.agree(hooks.tiers, "preemptor", CANDIDATES)
    assert (named(found), found.dtype, hooks.order) == (wanted, np.bool_, asked)


@pytest.mark.parametrize(
    ("by_node", "alone"),
    [
        pytest.param(combine.intersect_by_node, combine.intersect, id="afresh"),
        pytest.param(combine.agree_by_node, combine.agree, id="no vote is lost"),
    ],
)
def test_nodes_are_asked_about_together_as_each_would_be_alone(by_node: Any, alone: Any) -> None:
    """Over two tiers of up to three hooks, which abstain, name no task of a node, or have nothing in common there."""
    tables = session(cluster()).tables
    for seed in range(300):
        dice = np.random.default_rng(seed)
        sizes = dice.integers(0, 4, size=4)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        masks = [[_drawn(dice, int(starts[-1])) for _ in range(dice.integers(0, 4))] for _ in range(2)]
        together = Candidates(tables, np.arange(starts[-1]), starts)
        found = by_node([[lambda *_, m=m: m for m in tier] for tier in masks], "preemptor", together)
        for at in range(4):
            part = slice(int(starts[at]), int(starts[at + 1]))
            hooks = [[lambda *_, m=m, part=part: m if m is None else m[part] for m in tier] for tier in masks]
            assert found[part].tolist() == alone(hooks, "preemptor", range(sizes[at])).tolist()


def _drawn(dice: np.random.Generator, size: int) -> Bool | None:
    return None if dice.random() < 0.2 else dice.random(size) < 0.5


def test_each_hook_of_an_intersection_sees_all_candidates() -> None:
    seen = []
    own = mask("ab")

    def hook(*args: Any) -> Bool:
        seen.append(args)
        return own

    found = combine.intersect([[hook, lambda *_: mask("a")]], "preemptor", CANDIDATES)
    assert seen == [("preemptor", CANDIDATES)]
    assert (named(found), named(own)) == ("a", "ab"), "a plugin's mask is its own"


@pytest.mark.parametrize(
    ("answers", "wanted", "asked"),
    [
        pytest.param([], "", [], id="nobody"),
        pytest.param([["ba", "cb"]], "abc", [11, 12], id="everybody's"),
        pytest.param([["", "a"], ["b"]], "a", [11, 12], id="the first tier that names any"),
        pytest.param([["", ""], ["b"], ["c"]], "b", [11, 12, 21], id="an empty tier is passed over"),
    ],
)
def test_union(answers: Answers, wanted: str, asked: list[int]) -> None:
    hooks = Asked([[mask(each) for each in tier] for tier in answers])
    found = combine.union(hooks.tiers, CANDIDATES)
    assert (named(found), found.dtype, hooks.order) == (wanted, np.bool_, asked)


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


LATE, LATER, NEVER = Unfit("late"), Unfit("later"), Invalid("Never", "it never will")


@pytest.mark.parametrize(
    ("answers", "wanted", "asked"),
    [
        pytest.param([], None, [], id="nobody"),
        pytest.param([[None], [None]], None, [11, 21], id="nothing against it"),
        pytest.param([[None, LATE, LATER], [LATER]], LATE, [11, 12], id="the first reason ends it"),
        pytest.param([[None], [LATER]], LATER, [11, 21], id="in a later tier"),
    ],
)
def test_first_unfit(answers: Answers, wanted: Any, asked: list[int]) -> None:
    check(combine.first_unfit, answers, wanted, asked)


@pytest.mark.parametrize(
    ("answers", "wanted", "asked"),
    [
        pytest.param([], None, [], id="no hook"),
        pytest.param([[None], [None]], None, [11, 21], id="no answer"),
        pytest.param([[None, 1, 2], [0]], 1, [11, 12], id="the first there is"),
        pytest.param([[None], [0]], 0, [11, 21], id="a false answer is an answer: node 0"),
    ],
)
def test_first_row(answers: Answers, wanted: Any, asked: list[int]) -> None:
    check(
        lambda tiers, *_: combine.first_row(tiers, "task", SimpleNamespace(rows=[0, 1]), "scores"),
        answers,
        wanted,
        asked,
    )


@pytest.mark.parametrize("row", [-1, 2, 1.0, "x"])
def test_a_row_that_was_not_asked_about_is_no_answer(row: Any) -> None:
    with pytest.raises(WrongAnswer, match="wanted None or one of the rows asked about"):
        nodes: Any = SimpleNamespace(rows=[0, 1])
        combine.first_row([[lambda *_: row]], "task", nodes, np.zeros(2))


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
        pytest.param([[[1.0, 2.0]], [3]], [4.0, 5.0], [11, 21], id="a number is that of every row"),
        pytest.param([[[1.0, 2.0], [0.5, -2.0]]], [1.5, 0.0], [11, 12], id="row by row"),
    ],
)
def test_total(answers: Answers, wanted: Any, asked: list[int]) -> None:
    hooks = Asked([[np.array(each) if isinstance(each, list) else each for each in tier] for tier in answers])
    found = combine.total(hooks.tiers, "class", ["n0", "n1"])
    assert (found.tolist() if isinstance(found, np.ndarray) else found, hooks.order) == (wanted, asked)


def test_a_finite_total_is_the_same_number() -> None:
    tiers = [[lambda *_: np.array([1.0, 2.0]), lambda *_: None], [lambda *_: 0.5]]
    found = combine.finite_total(tiers, *TWO)
    assert np.array_equal(found, combine.total(tiers, *TWO)) and np.array_equal(found, [1.5, 2.5])


def test_a_total_goes_on_from_its_start() -> None:
    """One term after the other, from left to right: equal scores stay equal to the last bit."""
    start, own = np.array([0.1, 0.2]), np.array([0.3, 0.1])
    found = combine.total([[lambda *_: 0.2, lambda *_: own]], "task", ["n0", "n1"], start)
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [(0.1 + 0.2) + 0.3, (0.2 + 0.2) + 0.1]
    assert (start.tolist(), own.tolist()) == ([0.1, 0.2], [0.3, 0.1]), "nobody's array is written on"


REFUSED, TOO = Refusal("no"), Refusal("nor I")


@pytest.mark.parametrize(
    ("answers", "wanted", "asked"),
    [
        pytest.param([], None, [], id="nobody"),
        pytest.param([[None], [None]], None, [11, 21], id="no refusal"),
        pytest.param([[None, REFUSED], [TOO, None]], REFUSED, [11, 12, 21, 22], id="all are told, the first counts"),
    ],
)
def test_notify(answers: Answers, wanted: Any, asked: list[int]) -> None:
    check(combine.notify, answers, wanted, asked)


@pytest.mark.parametrize(
    ("answers", "wanted", "asked"),
    [
        pytest.param([], [], [], id="nobody"),
        pytest.param([["a", None], ["b"]], ["a", None, "b"], [11, 12, 21], id="all of them, in order"),
    ],
)
def test_each(answers: Answers, wanted: list[Any], asked: list[int]) -> None:
    check(combine.each, answers, wanted, asked)


NO_GPU = FilterResult.of(np.array([True, False]), Unfit("no gpu"))
CORDONED = FilterResult.of(np.array([False, True]), Unfit("cordoned"))


@pytest.mark.parametrize(
    ("answers", "wanted"),
    [
        pytest.param([], [], id="nobody"),
        pytest.param([[NO_GPU, CORDONED]], [NO_GPU, CORDONED], id="each one's, in order"),
        pytest.param([[NO_GPU], [CORDONED]], [NO_GPU, CORDONED], id="over all tiers"),
        pytest.param([[None, CORDONED], [None]], [CORDONED], id="less those who have nothing to say"),
    ],
)
def test_verdicts(answers: Answers, wanted: list[FilterResult]) -> None:
    hooks = Asked(answers)
    found = combine.filter_results(hooks.tiers, "task", ["n0", "n1"])
    assert [id(each) for each in found] == [id(each) for each in wanted]
    assert len(hooks.order) == sum(len(tier) for tier in answers), "everybody is asked"


def test_keys_are_a_column_a_hook() -> None:
    columns = [np.array([2, 1]), np.array([0.5, np.inf]), np.array([True, False])]
    hooks = Asked([columns[:2], columns[2:]])
    assert [id(each) for each in combine.keys(hooks.tiers, ["j0", "j1"])] == [id(each) for each in columns]


@pytest.mark.parametrize(
    "combinator",
    [
        combine.first_nonzero,
        combine.vote,
        combine.rejection,
        combine.first_tier_agrees,
        combine.all_of,
        combine.any_of,
        combine.most_missing,
        combine.first_unfit,
        combine.first_invalid,
        combine.first_registered,
        combine.merge,
        combine.each,
        combine.filter_results,
        combine.total,
        combine.intersect,
        combine.notify,
    ],
    ids=lambda combinator: combinator.__name__,
)
def test_the_question_is_handed_on_as_it_is(combinator: Callable[..., Any]) -> None:
    seen = []
    numbers = (
        *(combine.first_nonzero, combine.vote, combine.rejection, combine.most_missing),
        *(combine.first_tier_agrees, combine.all_of, combine.any_of),
    )

    def hook(*args: Any) -> Any:
        seen.append(args)
        return 0 if combinator in numbers else None

    combinator([[hook]], "left", "right")
    assert seen == [("left", "right")]


# -- answers that cannot be used

NAN, INF = float("nan"), float("inf")
NOBODY_IN_TWO, ALL_OF_THREE = np.zeros(2, dtype=bool), np.ones(3, dtype=bool)
TWO = ("subject", ["n0", "n1"])


@pytest.mark.parametrize(
    ("combinator", "args", "answer", "wanted"),
    [
        pytest.param(combine.first_nonzero, ("a", "b"), "left", "a whole number", id="a text for a comparison"),
        pytest.param(combine.first_nonzero, ("a", "b"), None, "a whole number", id="no answer to a comparison"),
        pytest.param(combine.vote, ("job",), None, "a Vote", id="no vote"),
        pytest.param(combine.rejection, ("job",), [], "a Vote", id="a list for a vote"),
        pytest.param(combine.intersect, TWO, [True, False], "None or a mask over 2 tasks", id="a list for a mask"),
        pytest.param(
            combine.intersect, TWO, ALL_OF_THREE, "None or a mask over 2 tasks", id="a mask of another length"
        ),
        pytest.param(combine.intersect, TWO, np.array([0, 1]), "None or a mask over 2 tasks", id="rows for a mask"),
        pytest.param(combine.union, TWO[1:], None, "a mask over 2 tasks", id="no mask"),
        pytest.param(combine.most_missing, ("job",), None, "True, False or a whole number", id="no count"),
        pytest.param(combine.first_unfit, ("task",), False, "None or an Unfit", id="False for a reason"),
        pytest.param(combine.first_unfit, ("task",), NEVER, "None or an Unfit", id="a job's reason for a task's"),
        pytest.param(combine.first_invalid, ("job",), "late", "None or an Invalid", id="a text for a reason"),
        pytest.param(combine.first_invalid, ("job",), LATE, "None or an Invalid", id="a task's reason for a job's"),
        pytest.param(combine.filter_results, TWO, False, "a FilterResult about 2 rows", id="False for a filter_result"),
        pytest.param(
            combine.filter_results, TWO, NOBODY_IN_TWO, "a FilterResult about 2 rows", id="a mask for a filter_result"
        ),
        pytest.param(
            combine.filter_results,
            TWO,
            FilterResult.of(ALL_OF_THREE, Unfit("no")),
            "a FilterResult about 2 rows",
            id="a filter_result about others",
        ),
        pytest.param(combine.total, TWO, np.zeros(3), "one number for each of 2 rows", id="scores of others"),
        pytest.param(
            combine.total, TWO, np.zeros((2, 1)), "one number for each of 2 rows", id="scores of another shape"
        ),
        pytest.param(combine.total, TWO, "high", "an array, a finite number or None", id="a text for a score"),
        pytest.param(combine.finite_total, TWO, np.array([1.0, NAN]), "finite numbers", id="a score that is no number"),
        pytest.param(combine.finite_total, TWO, np.array([INF, 1.0]), "finite numbers", id="an infinite score"),
        pytest.param(combine.finite_total, TWO, NAN, "finite numbers", id="one score for all that is no number"),
        pytest.param(combine.keys, TWO[1:], [1, 2], "one key for each of 2 rows", id="a list for keys"),
        pytest.param(combine.keys, TWO[1:], np.zeros(3), "one key for each of 2 rows", id="keys of others"),
        pytest.param(
            combine.keys, TWO[1:], np.array([1.0, NAN]), "keys that are numbers", id="a key that is no number"
        ),
        pytest.param(combine.notify, ("run",), "no", "None or a Refusal", id="a text for a refusal"),
        pytest.param(combine.notify, ("run",), False, "None or a Refusal", id="False for a refusal"),
    ],
)
def test_an_answer_of_the_wrong_kind_says_whose_it_was_and_what_was_wanted(
    combinator: Callable[..., Any], args: tuple[Any, ...], answer: Any, wanted: str
) -> None:
    hooks = Asked([[answer]])
    with pytest.raises(WrongAnswer) as raised:
        combinator(hooks.tiers, *args)
    assert raised.value.hook is hooks.tiers[0][0]
    assert str(raised.value).endswith(f", wanted {wanted}")
    assert str(raised.value).startswith("answered ")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("culprit", [0, 1, 2])
def test_of_several_scores_the_one_that_is_no_number_is_named(culprit: int) -> None:
    hooks = Asked([[np.array([1.0, NAN if i == culprit else 2.0]) for i in range(3)]])
    with pytest.raises(WrongAnswer) as raised:
        combine.finite_total(hooks.tiers, *TWO)
    assert raised.value.hook is hooks.tiers[0][culprit]
