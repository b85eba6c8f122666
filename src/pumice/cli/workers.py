"""Processes that carry out tasks, with a pipe for each. No worker outlives its parent or the ``with`` block.

A worker gets one argument and then tasks, one at a time. It reports its progress on the pipe, and anything that it
receives during a task, including the end of the pipe, tells it to stop. On an engine of other machines (``events_on``)
a task reports nothing before its end.
"""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from multiprocessing import connection, get_context, resource_tracker
from multiprocessing.connection import Connection
from time import monotonic
from typing import Any, Self

from msgspec import Struct

from pumice.cli.errors import InputError

#: How long a worker may take to stop before it is ended.
STOP_S = 5.0
TELL_EVERY_S = 0.2


class WorkerError(Exception):
    """A worker failed. The message is the last line of its output, ``text`` is all of it."""

    def __init__(self, text: str) -> None:
        super().__init__((text.strip().splitlines() or ["a worker process ended without a result"])[-1])
        self.text = text


class Stopped(Exception):
    """The parent no longer waits for an answer."""


class Line:
    """The worker's end of the pipe during a task."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._next = 0.0

    def tell(self, part: float) -> None:
        """Report now and then that a share of the task is done, 0 to 1. Raises: Stopped."""
        clock = monotonic()
        if clock < self._next:
            return
        self._next = clock + TELL_EVERY_S
        if self._pipe.poll():
            raise Stopped
        self._pipe.send(("part", part))


#: ``work(argument)`` prepares once; what it returns does one task after the other: ``(task, line) -> answer``.
Do = Callable[[Any, Line], Any]
Work = Callable[[Any], Do]


class Part(Struct, frozen=True):
    """How far a task is, 0 to 1."""

    task: int
    done: float


class TaskResult(Struct, frozen=True):
    """What the work returned for a task."""

    task: int
    value: Any


Events = Generator[Part | TaskResult, None, None]


def events_on(engine: str, count: int, work: Work, argument: Any, tasks: Sequence[Any]) -> Events:
    """Yield how far tasks are and what they came to, on an engine (``pumice.sweeps.engines``). ``count``: processes of
    this machine, where it is used. Raises: WorkerError, InputError if there is no such engine."""
    from pumice.library.errors import InputError as Wrong
    from pumice.sweeps.engines import LOCAL, engine_of
    from pumice.sweeps.sharing import share_out

    if engine == LOCAL:
        with Workers(count, work, argument) as pool:
            yield from pool.run(tasks)
        return
    try:
        given = [(work, argument, task) for task in tasks]
        with engine_of(engine, count) as found, closing(share_out(given, found, _one)) as answers:
            for done in answers:
                if done.why:
                    raise WorkerError(f"{tasks[done.index]}: {done.why}")
                yield TaskResult(done.index, done.value)
    except Wrong as error:
        raise InputError(error.problems) from None


class _NoLine(Line):
    """The line of a worker on another machine, which reports nothing."""

    def __init__(self) -> None:
        pass

    def tell(self, part: float) -> None:
        pass


def _one(given: tuple[Work, Any, Any]) -> Any:
    work, argument, task = given
    return _prepared(work, argument)(task, _NoLine())


@lru_cache(maxsize=1)
def _prepared(work: Work, argument: Any) -> Do:
    """Return the function that does tasks. A process that gets several tasks of one run prepares once."""
    return work(argument)


class Workers:
    """At most ``count`` processes, while the ``with`` lasts."""

    def __init__(self, count: int, work: Work, argument: Any) -> None:
        self._count = count
        self._work = work
        self._argument = argument
        self._processes: dict[Connection, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in self._processes:
            pipe.close()
        until = monotonic() + STOP_S
        for process in self._processes.values():
            process.join(max(until - monotonic(), 0.0))
            if process.is_alive():
                process.terminate()
                process.join()

    def run(self, tasks: Sequence[Any]) -> Iterator[Part | TaskResult]:
        """Yield progress and results of all tasks, which start in order as workers become free. Raises: WorkerError."""
        left = list(enumerate(tasks))
        left.reverse()
        busy: dict[Connection, int] = {}
        for _ in range(min(self._count, len(tasks))):
            pipe = self._start()
            busy[pipe], task = left.pop()
            pipe.send(task)
        while busy:
            for ready in connection.wait(list(busy)):
                assert isinstance(ready, Connection)
                kind, value = _received(ready)
                if kind == "part":
                    yield Part(busy[ready], value)
                    continue
                if kind == "failed":
                    raise WorkerError(value)
                yield TaskResult(busy.pop(ready), value)
                if left:
                    busy[ready], task = left.pop()
                    ready.send(task)

    def _start(self) -> Connection:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._work, self._argument), daemon=True)
        resource_tracker.ensure_running()  # its start unblocks signals
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()  # Ctrl-C is for the parent: a worker is born deaf to it
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self._processes[ours] = process
        return ours


def _received(pipe: Connection) -> tuple[str, Any]:
    try:
        found: tuple[str, Any] = pipe.recv()
    except EOFError:
        return "failed", ""
    return found


def _serve(pipe: Connection, work: Work, argument: Any) -> None:
    """Run a worker until its pipe ends."""
    try:
        do = work(argument)
        while True:
            task = pipe.recv()
            pipe.send(("answer", do(task, Line(pipe))))
    except (EOFError, BrokenPipeError, ConnectionResetError, Stopped):
        pass  # the parent no longer waits for an answer
    except Exception:
        pipe.send(("failed", traceback.format_exc()))
