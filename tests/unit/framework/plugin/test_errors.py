"""What is said of wrong input and of plugins that fail."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.columns.views import Task
from pumice.framework.plugin.errors import PluginFault, PolicyError, WrongAnswer, did_you_mean, in_short, problem_of
from pumice.testing.build import cluster, pod

LONG = "x" * 500


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("all is well", "all is well", id="as it is"),
        pytest.param(" two\n\t lines ", "two lines", id="on one line"),
        pytest.param("x" * 200, "x" * 200, id="as long as may be"),
        pytest.param(LONG, "x" * 200 + "…", id="cut where it is too long"),
        pytest.param(ValueError("no\nluck"), "no luck", id="an error"),
    ],
)
def test_somebody_else_s_text_is_one_line_and_not_too_long(text: object, shown: str) -> None:
    assert in_short(text) == shown


def test_a_wrong_answer_says_what_was_found_and_what_was_wanted() -> None:
    def hook() -> str:
        return LONG

    error = WrongAnswer(hook, hook(), "a number")
    assert error.hook is hook
    assert str(error) == f"answered '{'x' * 199}…, wanted a number"


def test_a_fault_names_plugin_hook_point_and_line() -> None:
    fault = PluginFault("greedy", "job_ready", "Greedy.ready", "greedy.py:7", "KeyError: 'x'")
    assert str(fault) == "plugin greedy, Greedy.ready at job_ready (greedy.py:7): KeyError: 'x'"


def test_every_problem_of_a_policy_has_a_line() -> None:
    error = PolicyError(f"problem {n}" for n in (1, 2))
    assert (error.problems, str(error)) == (("problem 1", "problem 2"), "problem 1\nproblem 2")


@pytest.mark.parametrize(
    ("found", "known", "said"),
    [
        pytest.param("gnag", ["drf", "gang"], '; did you mean "gang"?', id="near one"),
        pytest.param("zzz", ["b", "a"], "; known: a, b", id="near none"),
        pytest.param("zzz", [], "", id="nothing is known"),
    ],
)
def test_did_you_mean(found: str, known: list[str], said: str) -> None:
    assert did_you_mean(found, known) == said


def raised_by(of: Any, name: str) -> Exception:
    try:
        getattr(of, name)
    except AttributeError as error:
        return error
    raise AssertionError("it is there")


def test_an_attribute_that_there_is_not_names_those_that_there_are() -> None:
    reports = problem_of(raised_by(Task(cluster(pod("p")).snapshot().tables, 0), "nam"))
    assert reports.startswith("Task has no 'nam'; it has name, ")
    assert "labels" in reports


@pytest.mark.parametrize(
    ("error", "reports"),
    [
        pytest.param(raised_by("text", "nam"), "AttributeError: 'str' object has no attribute 'nam'", id="of Python's"),
        pytest.param(AttributeError("none"), "AttributeError: none", id="without an object"),
        pytest.param(KeyError("user"), "KeyError: 'user'", id="another error"),
    ],
)
def test_other_errors_of_a_plugin_are_reported_as_they_are(error: Exception, reports: str) -> None:
    assert problem_of(error) == reports
