"""Plain English in the rooms whose docstrings and comments have been rewritten; the list of rooms grows."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy import repo

ROOMS = (
    "algorithms",
    "answers",
    "apiserver",
    "cli",
    "columns",
    "framework",
    "kai",
    "kube",
    "library",
    "model",
    "ours",
    "placing",
    "reasons",
    "report",
    "runtime",
    "sim",
    "state",
    "sweeps",
    "testing",
    "volcano",
    "web",
)
#: The least part of lines, in percent, that must be comments in a room. A floor may be raised, and never lowered.
COMMENTS_MIN = {
    "algorithms": 6.0,
    "columns": 6.0,
    "framework": 6.0,
    "kai": 6.0,
    "model": 6.0,
    "ours": 6.1,
    "placing": 6.0,
    "state": 6.0,
    "volcano": 6.0,
}
PEOPLE = re.compile(r"\b(nobody|somebody|anybody|whoever|whom|told|untold|befall\w*)\b", re.IGNORECASE)
DANGLING = re.compile(r"(The same|And|But|Or|Likewise|Also|Too)\b")
#: Words with too many meanings, also as parts of names, and "turn" where it is no verb: say equal, preferred, is,
#: order, round, iteration.
VAGUE = re.compile(
    r"(?<![a-z])(alike|wish(es|ed|ing)?|stands?|stood|standing)(?![a-z])"
    r"|\b(a|the|its|their|one|first|next|last|this|each) turn\b|\b(in|the|their) turns\b",
    re.IGNORECASE,
)
SPEC = re.compile(r"\bspec (§|\d\d\b)")
#: A line that is a comment, except for headings (``# -- moves --``) and directives to tools, which give no reasons.
COMMENT = re.compile(r"\s*#:? (?!--|type:|noqa|fmt:)")


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """The line and the text of each docstring in a module."""
    for node in ast.walk(repo.tree(path)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and (
            text := ast.get_docstring(node)
        ):
            yield node.body[0].lineno, text


@pytest.mark.parametrize("room", ROOMS)
def test_no_docstring_begins_with_dangling_words(room: str) -> None:
    found = [
        f"{repo.name(path)}:{line}: {text.splitlines()[0]}"
        for path in repo.files(".py", under=f"src/pumice/{room}")
        for line, text in docstrings(path)
        if DANGLING.match(text)
    ]
    assert not found, repo.listed("a docstring can be read without the one before it", found)


@pytest.mark.parametrize("room", ROOMS)
def test_lines_name_things_and_sources(room: str) -> None:
    found = [
        f"{repo.name(path)}:{number}: {line.strip()}"
        for path in repo.files(".py", under=f"src/pumice/{room}")
        for number, line in enumerate(repo.text(path).splitlines(), 1)
        if PEOPLE.search(line) or VAGUE.search(line) or SPEC.search(line)
    ]
    assert not found, repo.listed("name the thing that is meant, and a source that a reader can open", found)


@pytest.mark.parametrize("folder", ["tests", "bench", "docs", "examples", "scripts"])
def test_prose_beside_the_code_names_things(folder: str) -> None:
    found = [
        f"{repo.name(path)}:{line}: {text}"
        for path in repo.files(".py", under=folder)
        # This file has the forbidden words in its rules.
        if path.name != Path(__file__).name
        for line, text in prose(path)
        if PEOPLE.search(text)
    ]
    assert not found, repo.listed("name the thing that is meant", found)


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of docstrings and comments in a module, by number."""
    for first, text in docstrings(path):
        yield from enumerate(text.splitlines(), first)
    for number, line in enumerate(repo.text(path).splitlines(), 1):
        _, mark, comment = line.partition("# ")
        if mark:
            yield number, comment


def test_pages_name_things() -> None:
    found = [
        f"{repo.name(path)}:{number}: {line.strip()}"
        for path in repo.files(".md")
        for number, line in enumerate(repo.text(path).splitlines(), 1)
        # What was renamed is named by its old name in the changelog.
        if path.name != "CHANGELOG.md" and "decisions" not in path.parts and PEOPLE.search(line)
    ]
    assert not found, repo.listed("name the thing that is meant", found)


def test_tests_use_words_with_one_meaning() -> None:
    found = [
        f"{repo.name(path)}:{number}: {line.strip()}"
        for path in repo.files(".py", under="tests")
        # This file has the forbidden words in its rules.
        if path.name != Path(__file__).name
        for number, line in enumerate(repo.text(path).splitlines(), 1)
        if VAGUE.search(line)
    ]
    assert not found, repo.listed("say equal, preferred, is, order, round or iteration", found)


@pytest.mark.parametrize("room", COMMENTS_MIN)
def test_comments_say_why_often_enough(room: str) -> None:
    lines = [line for path in repo.files(".py", under=f"src/pumice/{room}") for line in repo.text(path).splitlines()]
    part = 100 * sum(COMMENT.match(line) is not None for line in lines) / len(lines)
    assert part >= COMMENTS_MIN[room], f"{part:.1f} % of the lines of {room} are comments: say why, not what"


def test_every_folder_is_a_room() -> None:
    folders = {path.relative_to(repo.ROOT / "src/pumice").parts[0] for path in repo.files(".py", under="src/pumice")}
    assert {each for each in folders if not each.endswith(".py")} == set(ROOMS)


def test_rules_find_what_they_forbid() -> None:
    assert PEOPLE.search("for whom") and PEOPLE.search("Nobody waits") and SPEC.search("spec 03 §2")
    assert VAGUE.search("x.leave_standing()") and VAGUE.search("Jobs fail alike") and VAGUE.search("of its turn.")
    assert not any(map(VAGUE.search, ("def in_turn(", "each in turn", "Return it", "understands")))
    assert DANGLING.match("The same, but") and not DANGLING.match("Another")
    assert COMMENT.match("    # Copied, because") and COMMENT.match("#: At most")
    assert not any(map(COMMENT.match, ("x = 1  # why", "    # -- moves ---", "# type: ignore", "#!/bin/sh")))
