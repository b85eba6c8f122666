"""The page of extension points is the one that the points would write, and every answer is combined as it says."""

import ast
from collections.abc import Iterator

from docs.points import PAGE, page
from pumice.framework.plugin import points as shared
from pumice.framework.plugin.point import MultiFormQuestion, Question
from pumice.volcano import points
from pumice.volcano.points import POINTS
from tests.tidy import repo


def test_the_page_of_points_is_fresh() -> None:
    assert repo.text(PAGE) == page(), "run .venv/bin/python -m docs.points"


def test_every_point_is_on_it() -> None:
    missing = [name for name in POINTS if f"| `{name}` |" not in page()]
    assert not missing


#: Points that no module asks by name: some for want of the actions, as the page says; those of victims are asked by the
#: search, which gets them as an argument.
ASKED_BY_NOBODY = {"cluster_order", "consolidate_victims", "preemptable", "reclaimable", "reserved_nodes", "target_job"}
#: Points whose hooks are called one by one, not through the combinator, with the file that does.
ONE_BY_ONE = {
    "session_close": "framework/cycle/closing.py",  # a plugin that fails at the end keeps no other from hearing of it
    "node_map": "placing/choose.py",  # scores for the node_reduce of the same plugin
    "node_reduce": "placing/choose.py",
}
#: Who else may call hooks one by one, and not for an answer.
AND_NOT_FOR_AN_ANSWER = {
    "placing/batch.py",  # a trial booking is passed to the plugins that are asked about nodes
    "framework/cycle/statement.py",  # a rollback tells the plugins that it concerns the inverse
    "volcano/failures/trials.py",  # whether a hook has anything to say of a task
}


def questions(module: ast.Module) -> Iterator[Question]:
    """What a module asks plugins: the points named in the first argument of ``ask``."""
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Attribute(attr="ask") | ast.Name(id="ask"), args=[first, *_]):
                names = [n.attr for n in ast.walk(first) if isinstance(n, ast.Attribute)]
                asked = [getattr(points, name, None) or getattr(shared, name, None) for name in names]
                for question in asked:
                    if isinstance(question, MultiFormQuestion):
                        yield from question.points
                    elif isinstance(question, Question):
                        yield question


def test_every_point_is_asked_through_its_combinator_or_kept_for_later() -> None:
    asked = {point.name for path in repo.files(".py", under="src/pumice") for point in questions(repo.tree(path))}
    assert asked.isdisjoint(ASKED_BY_NOBODY), "take them off the table"
    assert asked | ONE_BY_ONE.keys() | ASKED_BY_NOBODY == POINTS.keys()


def test_nobody_else_calls_hooks_one_by_one() -> None:
    """A module that calls hooks past their combinator has written a combinator a second time."""
    past = set()
    for path in repo.files(".py", under="src/pumice"):
        calls = [n.func for n in ast.walk(repo.tree(path)) if isinstance(n, ast.Call)]
        if {"ask_one", "ask_alone", "notified_by_inverse", "by_plugin"} & {
            f.attr for f in calls if isinstance(f, ast.Attribute)
        }:
            past.add(path.relative_to(repo.SRC).as_posix())
    assert past - {"framework/plugin/hooks.py"} == set(ONE_BY_ONE.values()) | AND_NOT_FOR_AN_ANSWER
