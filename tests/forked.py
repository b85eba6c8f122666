"""Commands in processes of their own that cost no imports: forked from one that has imported what they need, once."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO

#: What ``pumice serve --schedule`` and ``pumice run`` import late, and all that is below it.
_IMPORTED = [
    "pumice.cli.main",
    "pumice.cli.commands.serve",
    "pumice.cli.commands.run",
    "pumice.apiserver.api.server",
    "pumice.apiserver.api.kubeconfig",
    "pumice.kube.scheduler.http",
    "pumice.kube.controllers.leading",
    "pumice.runtime.policy.languages",
    "pumice.sim.scenes.inputs",
    "tests.forked",
]
_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload(_IMPORTED)


class Forked:
    """``pumice`` with these arguments, in ``folder``; what tests ask of a ``subprocess.Popen`` can be asked of it.

    ``stderr`` is what it says; standard output is not read. The environment is that of the first of its kind.
    """

    def __init__(self, arguments: Sequence[str], folder: Path) -> None:
        heard, said = _FORKS.Pipe(duplex=False)
        self._process: BaseProcess = _FORKS.Process(target=_pumice, args=(list(arguments), str(folder), said))
        self._process.start()
        said.close()
        self.stderr: IO[str] = os.fdopen(os.dup(heard.fileno()), encoding="utf-8")
        heard.close()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def poll(self) -> int | None:
        """The exit code, None while it runs."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, seconds: float | None = None) -> int:
        """The exit code, once it has ended. Raises: TimeoutError."""
        self._process.join(seconds)
        code = self.poll()
        if code is None:
            raise TimeoutError(f"process {self.pid} has not ended within {seconds} s")
        return code

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, *_: object) -> None:
        self.stderr.close()
        self.wait()
        self._process.close()


def _pumice(arguments: list[str], folder: str, said: Connection) -> None:
    """In the new process."""
    from pumice.cli.main import main

    os.dup2(said.fileno(), 2)
    said.close()
    os.chdir(folder)
    main(arguments, prog_name="pumice")
