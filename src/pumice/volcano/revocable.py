"""Zones that may be used between two times of day. Source: Volcano tdm (spec 04 §12).

A window that ends at or before its beginning ends the next day. It is that of the day: before its beginning a zone is
not active, even where the window of the day before has not ended yet.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

DAY = timedelta(days=1)
_WINDOW = re.compile(r"\s*([0-9]{1,2}):([0-9]{2})\s*-\s*([0-9]{1,2}):([0-9]{2})\s*", re.ASCII)


class WindowError(ValueError):
    """A text that is no window."""


@dataclass(frozen=True, slots=True)
class Window:
    """``start`` and ``end`` since the beginning of the day of the machine's time zone."""

    start: timedelta
    end: timedelta

    def on_day_of(self, now: float) -> tuple[float, float]:
        """When it begins and ends on the day of a moment; all in seconds since the epoch."""
        midnight = _local(now).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
        start, end = ((midnight + part).astimezone().timestamp() for part in (self.start, self.end))
        return start, end

    def holds(self, now: float) -> bool:
        """Whether a moment, to the second, is within."""
        start, end = self.on_day_of(now)
        return start <= int(now) <= end

    def changes_after(self, now: float) -> float:
        """The next moment at which ``holds`` may answer otherwise."""
        start, end = self.on_day_of(now)
        tomorrow = _local(now).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None) + DAY
        return min(moment for moment in (start, end + 1, tomorrow.astimezone().timestamp()) if moment > now)


def _local(now: float) -> datetime:
    return datetime.fromtimestamp(now, UTC).astimezone()


def parse_window(text: str) -> Window:
    """``9:30-18:00``. Raises: WindowError."""
    found = _WINDOW.fullmatch(text)
    if found is None:
        raise WindowError(f"found {text[:80]!r}, wanted two times such as 9:30-18:00")
    hours = (int(found[1]), int(found[3]))
    minutes = (int(found[2]), int(found[4]))
    if max(hours) > 23 or max(minutes) > 59:
        raise WindowError(f"found {text[:80]!r}, wanted times from 0:00 to 23:59")
    start, end = (timedelta(hours=h, minutes=m) for h, m in zip(hours, minutes, strict=True))
    return Window(start, end if end > start else end + DAY)


@dataclass(frozen=True, slots=True)
class Zones:
    """Windows by zone, and the texts of those that were given. None: a text that is no window."""

    windows: Mapping[str, Window | None]
    texts: Mapping[str, str]

    @staticmethod
    def read(texts: Mapping[str, str]) -> Zones:
        windows: dict[str, Window | None] = {}
        for zone, text in texts.items():
            try:
                windows[zone] = parse_window(text)
            except WindowError:
                windows[zone] = None
        return Zones(windows, texts)

    def objection(self, zone: str, now: float) -> str:
        """Why nothing may go to a zone now; empty where it may."""
        if zone not in self.windows:
            return f"revocable zone {zone} not support"
        window = self.windows[zone]
        if window is None:
            return f"revocable zone {self.texts[zone]} format error"
        return "" if window.holds(now) else f"current time beyond revocable zone {zone}:{self.texts[zone]}"
