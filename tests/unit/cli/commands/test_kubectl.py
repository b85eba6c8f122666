"""``kubectl pumice``: where the scheduler is found, and what is passed on."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from pumice.cli import main as commands
from pumice.cli.answers import kubectl
from pumice.cli.errors import InputError


def in_place_of_kubectl(script: str) -> tuple[str, ...]:
    """A program in place of kubectl."""
    return sys.executable, "-c", script


def test_the_address_is_that_of_the_port_forward() -> None:
    script = "print('Forwarding from 127.0.0.1:4711 -> 8080', flush=True); input()"
    with kubectl.forwarded("volcano-system", in_place_of_kubectl(script)) as url:
        assert url == "http://127.0.0.1:4711"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (in_place_of_kubectl("import sys; sys.exit('deployments \"pumice\" not found')"), "not found"),
        (("no-such-program-here",), "kubectl: No such file"),
    ],
)
def test_a_port_forward_that_fails_says_why(program: Sequence[str], said: str) -> None:
    with pytest.raises(InputError, match=said), kubectl.forwarded("x", program):
        pass


@pytest.mark.parametrize(
    ("address", "expected"),
    [("http://127.0.0.1:8180", "http://127.0.0.1:8180"), ("https://10.0.0.1:6443", ""), ("http://10.0.0.1", "")],
)
def test_the_embedded_server_is_asked_itself_where_no_scheduler_is_deployed(address: str, expected: str) -> None:
    forward = "sys.exit('Error from server (NotFound): deployments.apps \"pumice\" not found')"
    script = f"import sys\nif 'config' in sys.argv: print({address!r})\nelse: {forward}"
    found = ""
    try:
        with kubectl.forwarded("volcano-system", in_place_of_kubectl(script)) as url:
            found = url
    except InputError as error:
        assert "--pumice-namespace NAME" in error.message
    assert found == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["explain", "ml/a"], (["explain", "--server=U", "ml/a"], "volcano-system")),
        (["whatif", "--pumice-namespace", "x", "--drain", "n"], (["whatif", "--server=U", "--drain", "n"], "x")),
        (["explain", "ml/a", "--pumice-namespace=y"], (["explain", "--server=U", "ml/a"], "y")),
        (["next"], (["next", "--server=U"], "volcano-system")),
        (["explain", "ml/a", "--server", "V"], (["explain", "ml/a", "--server", "V"], "")),
        (["schedule", "x"], (["schedule", "x"], "")),
        ([], ([], "")),
    ],
)
def test_only_questions_are_forwarded(
    words: list[str], expected: tuple[list[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[object] = []
    namespaces = [""]

    @contextmanager
    def forwarded(namespace: str) -> Iterator[str]:
        namespaces.append(namespace)
        yield "U"

    monkeypatch.setattr(kubectl, "forwarded", forwarded)
    monkeypatch.setattr(commands, "main", ran.append)
    monkeypatch.setattr(sys, "argv", ["kubectl-pumice", *words])
    kubectl.main()
    assert (ran, namespaces[-1]) == ([expected[0]], expected[1])
