"""What is said of wrong input and of plugins that fail."""

from __future__ import annotations

import pytest

from pumice.framework.plugin.errors import PluginFault, PolicyError, WrongAnswer, did_you_mean, in_short

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
