"""Types of option values, and checks that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from pumice.cli.errors import InputError

#: Standard input, as the name of a file.
STDIN = "-"
_STDIN_IS_READ = "pumice.stdin"


class Span(click.ParamType[float]):
    """A length of time, in seconds: ``90``, ``90s``, ``1h30m``, ``7d``."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from pumice.runtime.spans import span_seconds

        try:
            return span_seconds(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


SPAN = Span()


def stdin_bytes(size_max: int = -1) -> bytes:
    """Return what standard input has, at most so many bytes. Raises: InputError if this command has read it before."""
    meta = click.get_current_context().meta
    if meta.get(_STDIN_IS_READ):
        raise InputError("standard input (-) can be read once")
    meta[_STDIN_IS_READ] = True
    return sys.stdin.buffer.read(size_max)


def require_there(paths: Iterable[str]) -> None:
    """Raise InputError that names every path that does not exist. ``kind:PATH`` names a trace and is not checked."""
    gone = [path for path in paths if not Path(path).exists() and not _names_a_trace(path)]
    if gone:
        raise InputError(f"{path}: no such file or folder" for path in gone)


def _names_a_trace(path: str) -> bool:
    from pumice.sim.traces.recognise import split

    return split(path) is not None


def engine_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--engine``: where simulations run."""
    return click.option(
        "--engine",
        default="local",
        show_default=True,
        metavar="E",
        help="Where to run: local, dask://HOST:PORT, ray (on this machine), or ray://HOST:PORT.",
    )(command)
