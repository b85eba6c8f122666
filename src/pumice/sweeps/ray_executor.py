"""Ray as a ``concurrent.futures.Executor``: Ray has none of its own for tasks of one process each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from pumice.library.errors import InputError

R = TypeVar("R")
#: Bytes of Ray's object store, whose least is 75 MiB: a row is some hundred bytes.
_STORE_BYTES = 80 << 20


@contextmanager
def ray_session(address: str, workers: int) -> Iterator[int]:
    """Connect to the cluster at HOST:PORT, or start one of ``workers`` processors on this machine for "", and yield
    its number of processors. One that was started is ended. Raises: InputError."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a sweep sends no statistics of its use
    try:
        import ray
    except ImportError:
        raise InputError("engine: ray needs a package that is not installed: pip install ray") from None
    own = {"num_cpus": workers, "object_store_memory": _STORE_BYTES, "include_dashboard": False}
    try:
        ray.init(
            address=f"ray://{address}" if address else "local",
            log_to_driver=False,
            logging_level="ERROR",
            **({} if address else own),
        )
    except Exception as error:  # a node that does not start in time raises Exception itself
        where = f"ray://{address}" if address else "ray"
        raise InputError(f"engine: {where}: no cluster answers: {' '.join(str(error).split())[:200]}") from None
    try:
        yield max(int(ray.cluster_resources().get("CPU", 1)), 1)
    finally:
        ray.shutdown()


class RayExecutor(Executor):
    """Tasks of one processor each in the session that is open. One whose process dies raises BrokenExecutor."""

    def __init__(self) -> None:
        self._running: dict[Future[Any], Any] = {}

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        import ray

        # The caller tries again what failed, and counts the tries.
        reference = ray.remote(num_cpus=1, max_retries=0)(fn).remote(*args, **kwargs)
        future: Future[R] = Future()
        self._running[future] = reference
        reference.future().add_done_callback(partial(self._end, future))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End what runs if it is not waited for."""
        import ray

        for future, reference in list(self._running.items()):
            if wait and not cancel_futures:
                with suppress(Exception):  # it is raised where the future is read
                    future.result()
            else:
                ray.cancel(reference, force=True)

    def _end(self, future: Future[R], inner: Future[R]) -> None:
        from ray.exceptions import RayTaskError

        self._running.pop(future, None)
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(inner.result())
        except RayTaskError as error:  # the task's own: Ray's text is a stack trace
            future.set_exception(error.cause if isinstance(error.cause, Exception) else error)
        except Exception as error:  # its process died, its node, or the connection
            future.set_exception(BrokenExecutor(f"{type(error).__name__}: {error}"))
