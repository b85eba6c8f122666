"""What a point is: the forms of its hooks, what a hook says of itself, and that a wrong one is an error everywhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from mypy import api

from pumice.columns.dtypes import F64
from pumice.columns.job_rows import JobRows
from pumice.columns.rows import NodeRows
from pumice.columns.runs import TaskRun
from pumice.columns.views import Job, Node, Queue, Task, TaskClass
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.errors import PluginError
from pumice.framework.plugin.point import HOOKS_ATTRIBUTE, WORDS, Mark, Question, takes
from pumice.model.decisions import Refusal
from pumice.volcano import points
from tests.unit.framework.kit import anew

ROOT = Path(__file__).resolve().parents[4]


def over_rows(ssn: Session, cls: TaskClass, nodes: NodeRows) -> Any: ...
def over_rows_of_a_task(ssn: Session, task: Task, nodes: NodeRows) -> Any: ...
def one_node(ssn: Session, cls: TaskClass, node: Node) -> Any: ...
def one_node_of_a_task(ssn: Session, task: Task, node: Node) -> Any: ...
def with_arguments(ssn: Session, cls: TaskClass, node: Node, *, weight: float = 1.0) -> Any: ...
def two_jobs(ssn: Session, left: Job, right: Job) -> Any: ...
def many_jobs(ssn: Session, jobs: JobRows) -> Any: ...
def a_job(ssn: Session, job: Job) -> Any: ...
def an_amount(ssn: Session, queue: Queue, ask: F64) -> Any: ...
def no_parameter(ssn: Session) -> Any: ...
def may_refuse(ssn: Session, run: TaskRun) -> Refusal | None: ...
def refuses_nothing(ssn: Session, run: TaskRun) -> None: ...
def bare(ssn, cls, node: Node): ...  # as in a first draft
def swapped(ssn: Session, nodes: NodeRows, cls: TaskClass) -> Any: ...
def fruit(ssn: Session, banana: str) -> int: ...


# -- forms


@pytest.mark.parametrize(
    ("point", "hook", "form"),
    [
        pytest.param(points.predicate, over_rows, "class", id="a class over rows"),
        pytest.param(points.predicate, over_rows_of_a_task, "task", id="a task over rows"),
        pytest.param(points.predicate, one_node, "class_node", id="a class on a node"),
        pytest.param(points.predicate, one_node_of_a_task, "task_node", id="a task on a node"),
        pytest.param(points.node_order, with_arguments, "class_node", id="keyword parameters are no part of it"),
        pytest.param(points.job_order, two_jobs, "compare", id="a comparison"),
        pytest.param(points.job_order, many_jobs, "key", id="a key"),
        pytest.param(points.job_enqueueable, a_job, "job", id="a job"),
        pytest.param(points.job_enqueueable, an_amount, "amount", id="an amount"),
        pytest.param(points.session_close, no_parameter, "none", id="nothing"),
        pytest.param(points.on_allocate, may_refuse, "run", id="tasks, which it may refuse"),
        pytest.param(points.on_allocate, refuses_nothing, "run", id="tasks, which it only hears of"),
    ],
)
def test_a_form_has_a_name(point: Any, hook: Any, form: str) -> None:
    hook = anew(hook)
    assert point(hook) is hook, "the function stays the function that it is"
    assert getattr(hook, HOOKS_ATTRIBUTE) == [Mark(point, form, None, None)]


@pytest.mark.parametrize(
    ("point", "hook", "problem"),
    [
        pytest.param(
            points.job_ready,
            two_jobs,
            "hook two_jobs at point job_ready: found parameters (Job, Job), wanted (Job)",
            id="too many",
        ),
        pytest.param(
            points.job_order,
            a_job,
            "hook a_job at point job_order: found parameters (Job), wanted (JobRows) or (Job, Job)",
            id="too few",
        ),
        pytest.param(
            points.job_order,
            fruit,
            "hook fruit at point job_order: found parameters (str), wanted (JobRows) or (Job, Job)",
            id="something else",
        ),
        pytest.param(
            points.batch_node_order,
            swapped,
            "hook swapped at point batch_node_order: found parameters (NodeRows, TaskClass),"
            " wanted (TaskClass, NodeRows) or (Task, NodeRows) or (TaskClass)",
            id="order",
        ),
        pytest.param(
            points.node_map,
            bare,
            "hook bare at point node_map: found parameters (?, Node), wanted (Task, Node)",
            id="not annotated",
        ),
        pytest.param(
            points.session_close,
            a_job,
            "hook a_job at point session_close: found parameters (Job), wanted ()",
            id="nothing is wanted",
        ),
    ],
)
def test_a_form_that_the_point_does_not_have(point: Any, hook: Any, problem: str) -> None:
    hook = anew(hook)
    with pytest.raises(PluginError) as raised:
        point(hook)
    assert str(raised.value) == problem
    assert not hasattr(hook, HOOKS_ATTRIBUTE)


def test_one_function_at_several_points() -> None:
    @points.job_ready
    @points.job_starving
    def hook(ssn: Session, job: Job) -> bool:
        return True

    marks = getattr(hook, HOOKS_ATTRIBUTE)
    assert [(mark.point, mark.form) for mark in marks] == [(points.job_starving, "job"), (points.job_ready, "job")]


def test_forms_are_read_from_annotations_as_they_are_written() -> None:
    assert takes(with_arguments) == ("TaskClass", "Node")
    assert takes(a_job, skip=0) == ("Session", "Job")
    assert takes(bare) == ("?", "Node")


# -- what a hook says of itself


def test_what_an_answer_rests_on_is_as_by_default_unless_it_is_said() -> None:
    @points.job_pipelined(reads=("rows", "now", "sla.waits"))
    @points.job_ready
    def hook(ssn: Session, job: Job) -> Any:
        return True

    assert getattr(hook, HOOKS_ATTRIBUTE) == [
        Mark(points.job_ready, "job", None),
        Mark(points.job_pipelined, "job", ("rows", "now", "sla.waits")),
    ]


@pytest.mark.parametrize("word", [*WORDS, "a-plugin.column"])
def test_what_may_be_read(word: str) -> None:
    hook = anew(a_job)
    points.job_ready(reads=(word,))(hook)
    assert getattr(hook, HOOKS_ATTRIBUTE)[0].reads == (word,)


@pytest.mark.parametrize("word", ["clock", "column", ""])
def test_a_word_that_means_nothing_is_an_error(word: str) -> None:
    hook = anew(a_job)
    with pytest.raises(PluginError) as raised:
        points.job_ready(reads=("now", word))(hook)
    assert str(raised.value) == (
        f"hook a_job at point job_ready: reads={word!r}: wanted one of {', '.join(WORDS)},"
        " or the name of a column, plugin.column"
    )
    assert not hasattr(hook, HOOKS_ATTRIBUTE)


# -- switches


def question(**more: Any) -> Question:
    return Question("a_point", "What?", "never", lambda: None, {}, **more)


@pytest.mark.parametrize(
    ("more", "switches"),
    [
        pytest.param({}, (), id="always on"),
        pytest.param({"switch": "JobReady"}, ("JobReady",), id="one"),
        pytest.param({"switches": ("Preemptable", "Allocatable")}, ("Preemptable", "Allocatable"), id="one of two"),
    ],
)
def test_which_switches_a_point_has(more: dict[str, Any], switches: tuple[str, ...]) -> None:
    assert question(**more).any_switch == switches


def test_points_differ_by_identity_and_not_by_content() -> None:
    assert question() != question()
    assert len({question(), question()}) == 2


# -- types

#: A module of hooks. Those that are wrong say so; a type checker must report these and no others.
HOOKS = """
from __future__ import annotations

