"""A file is one idea, a function is one step. The tables of exceptions only shrink: no new entry, no higher number."""

import ast
from collections.abc import Callable

import pytest

from tests.tidy import repo

FILE_LINES_MAX = 450
FUNCTION_LINES_MAX = 60
FOLDER_FILES_MAX = 20
#: What is held to these sizes: what is shipped, and the runner of recorded cases, which is a program too.
PROGRAMS = ("src", "tests/conformance/runner", "tests/conformance/tables")
SLACK = 25  # an entry this far above the truth must be lowered

LONG_FILES: dict[str, int] = {}
LONG_FUNCTIONS: dict[str, int] = {}


def file_lengths() -> dict[str, int]:
    paths = [p for folder in PROGRAMS for p in repo.files(".py", ".js", ".css", ".html", under=folder)]
    return {repo.name(p): repo.text(p).count("\n") for p in paths if "vendor" not in p.parts}


def function_lengths() -> dict[str, int]:
    """`path::Class.function` -> lines from `def` to the last statement, without decorators."""
    found: dict[str, int] = {}

    def walk(node: ast.AST, where: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{where}{child.name}"
                if not isinstance(child, ast.ClassDef):
                    lines = (child.end_lineno or child.lineno) - child.lineno + 1
                    found[inner] = max(lines, found.get(inner, 0))  # overloads and properties share a name
                walk(child, inner + ".")
            else:
                walk(child, where)

    for path in (p for folder in PROGRAMS for p in repo.files(".py", under=folder)):
        walk(repo.tree(path), repo.name(path) + "::")
    return found


#: What ties others together and has to stay small enough to be read at once.
SMALL_FILES = {"src/pumice/framework/cycle/session.py": 120}


@pytest.mark.parametrize("name", SMALL_FILES)
def test_what_ties_others_together_is_read_at_once(name: str) -> None:
    assert file_lengths()[name] <= SMALL_FILES[name]


@pytest.mark.parametrize(
    ("measure", "limit", "exceptions"),
    [
        pytest.param(file_lengths, FILE_LINES_MAX, LONG_FILES, id="files"),
        pytest.param(function_lengths, FUNCTION_LINES_MAX, LONG_FUNCTIONS, id="functions"),
    ],
)
def test_sizes(measure: Callable[[], dict[str, int]], limit: int, exceptions: dict[str, int]) -> None:
    actual = measure()
    too_long = [
        f"{what}: {lines} lines, at most {exceptions.get(what, limit)}"
        for what, lines in actual.items()
        if lines > exceptions.get(what, limit)
    ]
    assert not too_long, repo.listed("split it: it is two ideas", too_long)

    stale = [
        f"{what}: the entry says {entry}, the truth is {actual.get(what, 'gone')}"
        for what, entry in exceptions.items()
        if actual.get(what, 0) <= limit or entry - actual[what] >= SLACK
    ]
    assert not stale, repo.listed("take the entry out, or lower it", stale)


def body_lengths() -> list[int]:
    """Lines from `def` to the last statement of every function of src, without its docstring, in ascending order."""
    found = []
    for path in repo.files(".py", under="src"):
        for node in ast.walk(repo.tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[0]
                described = (first.end_lineno or first.lineno) - first.lineno + 1 if ast.get_docstring(node) else 0
                found.append((node.end_lineno or node.lineno) - node.lineno + 1 - described)
    return sorted(found)


def test_functions_are_short_as_a_rule() -> None:
    lengths = body_lengths()
    assert lengths[len(lengths) // 2] <= 6, "half of the functions"
    assert lengths[len(lengths) * 9 // 10] <= 17, "nine of ten"


def test_architecture_is_a_map() -> None:
    assert repo.text(repo.ROOT / "ARCHITECTURE.md").count("\n") <= 200


def test_a_folder_is_seen_at_a_glance() -> None:
    """Plugins apart: a policy language has as many as its reference, a file each."""
    folders: dict[str, int] = {}
    for path in (p for top in ("src", "tests") for p in repo.files(".py", under=top)):
        if path.name != "__init__.py" and path.parent.name != "plugins":
            folders[repo.name(path.parent)] = folders.get(repo.name(path.parent), 0) + 1
    full = [f"{name}: {count} modules" for name, count in folders.items() if count > FOLDER_FILES_MAX]
    assert not full, repo.listed(f"at most {FOLDER_FILES_MAX}: make folders of what belongs together", full)


#: Words `Any` in the code of the framework, an import counting once: 4 of a thousand lines. The number only falls.
ANY_MAX = 19


def test_the_framework_says_which_types_it_takes() -> None:
    """Plugins are written against it, and a type checker finds nothing wrong with what is passed as `Any`."""
    counts = {repo.name(path): words_any(repo.tree(path)) for path in repo.files(".py", under="src/pumice/framework")}
    listed = [f"{name}: {count}" for name, count in counts.items() if count]
    assert sum(counts.values()) <= ANY_MAX, repo.listed("write the type, or object for what is only passed on", listed)
    assert sum(counts.values()) == ANY_MAX, f"lower ANY_MAX to {sum(counts.values())}"


def words_any(tree: ast.AST) -> int:
    """Return how many words of the code, without texts and comments, are `Any`."""
    names = (
        node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute | ast.alias)
    )
    return sum(name == "Any" for name in names)
