"""How long at least one job had been waiting longer than prompt service takes."""

from __future__ import annotations

from collections import deque

from pumice.sim.measures.window import Window


class Crowd:
    """Is notified of the beginning and end of each wait, in order of time. Exact, also between these times."""

    def __init__(self, start: float, prompt_s: float, window: Window) -> None:
        self._prompt_s = prompt_s
        self._window = window
        self._at = start
        self._due: deque[tuple[float, str]] = deque()  # when it will have been too long, oldest first
        self._waiting: set[str] = set()
        self._late: set[str] = set()

    def waits(self, key: str, now: float) -> None:
        """A wait begins."""
        self._waiting.add(key)
        self._due.append((now + self._prompt_s, key))

    def over(self, key: str) -> None:
        """A wait ends."""
        self._waiting.discard(key)
        self._late.discard(key)

    def seconds(self, now: float) -> float:
        """Return the seconds of the window since the last call in which at least one had waited longer than
        ``prompt_s``."""
        found, due = 0.0, self._due
        while due and due[0][0] <= now:
            moment, key = due.popleft()
            if key not in self._waiting:
                continue
            if not self._late:
                self._at = moment
            self._late.add(key)
        if self._late:
            found = self._window.overlap(self._at, now)
        self._at = now
        return found
