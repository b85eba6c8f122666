"""Kinds of option values, and the checks that several commands share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from pumice.cli.errors import InputError

_DAY_S = 86_400.0
_SPAN_MAX_S = 100 * 365.25 * _DAY_S


class Span(click.ParamType[float]):
    """A length of time, in seconds: ``90``, ``90s``, ``1h30m``, ``7d``."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from pumice.model.quantity import DurationError, parse_duration

        text = str(value).strip()
        try:
            seconds = _plain(text)
            if seconds is None:
                seconds = parse_duration(text)
        except DurationError:
            seconds = -1.0
        if not 0 < seconds <= _SPAN_MAX_S:
            self.fail(f"found {text[:40]!r}, wanted a time above 0 such as 90s, 1h30m or 7d", param, ctx)
        return seconds


def _plain(text: str) -> float | None:
    """Seconds as a bare number, or days; None for anything else."""
    number, factor = (text[:-1], _DAY_S) if text.endswith("d") else (text, 1.0)
    try:
        return float(number) * factor
    except ValueError:
        return None


SPAN = Span()


def require_there(paths: Iterable[str]) -> None:
    """Raises: InputError naming every path that is not there; ``kind:PATH`` names a trace."""
    gone = [path for path in paths if not Path(path).exists() and not _names_a_trace(path)]
    if gone:
        raise InputError(f"{path}: no such file or folder" for path in gone)


def _names_a_trace(path: str) -> bool:
    kind, colon, rest = path.partition(":")
    return bool(colon and rest) and "/" not in kind
