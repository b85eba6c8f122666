"""Commands and flags that pages and help texts name exist, and tables in pages have rows."""

import re
from collections.abc import Iterator
from functools import cache

import click
import pytest

from pumice.cli.faults import SHARES, SPANS
from pumice.cli.main import main
from tests.tidy import repo

FENCE = re.compile(r"^```(?P<kind>\w*)\n(?P<body>.*?)^```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:^(?: {4}|\t)\S.*\n)+", re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")
#: Blocks of these kinds hold what is typed; others hold files.
TYPED = {"console", "sh", "bash", ""}
#: Flags of other tools that pages name in a sentence, without the tool before them.
OF_OTHERS = {"--attach"}
SEPARATOR = re.compile(r"\|[\s:|-]+\|\s*")


@cache
def flags() -> dict[str, frozenset[str]]:
    """Command -> its flags, as click has them. ``""``: those of ``pumice`` itself."""
    context = click.Context(main, info_name="pumice")
    commands = {name: main.get_command(context, name) for name in main.list_commands(context)}
    found = {name: _of(command, context) for name, command in {**commands, "": main}.items() if command}
    assert found.keys() >= {"schedule", "simulate", "run"}
    return found


def _of(command: click.Command, context: click.Context) -> frozenset[str]:
    known = (flag for each in command.get_params(context) for flag in (*each.opts, *each.secondary_opts))
    return frozenset(known) | {"--help"}


@cache
def flags_of_bench() -> frozenset[str]:
    """What ``python -m bench`` and its modules take."""
    text = "\n".join(repo.text(path) for path in repo.files(".py", under="bench"))
    return frozenset(re.findall(r'"(--[a-z][\w-]*)"', text))


def pages() -> list[str]:
    return [repo.name(page) for page in repo.files(".md") if "decisions" not in page.parts]


def code_in(text: str) -> Iterator[str]:
    """Each line of a page that is typed, and each span of code within a sentence."""
    for block in FENCE.finditer(text):
        if block["kind"] in TYPED:
            lines = block["body"].replace("\\\n", " ").splitlines()
            prompts = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
            yield from prompts or (lines if block["kind"] != "console" else [])
    rest = FENCE.sub("", text)
    for block in INDENTED.finditer(rest):
        yield from (line.strip().removeprefix("$ ") for line in block[0].splitlines())
    yield from SPAN.findall(rest)


def wrong(code: str) -> Iterator[str]:
    """What is not there, of the commands and flags in a line or a span."""
    everything = frozenset().union(*flags().values()) | flags_of_bench() | OF_OTHERS
    for part in re.split(r"\||&&|;| -- ", code):
        words = part.split("#")[0].split()
        while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
            words = words[1:]
        if not words:
            continue
        if words[0].rpartition("/")[2] == "pumice":
            names = [word for word in words[1:2] if re.fullmatch(r"[a-z][a-z-]*", word)]
            yield from (f"no command: pumice {name}" for name in names if name not in flags())
            known = flags().get(names[0], everything) if names else everything
            yield from (f"no flag of {' '.join(words[:2])}: {flag}" for flag in FLAG.findall(part) if flag not in known)
        elif words[0].startswith("--"):
            yield from (f"no flag of any command: {flag}" for flag in FLAG.findall(part) if flag not in everything)


@pytest.mark.parametrize("page", pages())
def test_commands_and_flags_of_a_page_exist(page: str) -> None:
    found = [f"`{code}`: {what}" for code in code_in(repo.text(repo.ROOT / page)) for what in wrong(code)]
    assert not found, repo.listed(page, found)


@pytest.mark.parametrize(("command", "pages"), [("simulate", ["simulate"]), ("compare", ["compare", "simulate"])])
def test_each_flag_of_a_command_is_on_its_page(command: str, pages: list[str]) -> None:
    text = "\n".join(repo.text(repo.ROOT / "docs" / "guide" / f"{page}.md") for page in pages)
    named = set(FLAG.findall(text))
    missing = sorted(flag for flag in flags()[command] - {"--help"} if flag.startswith("--") and flag not in named)
    assert not missing, repo.listed(f"docs/guide/{pages[0]}.md does not name", missing)


def test_each_fault_is_on_the_page_of_simulations() -> None:
    page = repo.text(repo.ROOT / "docs" / "guide" / "simulate.md")
    assert [name for name in (*SHARES, *SPANS) if f"`{name}=" not in page] == []


def test_commands_and_flags_in_help_texts_exist() -> None:
    context = click.Context(main, info_name="pumice")
    found = []
    for name in ("", *main.list_commands(context)):
        command = main.get_command(context, name) if name else main
        assert command is not None
        texts = [command.help or "", *(getattr(each, "help", None) or "" for each in command.get_params(context))]
        for text in texts:
            found += [f"{name}: {what}" for line in text.splitlines() for what in wrong(line.strip())]
            found += [f"{name}: {what}" for span in SPAN.findall(text) for what in wrong(span)]
            known = frozenset().union(*flags().values()) | {"--all-namespaces"}
            prose = [line for line in text.splitlines() if not re.search(r"\b(kubectl|helm|jq)\b", line)]
            found += [f"{name}: no flag {flag}" for flag in FLAG.findall("\n".join(prose)) if flag not in known]
    assert not found, repo.listed("help texts", found)


def test_a_command_and_a_flag_that_are_not_there_are_found() -> None:
    assert list(wrong("pumice why ml/tf")) == ["no command: pumice why"]
    assert list(wrong("kubectl get -o yaml | pumice check-conf --bogus -")) == ["no flag of pumice check-conf: --bogus"]
    assert list(wrong("--no-such-flag=1")) == ["no flag of any command: --no-such-flag"]
    assert list(wrong("pumice simulate examples/demo --report demo.html")) == []


def tables(text: str) -> Iterator[tuple[int, int]]:
    """(line of the heading, number of rows below) of each table."""
    lines = FENCE.sub(lambda block: "\n" * block[0].count("\n"), text).splitlines()
    for number, line in enumerate(lines):
        if SEPARATOR.fullmatch(line):
            rows = 0
            while number + 1 + rows < len(lines) and lines[number + 1 + rows].startswith("|"):
                rows += 1
            yield number, rows


@pytest.mark.parametrize("page", [repo.name(page) for page in repo.files(".md")])
def test_tables_have_rows(page: str) -> None:
    empty = [f"line {line}" for line, rows in tables(repo.text(repo.ROOT / page)) if not rows]
    assert not empty, repo.listed(f"{page}: a table without rows", empty)


def test_a_table_without_rows_is_found() -> None:
    assert [rows for _, rows in tables("| a | b |\n|---|--:|\n\nText.\n\n| a |\n|---|\n| 1 |\n")] == [0, 1]
