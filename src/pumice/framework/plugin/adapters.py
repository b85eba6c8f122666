"""A hook in one form, asked in another: the contract of a point is one, and there are several ways to write a hook."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from pumice.columns.dtypes import F64, AnyArray, Bool
from pumice.columns.job_rows import JobRows
from pumice.columns.rows import ClassRows, NodeRows, TaskRows
from pumice.columns.tables import Tables
from pumice.columns.views import Job, Node, Queue, Task, TaskClass
from pumice.framework.plugin import combine
from pumice.framework.plugin.errors import HookFunction
from pumice.framework.plugin.filter_result import FilterResult, Unfit
from pumice.framework.plugin.point import Key

Subject = TypeVar("Subject")
Several = TypeVar("Several", JobRows, TaskRows)


def pair_of_keys(
    hook: Callable[[Several], AnyArray], rows_of: Callable[[Tables, AnyArray], Several]
) -> Callable[[Job | Task, Job | Task], int]:
    """Return a comparison of two for a hook that gives keys of many."""

    def compare(left: Job | Task, right: Job | Task) -> int:
        (both,) = combine.keys(((hook,),), rows_of(left.tables, np.array([left.row, right.row])))
        a, b = both.tolist()
        # Keys are compared and not subtracted, because they may be infinite.
        return int(a > b) - int(a < b)

    return compare


def pair_of_single_keys(hook: Callable[[Subject], Key]) -> Callable[[Subject, Subject], int]:
    """Return a comparison of two for a hook that gives the key of one."""

    def compare(left: Subject, right: Subject) -> int:
        (a,), (b,) = (combine.single_keys(((hook,),), each) for each in (left, right))
        return int(b < a) - int(a < b)  # keys may be NumPy numbers

    return compare


def filter_node_by_node(hook: Callable[[Subject, Node], Unfit | None]) -> Callable[[Subject, NodeRows], FilterResult]:
    """Return a filter over rows for a filter of one node."""

    def over_rows(subject: Subject, nodes: NodeRows) -> FilterResult:
        # Code 0 means "no objection" in every FilterResult, so its reasons are empty.
        why: list[tuple[Unfit, ...]] = [()]
        codes = np.zeros(len(nodes), dtype=np.int32)
        for i, node in enumerate(nodes):
            unfit = hook(subject, node)
            if unfit is not None:
                # A hook that answers True probably means that the node fits. Taking it for a refusal would hide the
                # mistake.
                if not isinstance(unfit, Unfit):
                    raise combine.WrongAnswer(hook, unfit, "None or an Unfit")
                codes[i] = len(why)
                why.append((unfit,))
        return FilterResult(codes, tuple(why))

    return over_rows


def score_node_by_node(hook: Callable[[Subject, Node], float]) -> Callable[[Subject, NodeRows], F64]:
    """Return a score over rows for a score of one node."""

    def over_rows(subject: Subject, nodes: NodeRows) -> F64:
        found = [hook(subject, node) for node in nodes]
        # Tested one by one and before the array is made: NumPy would turn a text of digits into a number.
        for answer in found:
            if not isinstance(answer, int | float | np.number | np.bool_):
                raise combine.WrongAnswer(hook, answer, "a number")
        return np.array(found, dtype=np.float64)

    return over_rows


def masks_of_each(hook: Callable[[TaskClass, NodeRows], FilterResult | None]) -> Callable[[ClassRows, NodeRows], Bool]:
    """Return a filter about several classes for one about a class: the nodes to which it does not object."""

    def of_several(classes: ClassRows, nodes: NodeRows) -> Bool:
        # Class by class, since a hook in this form knows no faster way. One that does names a method for several.
        found = np.ones((len(classes), len(nodes)), dtype=bool)
        for i, cls in enumerate(classes):
            for filter_result in combine.filter_results(((hook,),), cls, nodes):
                found[i] = filter_result.codes == 0
        return found

    return of_several


def scores_of_each(hook: Callable[[TaskClass, NodeRows], F64 | float | None]) -> Callable[[ClassRows, NodeRows], F64]:
    """Return a score about several classes for one about a class."""

    def of_several(classes: ClassRows, nodes: NodeRows) -> F64:
        found = np.zeros((len(classes), len(nodes)))
        for i, cls in enumerate(classes):
            found[i] = combine.total(((hook,),), cls, nodes)
        return found

    return of_several


def of_its_class(hook: HookFunction) -> HookFunction:
    """Return a hook about tasks for one about a class."""
    return lambda task, *rest: hook(task.cls, *rest)


def first_of_run(hook: HookFunction) -> Callable[[Queue, TaskRows], object]:
    """Return a hook about several tasks for one about a task: it can speak of the first only."""
    return lambda queue, tasks: hook(queue, next(iter(tasks)))