import numpy as np

from pumice.columns.dtypes import F64, Bool
from pumice.columns.job_rows import JobRows
from pumice.columns.rows import NodeRows, TaskRows
from pumice.columns.views import Job, Node, Queue, SubJob, Task, TaskClass
from pumice.framework.plugin.combine import Vote
from pumice.framework.cycle.session import Session
from pumice.model.decisions import Refusal
from pumice.framework.plugin.filter_result import Invalid, Unfit, FilterResult
from pumice.volcano import points

NONE = np.zeros(0, dtype=bool)

@points.job_order
def of_rows(ssn: Session, jobs: JobRows) -> F64: return jobs.creation

@points.job_order
def of_two(ssn: Session, left: Job, right: Job) -> int: return 0

@points.job_order  # wrong: no job
def fruit(ssn: Session, banana: str) -> int: return 0

@points.job_order  # wrong: an answer of another type
def in_words(ssn: Session, left: Job, right: Job) -> str: return "left"

@points.predicate
def over_rows(ssn: Session, cls: TaskClass, nodes: NodeRows) -> FilterResult: return FilterResult.of(NONE, Unfit("no"))

@points.predicate
def on_a_node(ssn: Session, task: Task, node: Node) -> Unfit | None: return None

@points.predicate  # wrong: a mask for reasons
def as_a_mask(ssn: Session, cls: TaskClass, nodes: NodeRows) -> Bool: return NONE

