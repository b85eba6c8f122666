"""Logging of a running scheduler: levels as with klog's ``-v``, one line per entry, text or JSON.

Names come from users: in text, everything that is not printable is escaped, so that nothing looks like another entry. A
problem that affects ten thousand pods at once is logged for some of them, with the number of the others.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import IO, Any

from pumice.kube.api.backoff import TokenBucket
from pumice.runtime.printing import escaped

#: klog's levels as levels of ``logging``: a higher verbosity is a lower level.
V2, V3, V4, V5 = 19, 15, logging.DEBUG, 5
_LEVELS = {0: logging.INFO, 1: logging.INFO, 2: V2, 3: V3, 4: V4, 5: V5}
_KINDS_MAX = 1000
_LETTERS = ((logging.CRITICAL, "F"), (logging.ERROR, "E"), (logging.WARNING, "W"))


def set_up(verbosity: int, as_json: bool, stream: IO[str] | None = None) -> None:
    """Write Pumice's entries at this ``-v`` to ``stream`` (standard error), and warnings of other libraries."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.addFilter(LogRateLimit())
    handler.setFormatter(JsonLines() if as_json else TextLines())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("pumice").setLevel(level_of(verbosity))


def level_of(verbosity: int) -> int:
    return _LEVELS[min(max(verbosity, 0), 5)]


def verbosity_of(level: int) -> int:
    """Return the smallest ``-v`` with this level."""
    return next((verbosity for verbosity, found in _LEVELS.items() if found <= level), max(_LEVELS))


class LogRateLimit(logging.Filter):
    """Lets ``at_once`` entries of a kind pass, then one per second. The next that passes says how many did not.

    A kind is what one place of the program logs, whatever it is about. Entries with ``fields`` always pass, and from
    ``-v 3`` on nothing is left out.
    """

    def __init__(self, at_once: int = 50, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._at_once, self._clock = at_once, clock
        self._kinds: dict[tuple[str, str], tuple[TokenBucket, list[int]]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if hasattr(record, "fields") or logging.getLogger("pumice").isEnabledFor(V3):
            return True
        kind = record.name, str(record.msg)
        if len(self._kinds) > _KINDS_MAX:
            self._kinds.clear()  # a library's messages may all differ
        bucket, left_out = self._kinds.setdefault(kind, (TokenBucket(1.0, self._at_once, self._clock), [0]))
        if not bucket.try_take():
            left_out[0] += 1
            return False
        record.left_out, left_out[0] = left_out[0], 0
        return True


class TextLines(logging.Formatter):
    """``2026-01-31T12:00:00.123Z I kube: message``. A traceback follows on indented lines."""

    def format(self, record: logging.LogRecord) -> str:
        letter = next((letter for level, letter in _LETTERS if record.levelno >= level), "I")
        others = f" (and {left_out} others like it)" if (left_out := getattr(record, "left_out", 0)) else ""
        lines = [f"{_time(record)} {letter} {_room(record)}: {escaped(record.getMessage())}{others}"]
        if record.exc_info:
            lines += [f"    {escaped(line)}" for line in self.formatException(record.exc_info).splitlines()]
        return "\n".join(lines)


class JsonLines(logging.Formatter):
    """One JSON object per line: time, level, v, room, message, and what an entry has as ``extra={"fields": …}``."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": _time(record),
            "level": "info" if record.levelno <= logging.INFO else record.levelname.lower(),
            "v": next((v for v, level in sorted(_LEVELS.items()) if level <= record.levelno), 5),
            "room": _room(record),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if left_out := getattr(record, "left_out", 0):
            entry["left_out"] = left_out
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def _time(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _room(record: logging.LogRecord) -> str:
    return record.name.removeprefix("pumice.")
