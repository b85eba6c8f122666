"""Addresses at which no scheduler answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

import pumice
from pumice.library.asking import ask


class Hello(BaseHTTPRequestHandler):
    """Another program than a scheduler."""

    def do_GET(self) -> None:
        self.send_response({"/absent": 404, "/moved": 302}.get(self.path, 200))
        if self.path == "/moved":
            self.send_header("Location", "/hello")
        self.end_headers()
        self.wfile.write(b"<html>hello</html>")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hello() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Hello) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("127.0.0.1:8080", "found '127.0.0.1:8080', wanted http:// or https:// and an address"),
        ("http://127.0.0.1:1", "http://127.0.0.1:1: "),
        ("http://127.0.0.1:port", "http://127.0.0.1:port: "),
    ],
)
def test_an_address_without_a_scheduler_is_named(url: str, said: str) -> None:
    with pytest.raises(pumice.InputError) as caught:
        pumice.connect(url)
    assert str(caught.value).startswith(said)


def test_a_page_that_is_not_there_is_named(hello: str) -> None:
    with pytest.raises(pumice.InputError, match="found no page /absent, wanted the address of a scheduler's metrics"):
        ask(hello, "/absent")


def test_a_redirect_is_not_followed_because_it_would_get_the_token(hello: str) -> None:
    with pytest.raises(pumice.InputError, match="<html>hello</html>"):
        ask(hello, "/moved")


def test_an_answer_of_another_program_is_no_answer(hello: str) -> None:
    with pytest.raises(pumice.InputError, match="found '<html>hello</html>', wanted an answer of pumice run"):
        pumice.connect(hello)
