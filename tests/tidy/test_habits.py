"""Habits of the code: no sleeps in tests, no unfinished work that does not say why."""

import ast
import re
from collections.abc import Callable

from tests.tidy import repo

# Spelt in two halves, so that this file keeps its own rule.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b(?P<rest>.*)")
REASON = re.compile(r"\b(because|until|once|when|unless)\b", re.IGNORECASE)


def is_sleep(call: ast.Call) -> bool:
    """`time.sleep(…)` or a bare `sleep(…)`; `asyncio.sleep(0)` is a yield and no sleep."""
    match call.func:
        case ast.Attribute(value=ast.Name(id="asyncio"), attr="sleep"):
            return not (call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0)
        case ast.Attribute(attr="sleep") | ast.Name(id="sleep"):
            return True
    return False


def calls(under: str, which: Callable[[ast.Call], bool]) -> list[str]:
    """Where calls of a kind are."""
    return [
        f"{repo.name(path)}:{node.lineno}"
        for path in repo.files(".py", under=under)
        for node in ast.walk(repo.tree(path))
        if isinstance(node, ast.Call) and which(node)
    ]


def test_tests_do_not_sleep() -> None:
    found = calls("tests", is_sleep)
    assert not found, repo.listed("wait for the event, or move the virtual clock", found)


def asks_whether_masked(call: ast.Call) -> bool:
    """A function of sets of NumPy that imports ``numpy.ma``: ``np.unique`` does so unless it returns more."""
    match call.func:
        case ast.Attribute(value=ast.Name(id="np"), attr="unique"):
            return not any((keyword.arg or "").startswith("return_") for keyword in call.keywords)
        case ast.Attribute(value=ast.Name(id="np"), attr="intersect1d" | "union1d" | "setdiff1d" | "setxor1d"):
            return not any(keyword.arg == "assume_unique" for keyword in call.keywords)
    return False


def test_no_cycle_imports_masked_arrays() -> None:
    """The import of ``numpy.ma`` costs 40 ms and 8 MB in the middle of the first cycle."""
    found = calls("src", asks_whether_masked)
    assert not found, repo.listed("use `algorithms.groups.distinct`, or a mask of `np.isin`", found)


def test_unfinished_work_says_why() -> None:
    found = [
        f"{repo.name(path)}:{number}: {line.strip()}"
        for path in repo.files(".py", ".js", ".sh", ".yaml", ".yml")
        for number, line in enumerate(repo.text(path).splitlines(), 1)
        if (hit := UNFINISHED.search(line)) and not REASON.search(hit["rest"])
    ]
    assert not found, repo.listed(
        "say what is missing and `because …`, `until …` or `once …`; or do it, or file it", found
    )


def test_no_merge_was_left_undone() -> None:
    marks = ("<" * 7 + " ", ">" * 7 + " ", "|" * 7 + " ")
    found = [
        f"{repo.name(path)}:{number}"
        for path in repo.files(".py", ".md", ".js", ".sh", ".yaml", ".yml", ".toml", ".txt", ".json")
        for number, line in enumerate(repo.text(path).splitlines(), 1)
        if line.startswith(marks)
    ]
    assert not found, repo.listed("choose one side", found)


def test_modules_say_what_they_are() -> None:
    """The first thing in a module is the line a reader needs; an empty __init__ needs none."""
    silent = [
        repo.name(path)
        for folder in ("src", "tests/conformance/runner", "tests/conformance/tables")
        for path in repo.files(".py", under=folder)
        if repo.tree(path).body and ast.get_docstring(repo.tree(path)) is None
    ]
    assert not silent, repo.listed("a module begins with a docstring", silent)
