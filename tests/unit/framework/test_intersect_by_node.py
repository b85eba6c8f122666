"""The rule of tiers for victims, node by node: as for each node alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.columns.dtypes import Bool
from pumice.columns.rows import Candidates
from pumice.framework.plugin import combine
from pumice.framework.plugin.combine import Named
from pumice.framework.plugin.errors import WrongAnswer


def candidates(lengths: list[int]) -> Candidates:
    rows: Any = np.arange(sum(lengths))
    return Candidates(None, rows, np.array([0, *np.cumsum(lengths)]))  # type: ignore[arg-type]  # only rows are looked at


@st.composite
def questions(draw: st.DrawFn) -> tuple[list[int], list[list[list[list[bool] | None]]]]:
    """How many candidates each node has; by tier and hook, by node: a mask, or None without an opinion."""
    lengths = draw(st.lists(st.integers(0, 4), min_size=1, max_size=5))
    answers = [
        [
            [draw(st.none() | st.lists(st.booleans(), min_size=n, max_size=n)) for n in lengths]
            for _ in range(draw(st.integers(1, 3)))
        ]
        for _ in range(draw(st.integers(0, 3)))
    ]
    return lengths, answers


def of_all(each: list[list[bool] | None], lengths: list[int]) -> Callable[..., Bool | Named | None]:
    if all(answer is None for answer in each):
        return lambda *_: None
    mask = [flag for answer, n in zip(each, lengths, strict=True) for flag in (answer or [False] * n)]
    speaks = np.array([answer is not None for answer in each])
    victims = np.array(mask, dtype=bool)
    return lambda *_: victims if speaks.all() else Named(victims, speaks)


def of_one(answer: list[bool] | None) -> Callable[..., Bool | None]:
    return lambda *_: None if answer is None else np.array(answer, dtype=bool)


@given(question=questions())
def test_every_node_is_decided_as_if_it_were_alone(question: tuple[list[int], list[Any]]) -> None:
    lengths, answers = question
    if len(lengths) == 1:
        return
    together = [[of_all(hook, lengths) for hook in tier] for tier in answers]
    found = combine.intersect_by_node(together, None, candidates(lengths))
    wanted = [
        flag
        for node, length in enumerate(lengths)
        for flag in combine.intersect(
            [[of_one(hook[node]) for hook in tier] for tier in answers], None, np.arange(length)
        ).tolist()
    ]
    assert found.tolist() == wanted


def test_an_answer_that_is_no_mask_is_refused() -> None:
    with pytest.raises(WrongAnswer, match="wanted None or a mask over 3 tasks"):
        combine.intersect_by_node([[lambda *_: np.ones(2, dtype=bool)]], None, candidates([1, 2]))
