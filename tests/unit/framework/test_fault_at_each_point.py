"""Every wrong answer at every point, in every form of a hook, is a plugin fault: it names plugin, hook, file and line,
the job that was asked about is skipped, and the rest is scheduled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pumice.framework.plugin.filter_result import FilterResult, Invalid, Unfit
from pumice.framework.plugin.incremental import FilterInTurn, ScoreInTurn, TaskFilter, TaskScore
from pumice.testing.build import cluster, run
from tests.unit.framework import every_point
from tests.unit.framework.every_point import FORMS, WORLDS, Form, jobs_of, neutral, plugin_at

NAN = float("nan")


class Raised(Exception):
    """What the hook of a test raises."""


def _raises(*args: Any) -> Any:
    raise Raised("a sentence\nof the author")


def _same(value: Any) -> Callable[..., Any]:
    return lambda *args: value


def _rows(args: Any) -> int:
    """How many rows a hook is asked about."""
    return len(args[1] if len(args) > 1 else args[0])


def _array(value: Any, more: int = 0, dtype: Any = None) -> Callable[..., Any]:
    return lambda *args: np.full(_rows(args) + more, value, dtype=dtype)


ONE_REASON = ((), (Unfit("no"),))


def _filter(codes: Callable[[int], Any], why: Any = ONE_REASON) -> Callable[..., Any]:
    return lambda *args: FilterResult(codes(_rows(args)), why)


ANY = {
    **{"a text": _same("x"), "an object": _same(object()), "raises": _raises},
    **{"a generator": lambda *args: (each for each in (1.0,)), "objects": _same(np.array([object(), None]))},
}
NUMBERS = {**ANY, "None": _same(None), "NaN": _same(NAN)}
KEYS = {
    **{**ANY, "None": _same(None), "a number": _same(1.0), "NaN": _array(NAN)},
    **{"one more": _array(1.0, 1), "texts": _array("x"), "two axes": lambda *args: np.zeros((_rows(args), 2))},
}
SCORES = {**KEYS, "infinite": _array(np.inf), "objects": _array(None, dtype=object)}
MASKS = {**ANY, "True": _same(True), "one more": _array(True, 1), "numbers": _array(1), "a list": _same([True])}
REASONS = {**ANY, "True": _same(True), "False": _same(False)}
FILTERS = {
    **REASONS,
    "a mask": _array(True),
    "one more": _filter(lambda count: np.zeros(count + 1, np.int32)),
    "codes without a reason": _filter(lambda count: np.full(count, 5, np.int32)),
    "codes below 0": _filter(lambda count: np.full(count, -7, np.int32)),
    "codes that are no numbers": _filter(lambda count: np.full(count, "x")),
    "codes that are no array": _filter(lambda count: [1] * count),
    "reasons that are texts": _filter(lambda count: np.ones(count, np.int32), ((), ("no",))),
    "reasons that are no lists": _filter(lambda count: np.ones(count, np.int32), ((), "no")),
}
GROUPS = {**ANY, "numbers": _same([1]), "texts": _same([["x"]]), "no such domain": _same([[999]])}
_VOTES = {**NUMBERS}
del _VOTES["a text"]  # the text of a rejection


def _of_tasks(kind: type, **methods: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function to a filter or score of tasks, or what follows placements, with wrong methods."""
    made = type("Odd", (kind,), {name: _method(answer) for name, answer in methods.items()})
    return lambda *args: made()


