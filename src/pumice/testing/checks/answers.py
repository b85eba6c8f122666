"""Answers of hooks as values that can be compared, and checks whether they can be used."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from pumice.algorithms.queue_order import QueueKey
from pumice.columns.counting import Row
from pumice.columns.job_rows import JobRows
from pumice.columns.rows import NodeRows, TaskRows
from pumice.framework.cycle.session import Session
from pumice.framework.plugin import combine
from pumice.framework.plugin.errors import WrongAnswer
from pumice.framework.plugin.filter_result import FilterResult, Unfit
from pumice.framework.plugin.hooks import Hook, Hooks
from pumice.kai.engine.groups import Subset
from pumice.testing.checks.breach import Breach
from pumice.testing.checks.questions import Names, Question, about_task, about_tasks_in_turn, hooks_of

Answers = dict[Question, Hashable]

_NUMBERS = (bool, int, float, np.bool_, np.number)
_YES_OR_NO = (combine.all_of, combine.any_of, combine.first_tier_agrees)


class Asking:
    """Puts questions to the hooks of some plugins in one session."""

    def __init__(self, ssn: Session, plugins: Sequence[str]) -> None:
        self.ssn, self.names = ssn, Names(ssn.tables)
        hooks = hooks_of(ssn, plugins)
        self.hooks = {key: about_task(hook) for key, hook in hooks.items()}
        #: Those that answer for a class what to ask about its tasks, as hooks about tasks placed one after the other.
        self.in_turn = {key: each for key, hook in hooks.items() if (each := about_tasks_in_turn(hook)) is not None}
        self._arguments: dict[Question, list[Any] | None] = {}

    def hook(self, question: Question) -> Hook | None:
        return self.hooks.get((question.plugin, question.point, question.hook))

    def arguments(self, question: Question) -> list[Any] | None:
        """Return the arguments of a hook, None if the plugin has no such hook here, or something no longer exists."""
        if question not in self._arguments:
            self._arguments[question] = self._find_arguments(question)
        return self._arguments[question]

    def _find_arguments(self, question: Question) -> list[Any] | None:
        if self.hook(question) is None:
            return None
        try:
            return [self.names.argument(subject) for subject in question.subjects]
        except KeyError:
            return None

    def ask(self, question: Question, *, use: bool = False) -> Hashable:
        """Return the answer as a value, None if it cannot be asked here. ``use``: it must be usable.

        Raises: Breach if the hook raises.
        """
        arguments = self.arguments(question)
        hook = self.hook(question)
        if hook is None or arguments is None:
            return None
        return said(self.call(hook, question, arguments, use=use))

    def is_silent(self, question: Question) -> bool:
        """Return True if the hook does not distinguish nodes: it answers None or one number. Raises: Breach."""
        hook, arguments = self.hook(question), self.arguments(question)
        if hook is None or arguments is None:
            return False
        return isinstance(self.call(hook, question, arguments), int | float | None)

    def call(self, hook: Hook, question: Question, arguments: Sequence[Any], *, use: bool = False) -> Any:
        """Return the answer itself. Raises: Breach."""
        try:
            answer = hook.call(*arguments)
            if use:
                _use(hook, arguments, answer)
        except WrongAnswer as error:
            raise Breach(
                "answer", question.plugin, question.where, str(error), [("asked", question.text)], _USABLE
            ) from None
        except Exception as error:
            fault = self.ssn.hooks.blame(error, hook.point)
            raised = f"raised {type(error).__name__}: {error}"
            facts = [("asked", question.text), ("at", getattr(fault, "where", "?"))]
            raise Breach("raises", question.plugin, question.where, raised, facts, _RAISES) from error
        return answer

    def all(self, questions: Sequence[Question], *, use: bool = False) -> Answers:
        """Return answers to all questions that can be asked here."""
        return {q: self.ask(q, use=use) for q in questions if self.arguments(q) is not None}


_USABLE = "Answer what the point takes: docs/points.md."
_RAISES = "In a cycle the job that was asked about is skipped for this. Answer, or say that there is nothing to say."


def said(answer: Any) -> Hashable:
    """Return an answer as a value: equal values are equal answers, to the last bit. A filter result that rejects no row
    is None."""
    match answer:
        case FilterResult():
            against = tuple(answer.why[code] or None for code in answer.codes.tolist())
            return against if any(against) else None
        case Subset():
            return said(answer.nodes), said(answer.score)
        case np.ndarray():
            return tuple(said(each) if isinstance(each, list) else each for each in _bits(answer.tolist()))
        case Row():
            return repr(answer)
        case Mapping():
            return tuple(sorted((str(key), said(value)) for key, value in answer.items()))
        case list() | tuple():
            return tuple(said(each) for each in answer)
        case np.generic():
            return said(answer.item())
        case float():
            return "nan" if math.isnan(answer) else answer
        case _ if isinstance(answer, Hashable):
            return answer
    return repr(answer)


def _bits(values: list[Any]) -> list[Any]:
    return ["nan" if isinstance(value, float) and math.isnan(value) else value for value in values]


def by_row(answer: Hashable, count: int) -> tuple[Hashable, ...] | None:
    """Return an answer about rows as one value per row, None if it is not one. One number, or None, holds for each
    row."""
    if isinstance(answer, tuple) and len(answer) == count:
        return answer
    return (answer,) * count if answer is None or isinstance(answer, int | float) else None


#: Points whose answer for one row does not depend on others.
_SINGLE_ROWS = ("predicate", "node_order", "job_order", "task_order")


def is_by_row(hook: Hook) -> bool:
    """Return True if a hook answers for each of its rows alone: filters and scores of single nodes, keys, and answers
    about a class, because they are kept node by node."""
    over_rows = hook.form in ("class", "task", "key")
    return over_rows and (
        hook.point.name in _SINGLE_ROWS or (hook.form == "class" and hook.point.name == "batch_node_order")
    )


def rows_at(arguments: Sequence[Any]) -> int:
    """Return the index of the argument with rows, -1 for none."""
    return next((i for i, each in enumerate(arguments) if isinstance(each, NodeRows | JobRows | TaskRows)), -1)


# -- use ---------------------------------------------------------------------------------------------------------------


def _use(hook: Hook, arguments: Sequence[Any], answer: Any) -> None:
    """Use an answer as its point does. Raises: WrongAnswer."""
    combinator, form = hook.point.combinator, hook.form
    if form in ("class_node", "task_node"):
        _check(hook, answer, _of_one_node(hook.point.name))
    elif form == "key" and rows_at(arguments) >= 0:
        combine.keys([[lambda *_: answer]], *arguments)
    elif form == "key" and isinstance(answer, QueueKey):
        # A share without a limit is infinite.
        _check(
            hook,
            answer,
            Requirement("a QueueKey of numbers", lambda _: not math.isnan(sum((*answer.key, *answer.share)))),
        )
    elif form == "key":
        each = answer if isinstance(answer, tuple) else (answer,)
        _check(hook, answer, Requirement("a number, or a tuple of numbers", lambda _: all(map(_is_finite, each))))
    elif combinator is combine.each:
        alone = form in ("task_node", "counts")
        _check(hook, answer, _NUMBER if alone else _an_array(rows_of(arguments)))
    elif combinator in _YES_OR_NO:
        _check(hook, answer, Requirement("True or False", lambda found: isinstance(found, bool | np.bool_)))
    elif combinator is combine.fewest and form == "task":
        _check(
            hook,
            answer,
            Requirement("True, False or an Unfit", lambda found: isinstance(found, bool | np.bool_ | Unfit)),
        )
    elif combinator is combine.intersect_by_node:
        combine.intersect([[lambda *_: answer]], *arguments)
    elif hook.point.name == "best_node":
        rows = rows_of(arguments).rows.tolist()
        _check(
            hook, answer, Requirement(f"None or one of the rows {rows}", lambda found: found is None or found in rows)
        )
    else:
        combinator([[lambda *_: answer]], *arguments)


def rows_of(arguments: Sequence[Any]) -> Any:
    return arguments[rows_at(arguments)]


class Requirement(Struct, frozen=True):
    text: str
    holds: Callable[[Any], bool]


def _check(hook: Hook, answer: Any, wanted: Requirement) -> None:
    if not wanted.holds(answer):
        raise WrongAnswer(hook.call, answer, wanted.text)


def _is_finite(value: Any) -> bool:
    return isinstance(value, _NUMBERS) and bool(np.isfinite(value))


_NUMBER = Requirement("a finite number", _is_finite)


def _of_one_node(point: str) -> Requirement:
    if point == "predicate":
        return Requirement("None or an Unfit", lambda found: found is None or isinstance(found, Unfit))
    return _NUMBER


def _an_array(rows: Any) -> Requirement:
    return Requirement(
        f"one number for each of {len(rows)} rows",
        lambda found: isinstance(found, np.ndarray) and found.shape == (len(rows),) and bool(np.isfinite(found).all()),
    )


__all__ = ["Answers", "Asking", "Hooks", "by_row", "is_by_row", "rows_at", "rows_of", "said"]
