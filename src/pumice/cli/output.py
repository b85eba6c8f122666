"""Write files as a whole or not at all, JSON, tables, and messages beside them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from pumice.cli.console import Console
from pumice.cli.errors import FAILED, InputError, as_given
from pumice.runtime.printing import escaped, json_text

if TYPE_CHECKING:
    from pumice.runtime.files.snapshot_file import Cycle
    from pumice.runtime.problems.problem import Problem

PROBLEMS_SHOWN = 50
#: Standard output, as the name of a file.
STDOUT = Path("-")


@contextmanager
def written_whole(path: Path) -> Iterator[IO[str]]:
    """Yield a file that gets its name only when all is written; after any error it does not exist.

    ``-`` is standard output. What is not a regular file (a pipe, ``/dev/null``) is written as it is. Raises:
    InputError, OSError at once if the folder does not exist or is not writable.
    """
    if path == STDOUT:
        yield sys.stdout
        sys.stdout.flush()
        return
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist")
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8") as file:
            yield file
        return
    from pumice.runtime.files.replacing import replacing

    with replacing(path, "w", private=False) as file:
        yield file


def write_snapshot(path: Path, cycle: Cycle) -> None:
    """Write the snapshot of a cycle to a file, or to standard output. Raises: SnapshotError, OSError."""
    from pumice.runtime.files.snapshot_file import to_bytes, write_cycle

    if path == STDOUT:
        sys.stdout.buffer.write(to_bytes(cycle))
        sys.stdout.buffer.flush()
    else:
        write_cycle(path, cycle)


def takes_stdout(paths: Iterable[Path | None], *, as_json: bool) -> bool:
    """Return True if a file is standard output, so that nothing else may be written there.

    Raises: InputError if two want it.
    """
    count = sum(path == STDOUT for path in paths) + as_json
    if count > 1:
        raise InputError("standard output (-) can be used once, and --json uses it")
    return count == 1 and not as_json


def print_json(value: Any) -> None:
    """Print one JSON document to standard output."""
    click.echo(json_text(value, indent=2 if sys.stdout.isatty() else None))


def console() -> Console:
    """Return the console of standard output, for tables."""
    return Console(sys.stdout)


def say(text: str) -> None:
    """Print a message on a line of its own to standard error."""
    click.echo(escaped(as_given(text)), err=True)


def tell_input(problems: Iterable[Problem], notes: Iterable[str]) -> None:
    """Print what of the input cannot be used, and what was assumed while it was read."""
    tell_problems(problems)
    for note in notes:
        say(f"note: {note}")


def tell_problems(problems: Iterable[Problem], shown_max: int = PROBLEMS_SHOWN) -> None:
    """Print each problem on a line, the worst first, and the number of those beyond ``shown_max``."""
    from pumice.runtime.problems.problem import Severity

    order = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}
    listed = sorted(problems, key=lambda problem: order[problem.severity])
    for problem in listed[:shown_max]:
        say(str(problem))
    if len(listed) > shown_max:
        left = Counter(problem.severity.value for problem in listed[shown_max:])
        say("and " + ", ".join(f"{count} more {name}{'s' if count > 1 else ''}" for name, count in left.items()))


def fail_for(ctx: click.Context, problems: Iterable[Problem]) -> None:
    """End with exit code 1 if a part of the input could not be used, so that the answer is about the rest."""
    from pumice.runtime.problems.problem import Severity

    if any(problem.severity is Severity.ERROR for problem in problems):
        ctx.exit(FAILED)


def described(problems: Iterable[Problem]) -> list[dict[str, str]]:
    """Return problems as they are in JSON documents."""
    return [{"severity": p.severity.value, "where": as_given(p.where), "what": as_given(p.what)} for p in problems]
