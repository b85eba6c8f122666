"""Where universes are run: any ``concurrent.futures.Executor``, by default processes of this machine."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait

from msgspec import Struct

from pumice.library.errors import InputError

LOCAL = "local"
#: What an engine may be called.
WANTED = "local, dask://HOST:PORT, ray or ray://HOST:PORT"
#: Tasks in flight for each that runs on a cluster, so that a worker that has finished one has the next.
_IN_FLIGHT = 2
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Engine(Struct, frozen=True):
    """``open()`` returns a fresh executor; ``workers``: how many universes it runs at a time. ``stop()`` ends the
    workers of its executors at once, whatever they are at."""

    open: Callable[[], Executor]
    workers: int
    stop: Callable[[], object] = lambda: None


def local_engine(workers: int) -> Engine:
    """Return an engine of so many processes of this machine."""
    for name in _THREADS:  # a universe is one thread, and there are as many at a time as cores
        os.environ.setdefault(name, "1")
    others = frozenset(active_children())

    def stop() -> None:
        for process in active_children():
            if process not in others:
                process.terminate()

    return Engine(
        lambda: ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_begin_worker), workers, stop
    )


def _begin_worker() -> None:
    """Leave Ctrl-C to the parent, and end with it: a worker of a killed parent would wait for work forever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


@contextmanager
def engine_of(name: str, workers: int) -> Iterator[Engine]:
    """Yield the engine that is called ``local``, ``ray``, or by the address of a cluster. ``workers``: how many
    processes of this machine, where it is used. Raises: InputError."""
    if name == LOCAL:
        yield local_engine(workers)
        return
    kind, _, address = name.partition("://")
    if kind == "ray" and (address or name == "ray"):
        from pumice.sweeps.ray_executor import RayExecutor, ray_session

        with ray_session(address, workers) as count:
            yield Engine(RayExecutor, _IN_FLIGHT * count)
    elif kind == "dask" and address:
        yield from _dask(name, address)
    else:
        raise InputError(f"engine: found {name[:60]!r}, wanted {WANTED}")


def _dask(name: str, address: str) -> Iterator[Engine]:
    try:
        from distributed import Client
    except ImportError:
        raise InputError("engine: dask needs a package that is not installed: pip install 'pumice[sweep]'") from None
    try:
        client = Client(f"tcp://{address}", timeout=10)
    except OSError as error:
        raise InputError(f"engine: {name}: no scheduler answers: {error}") from None
    with client:
        threads = sum(client.nthreads().values())
        yield Engine(lambda: client.get_executor(pure=False), _IN_FLIGHT * max(threads, 1))
