"""``pumice run`` as its users start it: a process, a log, pages."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from pumice.kube.api.access import Access
from pumice.kube.api.client import Client
from tests.kube.waiting import PATIENCE_S, until
from tests.tied import tied

_COMMAND = (sys.executable, "-c", "from pumice.cli.main import main; main()", "run")
_QUICK_LEASE = {"lease-duration": "3s", "renew-deadline": "2s", "retry-period": "500ms"}
#: For tests of one scheduler: its Lease is not lost because a slow machine kept it from renewing.
_LONG_LEASE = {"lease-duration": "600s", "renew-deadline": "400s", "retry-period": "500ms"}


T = TypeVar("T")


async def eventually(ask: Callable[[], Awaitable[T]], what: str = "", seconds: float = PATIENCE_S) -> T:
    """Ask again and again until the answer is something; that."""
    deadline = time.monotonic() + seconds
    while not (found := await ask()):
        assert time.monotonic() < deadline, what or f"did not come true in {seconds} s"
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 0.05)
    return found


class Running:
    """One process. ``log`` is what it has said so far, an entry a line."""

    def __init__(self, process: subprocess.Popen[bytes], stderr: Path) -> None:
        self.process = process
        self._stderr = stderr

    @property
    def log(self) -> list[dict[str, Any]]:
        lines = self._stderr.read_bytes().split(b"\n")[:-1]
        return [json.loads(line) for line in lines if line.startswith(b"{")]

    @property
    def text(self) -> str:
        return self._stderr.read_text()

    def said(self, words: str) -> list[dict[str, Any]]:
        return [entry for entry in self.log if words in entry["message"]]

    async def says(self, words: str, seconds: float = 60.0) -> dict[str, Any]:
        """Wait for a line with these words; the first one."""
        await until(
            lambda: self.said(words) or self.process.poll() is not None, seconds, f"never said {words!r}: {self.text}"
        )
        found = self.said(words)
        assert found, f"ended without {words!r}: {self.text}"
        return found[0]

    async def page(self, path: str) -> str:
        """What it serves there. Raises: ApiError."""
        url = (await self.says("API server "))["urls"][0]
        async with Client(Access(url)) as client:
            return (await client.request("GET", path)).decode()

    async def ended(self, number: signal.Signals | None = None) -> int:
        """Wait for its end, after a signal."""
        if number is not None:
            self.process.send_signal(number)
        await until(lambda: self.process.poll() is not None, what=f"does not end: {self.text}")
        return await asyncio.to_thread(self.process.wait)


@contextmanager
def running(
    folder: Path, kubeconfig: Path, *flags: str, quick_lease: bool = False, default_lease: bool = False
) -> Iterator[Running]:
    """``folder`` takes its log. Killed at the end, if it still runs."""
    lease = {} if default_lease else _QUICK_LEASE if quick_lease else _LONG_LEASE
    stderr = folder / f"run-{len(list(folder.glob('run-*.log')))}.log"
    words = [
        *_COMMAND,
        f"--kubeconfig={kubeconfig}",
        "--log-format=json",
        "--listen-address=127.0.0.1:0",
        "--enable-healthz=false",
        "--controllers=off",
        f"--dump-dir={folder}",
        *(f"--leader-elect-{name}={value}" for name, value in lease.items()),
        *flags,
    ]
    with (
        stderr.open("wb") as log,
        subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True) as process,
        tied(process),
    ):
        yield Running(process, stderr)
