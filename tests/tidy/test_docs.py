"""Pages say what is true: records are listed, rooms exist, commands in the examples can be typed."""

import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec

import click
import pytest

from tests.tidy import repo

DECISIONS = repo.ROOT / "docs" / "decisions"
CONSOLE_BLOCK = re.compile(r"^```console\n(?P<body>.*?)^```", re.MULTILINE | re.DOTALL)
REFERENCE = re.compile(
    r"\b[Dd]ecisions?[\s#:]+\d{4}\b(?:(?:, | and )\d{4}\b)*|decisions/\d{4}\b(?!-)|\[\d{4}\](?=\()|\brecords? \d{4}\b"
)
LINK = re.compile(r"\]\((?!\w+:|#)(?P<target>[^)#\s]+)")


def test_decisions_are_numbered_without_gaps_and_listed_in_order() -> None:
    records = [p.name for p in sorted(DECISIONS.glob("[0-9]*.md"))]
    assert [int(record[:4]) for record in records] == list(range(1, len(records) + 1))
    listed = re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", repo.text(DECISIONS / "README.md"))
    assert listed == records


def references(text: str) -> Iterator[str]:
    """The number of each decision that a text refers to: "decision 0001", "decisions 0001 and 0002", a link, a path."""
    for found in REFERENCE.finditer(text):
        yield from re.findall(r"\d{4}", found[0])


def test_references_to_decisions_resolve() -> None:
    there = {p.name[:4] for p in DECISIONS.glob("[0-9]*.md")}
    dead = [
        f"{repo.name(path)}: {number}"
        for path in repo.files(".py", ".md", ".toml", ".yaml")
        for number in references(repo.text(path))
        if number not in there
    ]
    assert not dead, repo.listed("no record has this number", dead)


def test_a_reference_is_found_over_the_end_of_a_line() -> None:
    one, two, three, four = "0001", "0002", "0003", "0004"
    text = f"(decision\n    {one}), see decisions {two} and {three}, docs/decisions/{four}, [{one}](x.md)"
    assert list(references(text)) == [one, two, three, four, one]


@pytest.mark.parametrize("record", [repo.name(p) for p in sorted(DECISIONS.glob("[0-9]*.md"))])
def test_decision_has_its_parts(record: str) -> None:
    headings = re.findall(r"^## (.*)$", repo.text(repo.ROOT / record), re.MULTILINE)
    assert headings[:3] == ["Context", "Choice", "What we gave up"]


def test_links_lead_somewhere() -> None:
    dead = [
        f"{repo.name(page)}: {hit['target']}"
        for page in repo.files(".md")
        for hit in LINK.finditer(repo.text(page))
        if not (page.parent / hit["target"]).exists()
    ]
    assert not dead, repo.listed("these links lead nowhere", dead)


def test_each_name_of_the_public_api_is_described() -> None:
    lines = repo.text(repo.ROOT / "docs" / "api.md").splitlines()
    assert [line for line in lines if line.startswith("| `") and line.endswith("|  |")] == []


def test_every_page_of_the_guide_is_listed() -> None:
    pages = {f"guide/{page.name}" for page in repo.files(".md", under="docs/guide")}
    listed = set(re.findall(r"\]\((guide/[\w-]+\.md)\)", repo.text(repo.ROOT / "docs" / "README.md")))
    assert listed == pages


def test_paths_on_the_map_are_there() -> None:
    """By their end, as the map writes them: ``table.py`` is that of some room, ``plugin/combine`` a module."""
    names = set(re.findall(r"`([\w./-]+(?:/|\.py|\.md)|[a-z]+/[\w-]+)`", repo.text(repo.ROOT / "ARCHITECTURE.md")))
    there = {f"/{repo.name(path)}" for path in repo.files()}
    there |= {path.removesuffix(".py") for path in there}
    there |= {path[:end] for path in there for end, letter in enumerate(path) if letter == "/"}
    missing = {name for name in names if not any(path.endswith(f"/{name.rstrip('/')}") for path in there)}
    assert missing == {"kai/consolidation", "ours/gpuplacement", "volcano/binpack"}, "these are names of a policy file"


def test_rooms_on_the_map_are_the_rooms_there_are() -> None:
    """ARCHITECTURE.md has a table with a row a room; *not yet* marks the ones that are only planned."""
    rows = re.findall(r"^\| `(\w+)(?:\.py|/)` \|(.*)$", repo.text(repo.ROOT / "ARCHITECTURE.md"), re.MULTILINE)
    built = {room for room, about in rows if "*not yet*" not in about}
    planned = {room for room, _ in rows} - built
    inside = [p.relative_to(repo.SRC) for p in repo.files(".py", under="src/pumice")]
    there = {p.parts[0].removesuffix(".py") for p in inside if p.name not in {"__init__.py", "__main__.py"}}
    assert there - built == set(), "built, but not on the map (or still marked *not yet*)"
    assert planned & there == set()


def console_commands() -> Iterator[tuple[str, list[str]]]:
    """(where, words after `pumice`) of each `$ pumice …` line in a console block; a trailing \\ continues the line."""
    for page in repo.files(".md"):
        for block in CONSOLE_BLOCK.finditer(repo.text(page)):
            for line in block["body"].replace("\\\n", " ").splitlines():
                if command := re.match(r"\$ (?:\.venv/bin/)?pumice\b(?P<rest>.*)", line):
                    words = shlex.split(command["rest"], comments=True)
                    yield f"{repo.name(page)}: {line}", words


def test_console_examples_can_be_typed() -> None:
    if find_spec("pumice.cli.main") is None:
        pytest.skip("there is no command line yet")
    main = import_module("pumice.cli.main").main
    wrong = []
    for where, words in console_commands():
        command, context = main, click.Context(main)
        while words and not words[0].startswith("-") and isinstance(command, click.Group):
            command = command.get_command(context, words.pop(0))
        if command is None:
            wrong.append(f"{where}: there is no such command")
            continue
        known = {o for p in command.get_params(context) for o in (*p.opts, *p.secondary_opts)}
        wrong += [f"{where}: no option {w}" for w in words if w.startswith("--") and w.split("=")[0] not in known]
    assert not wrong, repo.listed("what a page says to type must work", wrong)


def test_the_page_of_figures_is_no_diary() -> None:
    """A new figure takes the place of an old one; what it was before is in git."""
    lines = repo.text(repo.ROOT / "docs" / "performance.md").splitlines()
    assert sum(not line.startswith("| `") for line in lines) <= 97, "lines beside the rows of figures"
