"""The page of the memo lists every module that keeps answers, and plugins keep nothing else."""

import ast
import re

from pumice.framework import memo
from tests.tidy import repo

KEEPING = {"get", "recall", "keep", "by_row", "rows_kept", "keep_rows"}
CHANGING = {"add", "append", "clear", "extend", "insert", "pop", "remove", "setdefault", "update"}
#: What a plugin sets on itself after it opened, and why.
SET_LATER = {
    "kai/plugins/numa.py: Numa._last": "what the filter found, for the score that is asked next; under its version",
    "kai/plugins/proportion.py: Proportion._before": "shares when a search began; the search validates against them",
    "kai/plugins/predicates.py: Predicates._filters": "called by __init__",
    "ours/plugins/gpuplacement.py: GpuPlacement._kind_of": "called by __init__",
    "ours/plugins/gpuplacement.py: GpuPlacement._kinds": "called by __init__",
    "ours/plugins/gpuplacement.py: GpuPlacement._pods": "called by __init__",
    "ours/plugins/gpuplacement.py: GpuPlacement._steps": "called by __init__",
    "volcano/plugins/task_topology.py: TaskTopologies._bucket_of": "called by __init__",
    "volcano/plugins/task_topology.py: TaskTopologies._plans": "called by __init__",
    "volcano/plugins/usage.py: Usage._due": "called by __init__",
}


def is_kept(call: ast.AST) -> bool:
    """A call of a method of the memo."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name), attr=attr)):
            return name in ("memo", "_memo") and attr in KEEPING
    return False


def test_the_page_lists_the_modules_that_keep_answers() -> None:
    keeping = {
        repo.name(path).removeprefix("src/pumice/").removesuffix(".py").replace("/", ".")
        for path in repo.files(".py", under="src/pumice")
        if any(is_kept(node) for node in ast.walk(repo.tree(path)))
    }
    page = (memo.__doc__ or "").partition("These modules keep answers")[2].partition("Three mechanisms")[0]
    listed = set(re.findall(r"``([a-z_.]+)``", page))
    assert len(keeping) > 20
    assert keeping == listed, repo.listed("list it at the head of framework/memo.py", sorted(keeping ^ listed))


def changed(node: ast.AST) -> list[str]:
    """The attributes of self that a statement or a call changes."""
    match node:
        case ast.Assign(targets=targets):
            places = targets
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            places = [target]
        case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in CHANGING:
            places = [value]
        case _:
            return []
    found = []
    for place in places:
        while isinstance(place, ast.Subscript):
            place = place.value
        match place:
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                found.append(name)
    return found


def test_what_a_plugin_keeps_is_a_column_or_in_the_memo() -> None:
    found = {
        f"{repo.name(path).removeprefix('src/pumice/')}: {cls.name}.{name}"
        for path in repo.files(".py", under="src/pumice")
        if path.parent.name == "plugins"
        for cls in ast.walk(repo.tree(path))
        if isinstance(cls, ast.ClassDef) and any(_is_plugin(each) for each in cls.decorator_list)
        for method in cls.body
        if isinstance(method, ast.FunctionDef) and method.name != "__init__"
        for node in ast.walk(method)
        for name in changed(node)
    }
    assert found == SET_LATER.keys(), repo.listed(
        "keep it in a column or in the memo", sorted(found ^ SET_LATER.keys())
    )


def _is_plugin(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name) and decorator.func.id == "plugin"
