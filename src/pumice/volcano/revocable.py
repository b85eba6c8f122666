"""Zones that may be used between two times of day. Source: Volcano tdm (spec 04 §12).

A window that ends at or before its beginning ends the next day. It is that of the day: before its beginning a zone is
not active, even where the window of the day before has not ended yet. Days and times are those of UTC (decision 0015).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

DAY = 86_400.0
_WINDOW = re.compile(r"\s*([0-9]{1,2}):([0-9]{2})\s*-\s*([0-9]{1,2}):([0-9]{2})\s*", re.ASCII)


class WindowError(ValueError):
    """A text that is no window."""


class Window(Struct, frozen=True):
    """``start`` and ``end`` in seconds since midnight."""

    start: float
    end: float

    def holds(self, now: float) -> bool:
        """Whether a moment (seconds since the epoch), to the second, is within."""
        return self.start <= now // 1 % DAY <= self.end

    def changes_after(self, now: float) -> float:
        """The next moment at which ``holds`` may answer otherwise."""
        midnight = now // DAY * DAY
        moments = (midnight + self.start, midnight + self.end + 1, midnight + DAY)
        return min(moment for moment in moments if moment > now)


def parse_window(text: str) -> Window:
    """``9:30-18:00``. Raises: WindowError."""
    found = _WINDOW.fullmatch(text)
    if found is None:
        raise WindowError(f"found {text[:80]!r}, wanted two times such as 9:30-18:00")
    hours = (int(found[1]), int(found[3]))
    minutes = (int(found[2]), int(found[4]))
    if max(hours) > 23 or max(minutes) > 59:
        raise WindowError(f"found {text[:80]!r}, wanted times from 0:00 to 23:59")
    start, end = (3600.0 * h + 60.0 * m for h, m in zip(hours, minutes, strict=True))
    return Window(start, end if end > start else end + DAY)


class Zones(Struct, frozen=True):
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
