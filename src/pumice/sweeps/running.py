"""Run universes on an engine: what is finished is kept at once, and a worker that dies is tried again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait

from msgspec import Struct

from pumice.sweeps.engines import Engine
from pumice.sweeps.store import Store
from pumice.sweeps.universe import Universe, run_universe

#: How often a universe is tried whose worker died.
TRIES = 3
Work = Callable[[Universe], bytes]


class Failure(Struct, frozen=True):
    """A universe that has no row. ``why``: the error, or that its worker died."""

    universe: Universe
    why: str


def run_all(
    universes: Sequence[Universe],
    engine: Engine,
    store: Store,
    finished: Callable[[Universe], object] = lambda universe: None,
    work: Work = run_universe,
) -> list[Failure]:
    """Run universes that have no row yet, keep each row when it is there, and return those that failed.

    At most as many are in flight as the engine has workers, so memory does not grow with their number.
    """
    return _Running(engine, store, finished, work).run(universes)


class _Running:
    def __init__(self, engine: Engine, store: Store, finished: Callable[[Universe], object], work: Work) -> None:
        self.engine, self.store, self.finished, self.work = engine, store, finished, work
        self.failures: list[Failure] = []
        self.tries: dict[str, int] = {}

    def run(self, universes: Sequence[Universe]) -> list[Failure]:
        left = deque(each for each in universes if self.store.row(each.digest) is None)
        while left:
            suspects = self._until_it_breaks(left, self.engine.workers)
            # One of those in flight ended the workers of all. Each alone shows which.
            for universe in suspects:
                self._alone(universe)
        return self.failures

    def _alone(self, universe: Universe) -> None:
        """Try a universe by itself until it is done, or its worker has died too often."""
        while self.tries[universe.digest] < TRIES:
            if not self._until_it_breaks(deque([universe]), 1):
                return
        self.failures.append(Failure(universe, f"its worker died {TRIES} times"))

    def _until_it_breaks(self, left: deque[Universe], at_once: int) -> list[Universe]:
        """Run what is left. Return those that were in flight when a worker died; none if all were run."""
        flying: dict[Future[bytes], Universe] = {}
        executor = self.engine.open()
        try:
            while left or flying:
                while left and len(flying) < at_once:
                    if not self._submit(executor, left.popleft(), flying):
                        return self._lost(flying)
                done, _ = wait(flying, return_when=FIRST_COMPLETED)
                settled = [self._settle(each, flying) for each in done]
                if not all(settled):
                    return self._lost(flying)
        except BaseException:  # Ctrl-C: what is in flight is lost, and not waited for
            self.engine.stop()
            raise
        finally:
            for future in flying:  # not every executor can cancel them all at its end
                future.cancel()
            executor.shutdown(wait=False)
        return []

    def _submit(self, executor: Executor, universe: Universe, flying: dict[Future[bytes], Universe]) -> bool:
        try:
            flying[executor.submit(self.work, universe)] = universe
        except BrokenExecutor:
            broken: Future[bytes] = Future()
            flying[broken] = universe
            return False
        return True

    def _settle(self, future: Future[bytes], flying: dict[Future[bytes], Universe]) -> bool:
        """Keep the row or the error of a future that is done. Return False if its worker died."""
        try:
            row = future.result()
        except (BrokenExecutor, CancelledError):
            return False
        except Exception as error:  # a plugin may raise anything
            universe = flying.pop(future)
            self.failures.append(Failure(universe, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"))
            return True
        universe = flying.pop(future)
        self.store.put(universe.digest, row)
        self.finished(universe)
        return True

    def _lost(self, flying: dict[Future[bytes], Universe]) -> list[Universe]:
        for universe in flying.values():
            self.tries[universe.digest] = self.tries.get(universe.digest, 0) + 1
        return list(flying.values())
