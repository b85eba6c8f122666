"""Share tasks out over an engine: each answer when it is there, and a task again whose worker died."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from typing import Generic, TypeVar

from msgspec import Struct

from pumice.sweeps.engines import Engine

#: How often a task is tried whose worker died.
TRIES = 3
T = TypeVar("T")
R = TypeVar("R")


class Done(Struct, Generic[R], frozen=True):
    """What a task came to. ``index``: its place among the tasks. ``why``: the error, or that its worker died; "" if
    ``value`` is its answer."""

    index: int
    value: R | None = None
    why: str = ""


def share_out(tasks: Sequence[T], engine: Engine, work: Callable[[T], R]) -> Generator[Done[R], None, None]:
    """Yield what each task came to, in the order in which they are done.

    At most as many are in flight as the engine has workers, so memory does not grow with their number. Close it
    (``contextlib.closing``) if it may not be read to its end: what is in flight then is stopped.
    """
    sharing = _Sharing(tasks, engine, work)
    left = deque(range(len(tasks)))
    while left:
        suspects = yield from sharing.until_it_breaks(left, engine.workers)
        # One of those in flight ended the workers of all. Each alone shows which.
        for index in suspects:
            yield from sharing.alone(index)


class _Sharing(Generic[T, R]):
    def __init__(self, tasks: Sequence[T], engine: Engine, work: Callable[[T], R]) -> None:
        self.tasks, self.engine, self.work = tasks, engine, work
        self.tries: dict[int, int] = {}

    def alone(self, index: int) -> Generator[Done[R], None, None]:
        """Try a task by itself until it is done, or its worker has died too often."""
        while self.tries[index] < TRIES:
            if not (yield from self.until_it_breaks(deque([index]), 1)):
                return
        yield Done(index, why=f"its worker died {TRIES} times")

    def until_it_breaks(self, left: deque[int], at_once: int) -> Generator[Done[R], None, list[int]]:
        """Run what is left. Return those that were in flight when a worker died; none if all were run."""
        flying: dict[Future[R], int] = {}
        executor = self.engine.open()
        try:
            while left or flying:
                while left and len(flying) < at_once:
                    if not self._submit(executor, left.popleft(), flying):
                        return self._lost(flying)
                done, _ = wait(flying, return_when=FIRST_COMPLETED)
                settled = [_settled(each, flying) for each in done]
                yield from (each for each in settled if each is not None)
                if None in settled:
                    return self._lost(flying)
        except BaseException:  # Ctrl-C: what is in flight is lost, and not waited for
            self.engine.stop()
            raise
        finally:
            for future in flying:  # not every executor can cancel them all at its end
                future.cancel()
            executor.shutdown(wait=False)
        return []

    def _submit(self, executor: Executor, index: int, flying: dict[Future[R], int]) -> bool:
        try:
            flying[executor.submit(self.work, self.tasks[index])] = index
        except BrokenExecutor:
            flying[Future()] = index
            return False
        return True

    def _lost(self, flying: dict[Future[R], int]) -> list[int]:
        for index in flying.values():
            self.tries[index] = self.tries.get(index, 0) + 1
        return list(flying.values())


def _settled(future: Future[R], flying: dict[Future[R], int]) -> Done[R] | None:
    """Return the answer or the error of a future that is done, None if its worker died."""
    try:
        value = future.result()
    except (BrokenExecutor, CancelledError):
        return None
    except Exception as error:  # a plugin may raise anything
        return Done(flying.pop(future), why=f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
    return Done(flying.pop(future), value)
