"""Questions of a cycle to external programs over HTTP, bounded in time, in bytes, and in the total time of a cycle."""

from __future__ import annotations

import io
import ssl
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import SplitResult, urlsplit

import msgspec

from pumice.framework.cycle.ports import OutsideError

ANSWER_BYTES_MAX = 10 << 20
CYCLE_S = 5.0
_PART = 1 << 16


class HttpExtenders:
    """For one cycle, from its thread. ``clock``: seconds. ``cycle_s``: total time for all answers."""

    def __init__(
        self, clock: Callable[[], float], *, cycle_s: float = CYCLE_S, bytes_max: int = ANSWER_BYTES_MAX
    ) -> None:
        self._clock, self._left_s, self._bytes_max = clock, cycle_s, bytes_max

    def ask(self, url: str, question: Mapping[str, Any], within_s: float) -> Mapping[str, Any]:
        """Return the answer. Raises: OutsideError."""
        if self._left_s <= 0:
            raise OutsideError("the time for answers in this cycle is used up")
        began = self._clock()
        try:
            body = msgspec.json.encode(question)
            raw = self._posted(urlsplit(url), body, began + min(within_s, self._left_s))
            answer = msgspec.json.decode(raw) if raw else {}
        except (OSError, HTTPException, ValueError, RecursionError) as error:
            raise OutsideError(f"{type(error).__name__}: {str(error)[:200]}") from None
        finally:
            self._left_s -= self._clock() - began
        if not isinstance(answer, dict):
            raise OutsideError("the answer is not an object")
        return answer

    def _posted(self, url: SplitResult, body: bytes, until: float) -> bytes:
        """Return the body of the answer. Raises: OSError, HTTPException, ValueError, OutsideError."""
        connection = self._connection(url, self._rest(until))
        connection.connect()
        sock = connection.sock
        connection.sock = _Bounded(sock, lambda: self._rest(until))
        try:
            path = (url.path or "/") + (f"?{url.query}" if url.query else "")
            connection.request("POST", path, body, {"Content-Type": "application/json", "Connection": "close"})
            answer = connection.getresponse()
            if answer.status != 200:
                raise OutsideError(f"answered {answer.status}")
            return self._taken(answer)
        finally:
            sock.close()

    def _connection(self, url: SplitResult, rest: float) -> HTTPConnection:
        if url.scheme == "https":
            return HTTPSConnection(url.hostname or "", url.port, timeout=rest, context=ssl.create_default_context())
        return HTTPConnection(url.hostname or "", url.port, timeout=rest)

    def _taken(self, answer: HTTPResponse) -> bytes:
        parts, size = [], 0
        while part := answer.read1(_PART):
            size += len(part)
            if size > self._bytes_max:
                raise OutsideError(f"answered more than {self._bytes_max:,} bytes")
            parts.append(part)
        return b"".join(parts)

    def _rest(self, until: float) -> float:
        """Return the seconds left. Raises: TimeoutError."""
        rest = until - self._clock()
        if rest <= 0:
            raise TimeoutError("no answer in time")
        return rest


class _Bounded:
    """A socket for HTTP whose reads and writes together end in time, however small their parts are. ``rest``: returns
    the seconds left; raises TimeoutError if there are none."""

    def __init__(self, sock: Any, rest: Callable[[], float]) -> None:
        self._sock, self._rest = sock, rest

    def sendall(self, data: bytes) -> None:
        self._sock.settimeout(self._rest())
        self._sock.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self._sock, self._rest))

    def close(self) -> None:
        """Do nothing: an answer is read after its connection was closed, and the owner of the socket closes it."""


class _Reader(io.RawIOBase):
    def __init__(self, sock: Any, rest: Callable[[], float]) -> None:
        self._sock, self._rest = sock, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(self._rest())
        return int(self._sock.recv_into(buffer))
