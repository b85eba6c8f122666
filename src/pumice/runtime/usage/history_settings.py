"""Settings of the history of queues: the section ``usageDBConfig`` of a policy file.

Source: KAI's usage database (time-aware fairness): its keys, its series, and its rule that older samples count less.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from pumice.model.instants import epoch_of
from pumice.model.plain_words import kind_of
from pumice.model.pod import EMPTY_MAP
from pumice.model.quantity import DurationError, parse_duration
from pumice.runtime.controllers.cron_schedule import Cron, ScheduleError, read_schedule
from pumice.runtime.usage.settings import PROMETHEUS, SourceSettings, source_problems

_DAY_S, RESOLUTION_S = 86_400.0, 60.0
_WINDOW_S, _INTERVAL_S = 7 * _DAY_S, 60.0
_WINDOW_MAX_S = 400 * _DAY_S  # each minute of it is a sample in the database
_SPAN = re.compile(r"(\d{1,4})([dw])")
#: Name of the section in a policy file.
HISTORY = "usageDBConfig"
_CLIENT, _ADDRESS, _PARAMS = "clientType", "connectionString", "usageParams"
_VARIABLE, _VARIABLE_NAME = "connectionStringEnvVar", re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}")
SLIDING, TUMBLING, BY_CRON = "sliding", "tumbling", "cron"
_SPANS = ("windowSize", "halfLifePeriod", "fetchInterval")
_START, _CRON = "tumblingWindowStartTime", "cronString"


class HistorySettings(Struct, frozen=True):
    """``source``: the program to ask, none if its type is "". ``tumbling_from``: when the first of consecutive windows
    began, seconds since the epoch; ``begins``: when each of them does; both None: the window ends now. ``half_life_s``:
    age at which a sample counts half; None: all count the same. ``trouble``: why the address in the environment cannot
    be used, without its value."""

    source: SourceSettings = field(default_factory=SourceSettings)
    window_s: float = _WINDOW_S
    half_life_s: float | None = None
    tumbling_from: float | None = None
    begins: Cron | None = None
    trouble: str = ""

    @classmethod
    def read(cls, section: Mapping[str, Any], environ: Mapping[str, str] = EMPTY_MAP) -> HistorySettings:
        """Return the settings in the section and in the variable that it names. If invalid, no program is asked."""
        if not section.get(_CLIENT) or any(True for _ in history_problems(section)):
            return cls()
        params = section.get(_PARAMS) or {}
        window, half_life, interval = (_seconds(params.get(key)) for key in _SPANS)
        variable = section.get(_VARIABLE, "")
        address = environ.get(variable, "") if variable else section[_ADDRESS]
        trouble = f"{_VARIABLE}: {variable} is not set" if variable and any(_address_problems(address)) else ""
        source = SourceSettings(PROMETHEUS, address, max(interval or _INTERVAL_S, 1.0))
        kind = params.get("windowType")
        start = epoch_of(params[_START]) if kind == TUMBLING else None
        begins = _cron(params[_CRON]) if kind == BY_CRON else None
        return cls(source, window or _WINDOW_S, half_life, start, begins, trouble)

    def span_s(self, now: float) -> float:
        """Return how far back from ``now`` the window reaches."""
        if self.begins is not None:
            began = self.begins.latest(now - _WINDOW_MAX_S, now)
            return max(now - began, RESOLUTION_S) if began is not None else _WINDOW_MAX_S
        if self.tumbling_from is None:
            return self.window_s
        return max((now - self.tumbling_from) % self.window_s, RESOLUTION_S)


def history_problems(section: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each part that cannot be used."""
    kind, params = section.get(_CLIENT, ""), section.get(_PARAMS) or {}
    if kind != PROMETHEUS:
        if section:
            yield f"{_CLIENT}: found {kind!r:.80}, wanted {PROMETHEUS}"
        return
    if section.get(_VARIABLE):
        yield from _variable_problems(section)
    else:
        yield from _address_problems(section.get(_ADDRESS, ""))
    if not isinstance(params, Mapping):
        yield f"{_PARAMS}: found {kind_of(params)}, wanted a mapping"
        return
    yield from _window_problems(params)


def _address_problems(address: Any) -> Iterator[str]:
    for problem in source_problems({"type": PROMETHEUS, "address": address}):
        yield _ADDRESS + problem.removeprefix("address")


def _variable_problems(section: Mapping[str, Any]) -> Iterator[str]:
    name = section[_VARIABLE]
    if not isinstance(name, str) or not _VARIABLE_NAME.fullmatch(name):
        yield f"{_VARIABLE}: found {name!r:.80}, wanted the name of an environment variable"
    if section.get(_ADDRESS):
        yield f"{_VARIABLE}: there is a {_ADDRESS} too, wanted only one of them"


def _cron(text: Any) -> Cron:
    """Return a cron schedule. Raises: ScheduleError."""
    found = read_schedule(text) if isinstance(text, str) else None
    if not isinstance(found, Cron):
        raise ScheduleError(f"found {text!r:.80}, wanted a text such as 0 0 * * 1")
    return found


def _window_problems(params: Mapping[str, Any]) -> Iterator[str]:
    for key in _SPANS:
        try:
            _seconds(params.get(key))
        except DurationError as error:
            yield f"{_PARAMS}: {key}: {error}"
    kind = params.get("windowType", SLIDING)
    if kind not in (SLIDING, TUMBLING, BY_CRON):
        yield f"{_PARAMS}: windowType: found {kind!r:.80}, wanted {SLIDING}, {TUMBLING} or {BY_CRON}"
    if kind == BY_CRON:
        try:
            _cron(params.get(_CRON))
        except ScheduleError as error:
            yield f"{_PARAMS}: {_CRON}: {error}"
    if kind == TUMBLING and epoch_of(str(params.get(_START, ""))[:64]) is None:
        yield f"{_PARAMS}: {_START}: found {params.get(_START)!r:.80}, wanted a text such as 2026-01-01T00:00:00Z"


def _seconds(text: Any) -> float | None:
    """Return the seconds of ``90m``, ``7d`` or ``1w``; None if not given, or 0. Raises: DurationError."""
    if text in (None, "", "0", 0):
        return None
    days = _SPAN.fullmatch(str(text))
    found = int(days[1]) * _DAY_S * (7 if days[2] == "w" else 1) if days else parse_duration(str(text))
    if not 0 <= found <= _WINDOW_MAX_S:
        raise DurationError(f"found {text!r:.80}, wanted 0 to {_WINDOW_MAX_S / _DAY_S:g}d")
    return found or None