def _method(answer: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *args: answer(*args)


def _follows(kind: type, of_tasks: type, **methods: Callable[..., Any]) -> Callable[..., Any]:
    def follow(tasks: Any, nodes: Any) -> Any:
        follower = _of_tasks(kind, **methods)()
        follower.count = len(tasks)
        return follower

    right = {TaskFilter: {"filter_result": _same(None)}, TaskScore: {"score": lambda task, nodes: np.zeros(len(nodes))}}
    return _of_tasks(of_tasks, in_turn=follow, **right[of_tasks])


_OPEN: dict[str, Callable[..., Any]] = {"open_to": lambda step: np.ones(2, dtype=bool), "placed": _same(True)}
_GOOD: dict[str, Callable[..., Any]] = {"score": lambda step, places: np.ones(len(places)), "placed": _same(True)}
TASK_FILTERS = {
    **ANY,
    **{"True": _same(True), "a score": _of_tasks(TaskScore), "no methods": _of_tasks(TaskFilter)},
    **{f"a filter of tasks: {wrong}": _of_tasks(TaskFilter, filter_result=answer) for wrong, answer in FILTERS.items()},
    "in_turn answers a text": _of_tasks(TaskFilter, filter_result=_same(None), in_turn=_same("x")),
    "in_turn raises": _of_tasks(TaskFilter, filter_result=_same(None), in_turn=_raises),
    "open_to raises": _follows(FilterInTurn, TaskFilter, **{**_OPEN, "open_to": _raises}),
    "open_to answers a text": _follows(FilterInTurn, TaskFilter, **{**_OPEN, "open_to": _same("x")}),
    "open_to answers one node": _follows(FilterInTurn, TaskFilter, **{**_OPEN, "open_to": _same(np.ones(1, bool))}),
    "placed raises": _follows(FilterInTurn, TaskFilter, **{**_OPEN, "placed": _raises}),
}
TASK_SCORES = {
    **{**ANY, "NaN": _same(NAN), "a filter": _of_tasks(TaskFilter), "no methods": _of_tasks(TaskScore)},
    "a score of tasks: a text": _of_tasks(TaskScore, score=_same("x")),
    "a score of tasks: NaN": _of_tasks(TaskScore, score=_array(NAN)),
    "a score of tasks: one more": _of_tasks(TaskScore, score=_array(1.0, 1)),
    "in_turn answers a text": _of_tasks(TaskScore, score=_array(1.0), in_turn=_same("x")),
    "score in turn raises": _follows(ScoreInTurn, TaskScore, **{**_GOOD, "score": _raises}),
    "score in turn is a text": _follows(ScoreInTurn, TaskScore, **{**_GOOD, "score": _same("x")}),
    "score in turn of one node": _follows(ScoreInTurn, TaskScore, **{**_GOOD, "score": _same(np.ones(3))}),
    "score in turn of texts": _follows(ScoreInTurn, TaskScore, **{**_GOOD, "score": _array("x")}),
    "score in turn is NaN": _follows(
        ScoreInTurn, TaskScore, **{**_GOOD, "score": lambda step, places: np.full(len(places), NAN)}
    ),
    "placed raises": _follows(ScoreInTurn, TaskScore, **{**_GOOD, "placed": _raises}),
}


def wrong_answers(form: Form) -> dict[str, Callable[..., Any]]:
    """Return functions of what a hook is given to answers that its point cannot use, by what is wrong."""
    name = form.point.name
    match name:
        case "job_order" | "task_order":
            return KEYS if form.takes[0].endswith("Rows") else NUMBERS
        case "queue_order" | "sub_job_order" if len(form.takes) == 1:
            return {**NUMBERS, "a list": _same([1.0]), "a text in it": _same((1.0, "x")), "NaN in it": _same((1, NAN))}
        case "predicate" if form.takes == ("TaskClass",):
            return TASK_FILTERS
        case "predicate":
            return FILTERS if _over_rows(form) else REASONS
        case "pre_predicate" | "simulate_add_task" | "simulate_remove_task" | "simulate_predicate":
            return {**REASONS, "a job's reason": _same(Invalid("No", "no"))}
        case "job_valid":
            return {**REASONS, "a task's reason": _same(Unfit("no"))}
        case "node_order" | "batch_node_order" if _over_rows(form):
            return {wrong: answer for wrong, answer in SCORES.items() if wrong not in ("None", "a number")}
        case "batch_node_order":
            return TASK_SCORES
        case "node_reduce":
            return SCORES
        case "hyper_node_order":
            return {wrong: answer for wrong, answer in SCORES.items() if wrong not in ("None", "a number")}
        case "best_node":
            return {**ANY, "no row": _same(999), "below 0": _same(-1), "a half": _same(0.5)}
        case "waits" | "preemptable" | "reclaimable" | "unified_evictable" | "victim_tasks":
            return MASKS
        case "hyper_node_gradient_for_job" | "hyper_node_gradient_for_sub_job":
            return GROUPS
        case "job_enqueueable":
            return _VOTES
        case "on_allocate" | "on_deallocate" | "job_enqueued" | "gate_taken_off" | "session_close" | "bind_context":
            return ANY
    return NUMBERS


def _over_rows(form: Form) -> bool:
    return form.takes[-1] == "NodeRows"


CASES = [
    pytest.param(form, answer, id=f"{form.name} {wrong}")
    for form in FORMS
    for wrong, answer in wrong_answers(form).items()
]


@pytest.mark.parametrize(("form", "answer"), CASES)
def test_a_wrong_answer_is_a_fault_of_its_hook(form: Form, answer: Callable[..., Any]) -> None:
    world = WORLDS[form.world]
    concerned: list[bool] = []

    def wrong_of_bad(*args: Any) -> Any:
        about = set().union(*map(jobs_of, args))
        concerned.append(len(about) == 1)
        is_meant = not about or "bad" in about or not world.places
        return answer(*args) if is_meant else neutral(form, *args)

    ran = run(cluster(list(world.objects)), world.conf("odd"), plugins=[plugin_at(form, wrong_of_bad)])
    assert ran.outcome.faults
    for fault in ran.outcome.faults:
        assert (fault.plugin, fault.point, fault.hook) == ("odd", form.point.name, "Odd.hook")
        file, _, line = fault.where.rpartition(":")
        assert (Path(file), int(line) > 0) == (Path(every_point.__file__), True)
        assert "\n" not in fault.text
    if all(concerned) and world.places and form.point.name != "overused":
        assert {key.split("/")[1].split("-")[0] for key in ran.binds} >= world.places - {"bad"}
        assert not any(key.startswith("ns/bad-") for key in ran.binds)
        assert {fault.subject for fault in ran.outcome.faults} == {"ns/bad"}
