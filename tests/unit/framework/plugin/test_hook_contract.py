"""What a hook is asked follows from what it takes, and from at most five words and a name at its decorator."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from pumice.columns.rows import ClassRows, NodeRows
from pumice.columns.views import TaskClass
from pumice.framework.plugin.errors import PluginError
from pumice.framework.plugin.plugin import PLUGIN_ATTRIBUTE, plugin
from pumice.framework.plugin.point import HOOKS_ATTRIBUTE, WORDS, Question, TwoForms
from pumice.framework.plugin.points import OverNodes, node_order, predicate
from pumice.kai.points import POINTS as OF_KAI
from pumice.volcano.points import POINTS as OF_VOLCANO

POINTS: dict[str, Any] = {**OF_KAI, **OF_VOLCANO}
FORMS = [
    pytest.param(point, takes, id=f"{name} ({', '.join(takes)})")
    for name, point in POINTS.items()
    for takes in point.forms
]
GUIDE = Path(__file__).parents[4] / "docs" / "guide" / "write-a-plugin.md"


def hook_that(takes: tuple[str, ...], **annotations: Any) -> Any:
    """A function with these parameters, and more annotations."""
    names = [f"a{i}" for i in range(len(takes))]
    space: dict[str, Any] = {}
    exec(f"def hook(ssn, {', '.join(names)}): ...", space)
    space["hook"].__annotations__ = {**dict(zip(names, takes, strict=True)), **annotations}
    return space["hook"]


def test_there_are_five_words_and_the_guide_explains_each() -> None:
    assert len(WORDS) <= 5
    text = GUIDE.read_text()
    assert {word for word in WORDS if f"`{word.upper()}`" not in text} == set()


@pytest.mark.parametrize("point", POINTS.values(), ids=POINTS)
def test_a_decorator_takes_no_more_than_what_is_read_and_a_name(point: Question) -> None:
    more = set(inspect.signature(type(point).__call__).parameters) - {"self", "hook"}
    assert more == ({"reads", "several"} if isinstance(point, OverNodes) else {"reads"})


@pytest.mark.parametrize(("point", "takes"), FORMS)
def test_what_a_hook_returns_by_its_annotation_means_nothing(point: Any, takes: tuple[str, ...]) -> None:
    written = [
        hook_that(takes),
        *(hook_that(takes, **{"return": said}) for said in (None, "None", "TaskFilter", "Listens", ClassRows, "x.y")),
    ]
    marks = [getattr(point(hook), HOOKS_ATTRIBUTE) for hook in written]
    assert all(each == marks[0] for each in marks)
    assert [mark[1:] for mark in marks[0]] == [(point.forms[takes], None, None)]


@pytest.mark.parametrize("takes", [("Task", "NodeRows"), ("Task", "Node"), ("TaskClass",)], ids=" ".join)
def test_several_is_about_classes(takes: tuple[str, ...]) -> None:
    with pytest.raises(PluginError, match="wanted one that takes TaskClass and nodes"):
        predicate(reads=(), several="of_several")(hook_that(takes))


def test_several_names_a_method() -> None:
    with pytest.raises(PluginError, match="found several='missing', wanted the name of a method of the plugin"):

        @plugin("odd")
        class Odd:
            @node_order(reads=(), several="missing")
            def score(self, cls: TaskClass, nodes: NodeRows) -> Any: ...


def test_several_is_called_with_classes() -> None:
    @plugin("odd")
    class Odd:
        @node_order(reads=(), several="scores")
        def score(self, cls: TaskClass, nodes: NodeRows) -> Any: ...

        def scores(self, classes: ClassRows, nodes: NodeRows) -> Any: ...

    spec = getattr(Odd, PLUGIN_ATTRIBUTE)
    assert [(form, several) for _, form, _, several, _ in spec.hooks] == [("class", "scores")]


def test_points_with_one_form_or_two_have_no_several() -> None:
    others = [point for point in POINTS.values() if not isinstance(point, OverNodes)]
    assert {type(point).__name__ for point in others} == {"Point", TwoForms.__name__}
    for point in others:
        with pytest.raises(TypeError, match="several"):
            point(reads=(), several="of_several")
