"""Questions to a scheduler that runs: the commands that answer them, and asking them with ``--server``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import click

from pumice.cli.errors import FAILED, InputError

if TYPE_CHECKING:
    from pumice.kube.scheduler.answer_pages import AnswerPages, WordsOf

_TEXT_MAX = 512
_CHANGES_MAX = 32
_CHANGES = ("add-nodes", "drain", "set", "remove")
_AHEAD = ("starts", "within", "samples", "seed")
#: Simulations of one question at most: it also has to be answered in time.
_SAMPLES_MAX = 32
_PARAMETERS = {
    "/explain": ("job", "all", "ways", *_AHEAD, "format"),
    "/whatif": (*_CHANGES, "expect", "until", "format"),
    "/next": ("format",),
    "/jobs": (),
    "/queues": (),
    "/nodes": (),
    "/starts": (),
    "/policy": ("conf",),
}

server_option = click.option(
    "--server",
    default="",
    metavar="URL",
    help="Ask a scheduler that runs, at the address of its metrics, such as http://127.0.0.1:8080, in place of files.",
)


def words_of(flags: Sequence[str]) -> WordsOf:
    """Return what makes the words of the command that answers a question. ``flags``: further ones of the scheduler."""

    def words(
        path: str, given: Sequence[tuple[str, str]], snapshot: str, seen: frozenset[str] | None = None
    ) -> list[str]:
        for name, value in given:
            if name not in _PARAMETERS[path]:
                wanted = ", ".join(_PARAMETERS[path]) or "none"
                raise ValueError(f"found the parameter {name[:40]!r}, wanted {wanted}")
            if len(value) > _TEXT_MAX:
                raise ValueError(f"{name}: found {len(value):,} characters, wanted at most {_TEXT_MAX}")
        # Values follow = or --, so that none is read as a flag.
        only = [] if seen is None else [f"--for-namespaces={','.join(sorted(seen))}"]
        json = [] if ("format", "text") in given else ["--json"]
        if path == "/explain":
            return ["explain", *flags, *only, *json, *_explain(dict(given), snapshot)]
        if path == "/next":
            return ["next", *flags, *json, "--", snapshot]
        if path == "/whatif":
            return ["whatif", *flags, *json, *_changes(given), "--", snapshot]
        if path == "/policy":
            return ["pages", *flags, f"--try-policy={dict(given)['conf']}", "--", snapshot]
        return ["pages", *flags, *(only if path == "/jobs" else []), f"--print={path[1:]}", "--", snapshot]

    return words


def _explain(given: dict[str, str], snapshot: str) -> list[str]:
    ahead = _starts(given)
    if given.get("all") == "1":
        return ["--all", *ahead, "--", snapshot]
    if not given.get("job"):
        raise ValueError("wanted job=NAMESPACE/NAME, or all=1")
    return [*(["--no-ways"] if given.get("ways") == "0" else []), *ahead, "--", given["job"], snapshot]


def _starts(given: dict[str, str]) -> list[str]:
    """Return the words about expected starts."""
    if given.get("starts") != "1":
        if unused := next((name for name in _AHEAD[1:] if name in given), None):
            raise ValueError(f"{unused}: wanted starts=1 as well")
        return []
    samples = given.get("samples", "1")
    if not (samples.isascii() and samples.isdigit() and len(samples) < 4 and 1 <= int(samples) <= _SAMPLES_MAX):
        raise ValueError(f"samples={samples[:40]}: wanted a whole number from 1 to {_SAMPLES_MAX}")
    return ["--starts", *(f"--{name}={given[name]}" for name in _AHEAD[1:] if name in given)]


def _changes(given: Sequence[tuple[str, str]]) -> list[str]:
    found = [f"--{name}={value}" for name, value in given if name != "format"]
    if len(found) > _CHANGES_MAX:
        raise ValueError(f"found {len(found)} changes, wanted at most {_CHANGES_MAX}")
    if not any(name in _CHANGES for name, _ in given):
        raise ValueError(f"wanted a change: {', '.join(_CHANGES)}")
    return found


def answer_pages(plugins_dir: str, stack: AsyncExitStack) -> AnswerPages:
    """Return the pages that answer questions to a scheduler of this process, until the stack ends."""
    from pumice.kube.scheduler.answer_pages import AnswerPages

    # Names of the scheduler and a lenient policy are in the snapshot.
    found = AnswerPages(words_of([f"--plugins-dir={plugins_dir}"] if plugins_dir else []))
    stack.callback(found.close)
    return found


def ask(server: str, path: str, parameters: Iterable[tuple[str, str]]) -> tuple[str, int]:
    """Return the answer of a scheduler that runs, and the exit code of its command. Raises: InputError."""
    from pumice.library import asking
    from pumice.library.errors import InputError as Refused

    try:
        text, code = asking.ask(server, path, parameters)
    except Refused as error:
        raise InputError(f"--server: {error}") from None
    return text, FAILED if code == FAILED else 0
