"""``kubectl pumice``: explain, whatif and next of the scheduler in a cluster, through a port-forward of kubectl."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pumice.cli.errors import InputError

_FORWARDED = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+)")
_ASKED = ("explain", "whatif", "next")
_NAMESPACE = "--pumice-namespace"
_DEFAULT_NAMESPACE = "volcano-system"  # of deploy/base
_ANSWER_S = 20.0


def main() -> None:
    """Run ``pumice`` with the arguments, and with ``--server`` where a scheduler is asked and none is named."""
    from pumice.cli.main import main as pumice

    namespace, words = _namespace(sys.argv[1:])
    if not words or words[0] not in _ASKED or any(_names_server(word) or word in ("-h", "--help") for word in words):
        pumice(words)
        return
    try:
        with forwarded(namespace) as url:
            # Before a --, after which all words are arguments.
            pumice([words[0], f"--server={url}", *words[1:]])
    except InputError as error:
        error.show()
        sys.exit(error.exit_code)


def _names_server(word: str) -> bool:
    return word == "--server" or word.startswith("--server=")


def _namespace(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the namespace of the scheduler, and the other words."""
    left, found = list(words), _DEFAULT_NAMESPACE
    for at, word in enumerate(words):
        if word == _NAMESPACE and at + 1 < len(words):
            found = words[at + 1]
            del left[at : at + 2]
            break
        if word.startswith(f"{_NAMESPACE}="):
            found = word.partition("=")[2]
            del left[at]
            break
    return found, left


@contextmanager
def forwarded(namespace: str, kubectl: Sequence[str] = ("kubectl",)) -> Iterator[str]:
    """Yield the address at which the scheduler answers, while a port-forward runs. Raises: InputError."""
    words = [*kubectl, "port-forward", f"--namespace={namespace}", "deployment/pumice", ":8080"]
    try:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except OSError as error:
        raise InputError(f"kubectl: {error.strerror}") from None
    with process:
        try:
            assert process.stdout is not None and process.stderr is not None
            for line in process.stdout:
                if match := _FORWARDED.match(line):
                    yield f"http://127.0.0.1:{match[1]}"
                    return
            said = process.stderr.read().strip()[:500] or "kubectl port-forward ended"
        finally:
            process.terminate()
    address = _embedded(kubectl) if "not found" in said.lower() else ""
    if not address:
        raise InputError(f"{said}; {_NAMESPACE} NAME names the scheduler's namespace, --server URL its address")
    yield address


def _embedded(kubectl: Sequence[str]) -> str:
    """Return the address of the API server if ``pumice serve`` runs it, whose scheduler answers there, else ""."""
    words = [*kubectl, "config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}"]
    found = subprocess.run(words, capture_output=True, text=True, check=False, timeout=_ANSWER_S).stdout.strip()
    # An API server without TLS is no other one.
    return found if found.startswith("http://127.0.0.1:") else ""
