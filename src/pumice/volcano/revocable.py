"""Read time windows of revocable zones. Source: Volcano tdm plugin.

Days and times are UTC (decision 0015).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

DAY = 86_400.0
# Two digits at most per part, ASCII only: a text that Volcano could not parse must not open a zone here.
_WINDOW = re.compile(r"\s*([0-9]{1,2}):([0-9]{2})\s*-\s*([0-9]{1,2}):([0-9]{2})\s*", re.ASCII)


class WindowError(ValueError):
    """The text is not a time window."""


class Window(Struct, frozen=True):
    """A time window of each day. ``start`` and ``end`` in seconds since midnight; ``end`` may be on the next day."""

    start: float
    end: float

    def holds(self, now: float) -> bool:
        """Return True if an instant, in seconds since the epoch, is in the window. Fractions of a second are
        ignored."""
        # Quirk of Volcano, kept on purpose: it builds the window of today only. A window that crosses midnight is
        # therefore not active between midnight and its end.
        return self.start <= now // 1 % DAY <= self.end

    def changes_after(self, now: float) -> float:
        """Return the next instant at which the answer of ``holds`` may change."""
        # The end counts as inside, so the answer changes one second after it; midnight is among the moments because a
        # window across it ends there.
        midnight = now // DAY * DAY
        moments = (midnight + self.start, midnight + self.end + 1, midnight + DAY)
        return min(moment for moment in moments if moment > now)


def parse_window(text: str) -> Window:
    """Read a window such as ``9:30-18:00``.

    Raises: WindowError.
    """
    found = _WINDOW.fullmatch(text)
    if found is None:
        raise WindowError(f"found {text[:80]!r}, wanted two times such as 9:30-18:00")
    hours = (int(found[1]), int(found[3]))
    minutes = (int(found[2]), int(found[4]))
    if max(hours) > 23 or max(minutes) > 59:
        raise WindowError(f"found {text[:80]!r}, wanted times from 0:00 to 23:59")
    start, end = (3600.0 * h + 60.0 * m for h, m in zip(hours, minutes, strict=True))
    # A window that ends at or before its start ends on the next day.
    return Window(start, end if end > start else end + DAY)


class Zones(Struct, frozen=True):
    """Windows by zone, and their texts. A window is None if its text is invalid."""

    windows: Mapping[str, Window | None]
    texts: Mapping[str, str]

    @staticmethod
    def read(texts: Mapping[str, str]) -> Zones:
        """Read the windows of all zones."""
        windows: dict[str, Window | None] = {}
        for zone, text in texts.items():
            try:
                windows[zone] = parse_window(text)
            except WindowError:
                # An invalid window is kept, because nodes of the zone are then rejected with the text as the reason.
                windows[zone] = None
        return Zones(windows, texts)

    def objection(self, zone: str, now: float) -> str:
        """Return why tasks may not use a zone now, or "" if they may."""
        # In Volcano's words, since users find these texts in the conditions of pods.
        if zone not in self.windows:
            return f"revocable zone {zone} not support"
        window = self.windows[zone]
        if window is None:
            return f"revocable zone {self.texts[zone]} format error"
        return "" if window.holds(now) else f"current time beyond revocable zone {zone}:{self.texts[zone]}"
