"""What a hook about one task says of several that are placed one after the other, without asking it each time.

A hook that looks at where others are, a term about pods for instance, answers something else once a task is placed; but
what changes then is little, and the plugin knows what. So it may name a method (``several=``) that takes TaskRows in
the place of Task and gives an object which follows: it is told of each placement and says what holds by then. Nothing
is booked in between. kube-scheduler has the same for its own filters (PreFilterExtensions, AddPod).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_
from typing import Any

import numpy as np

from pumice.columns.dtypes import F64, AnyArray, Bool
from pumice.columns.rows import NodeRows, TaskRows
from pumice.columns.views import Task
from pumice.framework.plugin.errors import WrongAnswer

Hook = Callable[..., Any]


class InTurn:
    """Follows tasks of one class as they are placed. ``count``: so many of them, from the first one on; the others have
    to be asked about anew."""

    count: int

    def placed(self, turn: int, place: int) -> bool:
        """The task of a turn went to a node: its position among those that were asked about. Whether something else may
        hold for the next task than what was said of this one."""
        raise NotImplementedError


class FilterInTurn(InTurn):
    """What a filter says."""

    def open_to(self, turn: int) -> Bool:
        """To which nodes it does not object for the task of a turn, once all before it are placed. Shape (rows,). Not
        to be written on."""
        raise NotImplementedError


class ScoreInTurn(InTurn):
    """What a score says."""

    def score(self, turn: int, places: AnyArray) -> F64:
        """How good the candidates (positions) are for the task of a turn, once all before it are placed. Shape
        (candidates,)."""
        raise NotImplementedError


class Filters(FilterInTurn):
    """Several filters of one plugin as one."""

    def __init__(self, parts: Sequence[FilterInTurn]) -> None:
        self._parts = parts
        self.count = min(part.count for part in parts)

    def open_to(self, turn: int) -> Bool:
        return reduce(and_, [part.open_to(turn) for part in self._parts])

    def placed(self, turn: int, place: int) -> bool:
        changes = [part.placed(turn, place) for part in self._parts]  # all are told
        return any(changes)


class WeightedSum(ScoreInTurn):
    """Several scores of one plugin with their weights, on top of a number."""

    def __init__(self, start: float, parts: Sequence[tuple[ScoreInTurn, int]]) -> None:
        self._start, self._parts = start, parts
        self.count = min(part.count for part, _ in parts)

    def score(self, turn: int, places: AnyArray) -> F64:
        total: Any = self._start
        for part, weight in self._parts:
            total = total + weight * part.score(turn, places)
        found: F64 = total
        return found

    def placed(self, turn: int, place: int) -> bool:
        changes = [part.placed(turn, place) for part, _ in self._parts]
        return any(changes)


def length_alike(kinds: Sequence[object]) -> int:
    """How many from the first one on are equal to it."""
    return next((i for i, kind in enumerate(kinds) if kind != kinds[0]), len(kinds))


#: What a hook says that names no method for several tasks, where it tells nodes apart: it speaks of the first one only.
ALONE = object()


def filter_of_first(hook: Hook) -> Hook:
    """A filter without such a method: where it objects nowhere, to no task of the class."""
    return lambda tasks, nodes: None if _of_first(hook, tasks, nodes) is None else ALONE


def score_of_first(hook: Hook) -> Hook:
    """A score without such a method: where it is one number, that of all tasks of the class."""

    def of_several(tasks: TaskRows, nodes: NodeRows) -> Any:
        answer = _of_first(hook, tasks, nodes)
        return answer if answer is None or isinstance(answer, int | float | np.number) else ALONE

    return of_several


def _of_first(hook: Hook, tasks: TaskRows, nodes: NodeRows) -> Any:
    return hook(Task(tasks.tables, int(tasks.rows[0])), nodes)


# -- combinators: what is said with the hook that says it; None where one of them can speak of the first task only


def filters_of(tiers: Sequence[Sequence[Hook]], tasks: TaskRows, nodes: NodeRows) -> list[tuple[Hook, Any]] | None:
    """What filters say of the tasks; those that object nowhere are left out."""
    return _followed(tiers, tasks, nodes, FilterInTurn)


def scores_of(tiers: Sequence[Sequence[Hook]], tasks: TaskRows, nodes: NodeRows) -> list[tuple[Hook, Any]] | None:
    """What scores say of the tasks, in order: a ScoreInTurn, or the number that every node has."""
    return _followed(tiers, tasks, nodes, ScoreInTurn, int, float, np.number)


def _followed(
    tiers: Sequence[Sequence[Hook]], tasks: TaskRows, nodes: NodeRows, *kinds: type
) -> list[tuple[Hook, Any]] | None:
    found = []
    for tier in tiers:
        for hook in tier:
            answer = hook(tasks, nodes)
            if answer is None:
                continue
            if answer is ALONE:
                return None
            if not isinstance(answer, kinds):
                raise WrongAnswer(hook, answer, f"None or a {kinds[0].__name__}")
            found.append((hook, answer))
    return found
