"""Split chunks into lines with a limit: a line that does not end is an error and does not fill the memory."""

from __future__ import annotations

from pumice.kube.api.errors import TooLarge


class LineSplitter:
    """Takes chunks and returns complete lines, without their ends and without empty ones."""

    __slots__ = ("_held", "_held_bytes", "_line_bytes_max", "_what")

    def __init__(self, what: str, line_bytes_max: int) -> None:
        self._what = what
        self._line_bytes_max = line_bytes_max
        self._held: list[bytes] = []
        self._held_bytes = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add a chunk and return the lines that it completes. Raises: TooLarge."""
        *ended, rest = chunk.split(b"\n")
        if ended and self._held:
            ended[0] = b"".join((*self._held, ended[0]))
            self._held, self._held_bytes = [], 0
        if rest:
            self._held.append(rest)
            self._held_bytes += len(rest)
        if self._held_bytes > self._line_bytes_max or any(len(line) > self._line_bytes_max for line in ended):
            self._held = []
            raise TooLarge(f"one line of {self._what}", self._line_bytes_max)
        return [line for line in ended if line]
