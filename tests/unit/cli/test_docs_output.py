"""What the pages show is what is printed now: each block with a command and its output is run."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from click.testing import CliRunner

from pumice.cli.main import main

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
BLOCK = re.compile(r"^```console\n(?P<body>.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(
    r"\$ (?:\.venv/bin/)?pumice (?P<words>(?:schedule|simulate|compare|check-conf|explain|whatif|next|story|top) .*)"
)
FILE_OPTIONS = ("--report", "--jobs", "--events")


def shown() -> list[tuple[str, list[str], list[str]]]:
    """(page, words of the command, lines of output) of each command whose output is shown."""
    found = []
    for page in PAGES:
        for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
            first, *rest = block["body"].replace("\\\n", " ").splitlines()
            command = COMMAND.fullmatch(first)
            if command and rest and not any(line.startswith("$ ") for line in rest):
                found.append((page.relative_to(ROOT).as_posix(), shlex.split(command["words"]), rest))
    return found


SHOWN = shown()


def test_there_are_some() -> None:
    assert {words[0] for _, words, _ in SHOWN} >= {"schedule", "simulate", "compare"}


@cache
def printed(words: tuple[str, ...]) -> tuple[str, str]:
    """(standard output, that and standard error) of a command in the checkout; files are written elsewhere."""
    with TemporaryDirectory() as folder:
        given = [
            str(Path(folder, word)) if before in FILE_OPTIONS else word
            for before, word in zip(("", *words), words, strict=False)
        ]
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(ROOT)
            result = CliRunner().invoke(main, given, prog_name="pumice")
        return result.stdout.replace(f"{folder}/", ""), result.output.replace(f"{folder}/", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "words", "expected"), [pytest.param(*each, id=f"{each[0]}: {each[1][0]}") for each in SHOWN]
)
def test_output(page: str, words: list[str], expected: list[str]) -> None:
    beside = any(line.startswith(("note: ", "warning: ", "error: ")) for line in expected)  # a page may leave those out
    said = "\n".join(line.rstrip() for line in printed(tuple(words))[beside].splitlines())
    assert re.fullmatch(pattern(expected), said), said


def pattern(lines: list[str]) -> str:
    """A line with … alone matches any lines, … within a line matches anything there."""
    parts = []
    for line in lines:
        if line == "…":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*".join(re.escape(part) for part in line.split("…")) + r"\n?")
    return "".join(parts) + (r"(?:.*)" if lines[-1] == "…" else "")
