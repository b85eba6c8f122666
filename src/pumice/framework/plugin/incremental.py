"""What hooks say of the single tasks of a class, and of several tasks that are placed one after the other.

A hook at predicate or batch_node_order that takes only TaskClass says whether the single tasks of the class matter.
None, or for a score one number, holds for all of them wherever others are placed. Otherwise it answers a TaskFilter or
a TaskScore, which is asked about each task. Source: kube-scheduler (PreFilter, Skip).

A hook that looks at where other tasks are answers differently after each placement; but little changes then, and the
plugin knows what. So ``in_turn`` may return an object that is notified of each placement and says what holds by then,
without a booking in between. Source: kube-scheduler's own filters (PreFilterExtensions, AddPod).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import isfinite
from operator import and_
from typing import TypeVar, cast

import numpy as np

from pumice.columns.dtypes import F64, AnyArray, Bool
from pumice.columns.rows import NodeRows, TaskRows
from pumice.columns.views import Task, TaskClass
from pumice.framework.plugin.errors import HookFunction, WrongAnswer
from pumice.framework.plugin.filter_result import FilterResult

Hook = HookFunction
V = TypeVar("V")


class InTurn:
    """Follows tasks of one class as they are placed. ``count``: number of tasks, from the first, for which it can
    answer; the others must be asked about anew."""

    count: int

    def placed(self, step: int, place: int) -> bool:
        """Note that the task of a step went to a node, given by its position among those that were asked about. Return
        True if the answer for the next task may differ from the one for this task."""
        raise NotImplementedError


class FilterInTurn(InTurn):
    """A filter that follows placements."""

    def open_to(self, step: int) -> Bool:
        """Return the nodes to which it does not object for the task of a step, after all before it have been placed.
        Shape (rows,). Read-only."""
        raise NotImplementedError


class ScoreInTurn(InTurn):
    """A score that follows placements."""

    def score(self, step: int, places: AnyArray) -> F64:
        """Return how good candidates (positions) are for the task of a step, after all before it have been placed.
        Shape (candidates,)."""
        raise NotImplementedError


class TaskFilter:
    """A filter for the single tasks of one class."""

    def filter_result(self, task: Task, nodes: NodeRows) -> FilterResult | None:
        """Return the objections to nodes for a task as things are, or None for none. Shape (rows,)."""
        raise NotImplementedError

    def in_turn(self, tasks: TaskRows, nodes: NodeRows) -> FilterInTurn | None:
        """Return the filter for tasks of the class that are placed one after the other, or None if it must be asked
        about each."""
        return None


class TaskScore:
    """A score for the single tasks of one class."""

    def score(self, task: Task, nodes: NodeRows) -> F64:
        """Return how good each candidate is for a task as things are. Shape (rows,)."""
        raise NotImplementedError

    def in_turn(self, tasks: TaskRows, nodes: NodeRows) -> ScoreInTurn | None:
        """Return the score for tasks of the class that are placed one after the other, or None if it must be asked
        about each."""
        return None


class Filters(FilterInTurn):
    """Several filters of one plugin as one."""

    def __init__(self, parts: Sequence[FilterInTurn]) -> None:
        self._parts = parts
        # One part that can follow no further ends the run for all.
        self.count = min(part.count for part in parts)

    def open_to(self, step: int) -> Bool:
        # Not in place, since each part's mask is read-only: the part itself goes on using it.
        return reduce(and_, [part.open_to(step) for part in self._parts])

    def placed(self, step: int, place: int) -> bool:
        # A list, because ``any`` alone would stop at the first and not notify the others.
        changes = [part.placed(step, place) for part in self._parts]
        return any(changes)


class WeightedSum(ScoreInTurn):
    """A sum of scores of one plugin with their weights, in addition to a number."""

    def __init__(self, start: float, parts: Sequence[tuple[ScoreInTurn, int]]) -> None:
        self._start, self._parts = start, parts
        # One part that can follow no further ends the run for all.
        self.count = min(part.count for part, _ in parts)

    def score(self, step: int, places: AnyArray) -> F64:
        total = np.full(len(places), self._start, dtype=np.float64)
        for part, weight in self._parts:
            total += weight * part.score(step, places)
        return total

    def placed(self, step: int, place: int) -> bool:
        # A list, because ``any`` would stop at the first part that changes, and the others would miss the placement.
        changes = [part.placed(step, place) for part, _ in self._parts]
        return any(changes)


def equal_prefix_length(kinds: Sequence[object]) -> int:
    """Return how many kinds, from the first on, are equal to the first."""
    return next((i for i, kind in enumerate(kinds) if kind != kinds[0]), len(kinds))


# -- what a hook says of a class, put to one task of it, and to several


# The check is here and not in each adapter: an answer of the wrong type would otherwise fail inside the placing loop,
# where the plugin is no longer known.
def of_class(hook: Hook, cls: TaskClass, wanted: type[V]) -> V | float | None:
    """Return what a hook says of the single tasks of a class. Raises: WrongAnswer."""
    answer: V | float | None = hook(cls)
    if not (answer is None or isinstance(answer, wanted) or (wanted is TaskScore and _is_number(answer))):
        raise WrongAnswer(hook, answer, f"None or a {wanted.__name__}")
    return answer


def _is_number(answer: object) -> bool:
    """Return True for a finite number of Python or NumPy."""
    return isinstance(answer, int | float | np.number) and isfinite(answer)


def filter_of_tasks(hook: Hook) -> Hook:
    """Return a filter that answers for a class as one that is asked about one task."""

    def of_task(task: Task, nodes: NodeRows) -> object:
        # Asked anew for each task, since the hook itself keeps what it finds for a class.
        found = of_class(hook, task.cls, TaskFilter)
        return found.filter_result(task, nodes) if isinstance(found, TaskFilter) else None

    return of_task


def score_of_tasks(hook: Hook) -> Hook:
    """Return a score that answers for a class as one that is asked about one task."""

    def of_task(task: Task, nodes: NodeRows) -> object:
        found = of_class(hook, task.cls, TaskScore)
        return found.score(task, nodes) if isinstance(found, TaskScore) else found

    return of_task


def in_turn_of(wanted: type[TaskFilter] | type[TaskScore]) -> Callable[[Hook], Hook]:
    """Return the adapter by which a hook that answers for a class is asked about several tasks of it."""

    def adapt(hook: Hook) -> Hook:
        def of_several(tasks: TaskRows, nodes: NodeRows) -> object:
            # The caller passes tasks of one class only, so what holds for the first holds for all.
            found = of_class(hook, TaskClass(tasks.tables, tasks.classes[0]), wanted)
            if not isinstance(found, wanted):
                return found
            follows = found.in_turn(tasks, nodes)
            # ``None`` already means "no objection", so "ask about each" needs a value of its own.
            return ALONE if follows is None else follows

        return of_several

    return adapt


#: The answer of a hook that tells nodes apart and cannot follow placements: it speaks of the first task only.
ALONE = object()


def filter_of_first(hook: Hook) -> Hook:
    """Return a filter about one task as one about several: if it objects to no node, it objects to no task of the
    class."""
    # A filter without objection to the first task has none to equal ones, as the contract of its form says.
    return lambda tasks, nodes: None if _of_first(hook, tasks, nodes) is None else ALONE


def score_of_first(hook: Hook) -> Hook:
    """Return a score about one task as one about several: if it is one number, that holds for all tasks of the
    class."""

    def of_several(tasks: TaskRows, nodes: NodeRows) -> object:
        answer = _of_first(hook, tasks, nodes)
        return answer if answer is None or _is_number(answer) else ALONE

    return of_several


def _of_first(hook: Hook, tasks: TaskRows, nodes: NodeRows) -> object:
    """Ask a hook about the first of some tasks."""
    return hook(Task(tasks.tables, int(tasks.rows[0])), nodes)


#: What a score may say of several tasks.
_SCORES: tuple[type[ScoreInTurn | float], ...] = (ScoreInTurn, int, float, cast(type[float], np.number))


# -- combinators: what is said with the hook that says it; None where one of them can speak of the first task only


def filters_of(
    tiers: Sequence[Sequence[Hook]], tasks: TaskRows, nodes: NodeRows
) -> list[tuple[Hook, FilterInTurn]] | None:
    """Return what filters say of the tasks, without those that object to no node; None if one cannot follow."""
    return _followed(tiers, tasks, nodes, (FilterInTurn,))


def scores_of(
    tiers: Sequence[Sequence[Hook]], tasks: TaskRows, nodes: NodeRows
) -> list[tuple[Hook, ScoreInTurn | float]] | None:
    """Return what scores say of the tasks, in order: a ScoreInTurn, or the number that every node has; None if one
    cannot follow."""
    return _followed(tiers, tasks, nodes, _SCORES)


def _followed(
    tiers: Sequence[Sequence[Hook]], tasks: TaskRows, nodes: NodeRows, kinds: tuple[type[V], ...]
) -> list[tuple[Hook, V]] | None:
    """Return the answers of hooks with the hooks, or None if one speaks of the first task only. Raises: WrongAnswer."""
    found = []
    for tier in tiers:
        for hook in tier:
            answer = hook(tasks, nodes)
            # It objects to no node, or prefers none, so there is nothing to follow.
            if answer is None:
                continue
            # One hook that cannot follow is enough: then each task must be placed before the next is asked about.
            if answer is ALONE:
                return None
            if not isinstance(answer, kinds):
                raise WrongAnswer(hook, answer, f"None or a {kinds[0].__name__}")
            found.append((hook, answer))
    return found
