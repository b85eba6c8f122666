"""Questions over HTTP on loopback: a valid answer, and invalid ones; each costs bounded time."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from time import monotonic

import pytest

from pumice.framework.cycle.ports import OutsideError
from pumice.runtime.serving.extenders import HttpExtenders

Answer = Callable[[socket.socket], None]


@contextmanager
def answering(answer: Answer) -> Iterator[str]:
    """A server on loopback that takes one connection at a time and answers it in one way."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    connection.recv(1 << 16)
                    answer(connection)

    thread = Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/prefix/verb"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def sends(*parts: bytes) -> Answer:
    def answer(connection: socket.socket) -> None:
        for part in parts:
            connection.sendall(part)

    return answer


def reply(body: bytes, status: bytes = b"200 OK") -> Answer:
    return sends(b"HTTP/1.1 " + status + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def for_ever(part: bytes, before: bytes = b"") -> Answer:
    def answer(connection: socket.socket) -> None:
        connection.sendall(before)
        while True:
            connection.sendall(part)

    return answer


def hangs(connection: socket.socket) -> None:
    while connection.recv(1 << 16):  # what is left of the question, until the other side ends it
        pass


def drips(connection: socket.socket) -> None:
    """A head that never ends, a byte at a time: each comes in time, all together do not."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    connection.settimeout(0.01)
    while True:
        connection.sendall(b"x")
        with suppress(TimeoutError):
            if not connection.recv(1 << 16):
                return


OK = b"HTTP/1.1 200 OK\r\n\r\n"


def test_an_answer_comes_back() -> None:
    asked = []

    def answer(connection: socket.socket) -> None:
        asked.append(True)
        reply(b'{"status": 1}')(connection)

    with answering(answer) as url:
        assert HttpExtenders(monotonic).ask(url, {"task": {"Name": "p"}}, 5.0) == {"status": 1}
    assert asked == [True]


def test_an_empty_answer_says_nothing() -> None:
    with answering(reply(b"")) as url:
        assert HttpExtenders(monotonic).ask(url, {}, 5.0) == {}


@pytest.mark.parametrize(
    ("answer", "said", "within_s"),
    [
        pytest.param(reply(b"no", b"500 No"), "answered 500", 5.0, id="an error"),
        pytest.param(
            reply(b"", b"302 Found\r\nLocation: http://127.0.0.1:1/"), "answered 302", 5.0, id="sends elsewhere"
        ),
        pytest.param(reply(b"<html>"), "DecodeError", 5.0, id="no JSON"),
        pytest.param(reply(b"[1]"), "not an object", 5.0, id="not an object"),
        pytest.param(reply(b"[" * 90_000), "Recursion|Decode", 5.0, id="brackets without end"),
        pytest.param(sends(b"hello\r\n"), "BadStatusLine", 5.0, id="no HTTP"),
        pytest.param(
            for_ever(b"x" * 65536, b"HTTP/1.1 200 OK\r\n\r\n"), "more than 100,000 bytes", 5.0, id="without end"
        ),
        pytest.param(
            for_ever(b"x" * 65536, b"HTTP/1.1 200 OK\r\nContent-Length: 5368709120\r\n\r\n"),
            "more than 100,000 bytes",
            5.0,
            id="five gigabytes",
        ),
        pytest.param(for_ever(b"x" * 65536), "LineTooLong|BadStatusLine", 5.0, id="a head without end"),
        pytest.param(hangs, "TimeoutError", 0.05, id="hangs"),
        pytest.param(drips, "TimeoutError", 0.1, id="a byte at a time"),
    ],
)
def test_what_nobody_should_answer_is_an_error(answer: Answer, said: str, within_s: float) -> None:
    with answering(answer) as url, pytest.raises(OutsideError, match=said):
        HttpExtenders(monotonic, bytes_max=100_000).ask(url, {}, within_s)


def test_who_is_not_there_is_an_error() -> None:
    with pytest.raises(OutsideError):
        HttpExtenders(monotonic).ask("http://127.0.0.1:1/", {}, 5.0)


def test_a_cycle_waits_so_long_and_no_longer() -> None:
    moments = iter([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 4.0, 9.0])
    outside = HttpExtenders(lambda: next(moments, 9.0), cycle_s=5.0)
    with answering(hangs) as url:
        for _ in range(3):
            with suppress(OutsideError):
                outside.ask(url, {}, 0.05)
    with pytest.raises(OutsideError, match="time for answers in this cycle is used up"):
        outside.ask("http://127.0.0.1:1/", {}, 1.0)
