"""Processes that end with the one that started them, however that ends: by a signal or a time limit too."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

#: Reads until its standard input ends, which is when no process holds the other end any more.
_WATCH = 'read -r nothing; kill -KILL "$1"'


class Process(Protocol):
    """A ``subprocess.Popen``, or what is like it."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def kill(self) -> None: ...


class Tie:
    """Kills a process when this one ends, until it is cut.

    A shell of its own session holds one end of a pipe whose other end only this process has: the kernel closes that
    however this process ends, on every POSIX system. Linux' PR_SET_PDEATHSIG would be tied to a thread.
    """

    def __init__(self, process: Process) -> None:
        command = ["sh", "-c", _WATCH, "sh", str(process.pid)]
        self._watcher = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # what ends this group is not to end the watcher
        )

    def cut(self) -> None:
        """Before the process is waited for: its number may be another's after that."""
        self._watcher.kill()
        self._watcher.communicate()


@contextmanager
def tied(process: Process) -> Iterator[None]:
    """The process is killed in the end, at the latest; who waits for it does so afterwards."""
    tie = Tie(process)
    try:
        yield
    finally:
        if process.poll() is None:
            process.kill()
        tie.cut()