@points.predicate  # wrong: False for a reason
def yes_or_no(ssn: Session, task: Task, node: Node) -> bool: return False

@points.predicate  # wrong: the other way round
def swapped(ssn: Session, nodes: NodeRows, cls: TaskClass) -> FilterResult: return FilterResult.of(NONE, Unfit("no"))

@points.job_valid
def valid(ssn: Session, job: Job) -> Invalid | None: return None

@points.job_valid  # wrong: a reason of another kind
def unfit(ssn: Session, job: Job) -> Unfit | None: return None

@points.preemptable  # wrong: a list for a mask
def listed(ssn: Session, task: Task, candidates: TaskRows) -> list[Task]: return []

@points.job_pipelined(reads=("now",))
def late(ssn: Session, job: Job) -> Vote: return Vote.ABSTAIN

@points.job_pipelined(reads=("now",))  # wrong: of a part
def of_a_part(ssn: Session, job: SubJob) -> Vote: return Vote.ABSTAIN

@points.node_order(reads=("rows",))
def fullness(ssn: Session, cls: TaskClass, nodes: NodeRows) -> F64: return nodes.used[:, 0]

@points.node_order(reads=("rows",))  # wrong: of a queue
def of_a_queue(ssn: Session, queue: Queue, nodes: NodeRows) -> F64: return nodes.used[:, 0]

@points.task_order(reads=("rows",))  # wrong: of jobs
def of_jobs(ssn: Session, jobs: JobRows) -> F64: return jobs.creation

class Plugin:
    @points.sub_job_order
    def key(self, sub: SubJob) -> float: return 0.0

    @points.sub_job_order  # wrong: of a job
    def of_a_job(self, job: Job) -> float: return 0.0
"""


def test_a_hook_of_the_wrong_type_is_an_error_for_who_checks_types(tmp_path: Path) -> None:
    path = tmp_path / "hooks_to_check.py"
    path.write_text(HOOKS)
    wanted = {number for number, line in enumerate(HOOKS.splitlines(), 1) if "# wrong" in line}
    said, trouble, _ = api.run(["--config-file", str(ROOT / "pyproject.toml"), str(path)])
    assert not trouble
    assert {int(number) for number in re.findall(r"hooks_to_check\.py:(\d+): error", said)} == wanted, said


def test_what_the_checker_is_given_is_wrong_at_load_too_where_it_is_the_form_that_is_wrong() -> None:
    hook = anew(fruit)
    with pytest.raises(PluginError, match=r"wanted \(JobRows\) or \(Job, Job\)"):
        points.job_order(hook)
