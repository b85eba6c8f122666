"""A process that runs inputs one after the other, and is ended with the first that takes too long or too much."""

from __future__ import annotations

import json
import math
import resource
import select
import signal
import subprocess
import sys
import time
from typing import Any

from msgspec import Struct

from tests.fuzz.cases import run

_START_S = 60.0
_WAITED = 20  # times the seconds of CPU: who takes longer than that waits for something
_AT_ONCE = 500  # inputs before a worker makes way for a fresh one


class Bounds(Struct, frozen=True):
    """For one input. ``seconds`` are of CPU, so that a busy machine breaks no law."""

    seconds: float = 10.0
    megabytes: int = 1024


class Outcome(Struct, frozen=True):
    """What came of an input; ``seconds`` are of CPU, but where its process was ended: then as long as that took.
    ``megabytes`` is the most that its process ever had."""

    problems: list[str]
    seconds: float
    megabytes: int


class Worker:
    """One process. ``done`` counts inputs."""

    def __init__(self, bounds: Bounds) -> None:
        self.done = 0
        self._bounds = bounds
        command = [sys.executable, "-m", "tests.fuzz.workers", str(bounds.megabytes), str(bounds.seconds)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._before = self._answer(_START_S)["megabytes"]

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def run(self, case: dict[str, Any]) -> Outcome:
        assert self._process.stdin is not None
        self.done += 1
        began = time.monotonic()
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        try:
            said = self._answer(self._bounds.seconds * _WAITED)
        except (TimeoutError, EOFError) as error:
            too_long = isinstance(error, TimeoutError) or self._process.wait() == -signal.SIGXCPU
            self.end()
            problem = f"it takes more than {self._bounds.seconds:g} s" if too_long else "it ended the process"
            return Outcome([problem], time.monotonic() - began, self._before)
        problems, most = said["problems"], said["megabytes"]
        if most > self._bounds.megabytes:
            problems = [*problems, f"it needs {most} MB"]
            self.end()
        return Outcome(problems, said["seconds"], most)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def _answer(self, seconds: float) -> dict[str, Any]:
        stream = self._process.stdout
        assert stream is not None
        ready, _, _ = select.select([stream], [], [], seconds)
        if not ready:
            raise TimeoutError
        line = stream.readline()
        if not line:
            raise EOFError
        found: dict[str, Any] = json.loads(line)
        return found


class Fresh:
    """A worker, and another one where the last was ended, or has done its share."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._worker = Worker(bounds)

    def __enter__(self) -> Fresh:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def run(self, case: dict[str, Any]) -> Outcome:
        if self._worker.done >= _AT_ONCE or not self._worker.alive:
            self._worker.end()
            self._worker = Worker(self._bounds)
        return self._worker.run(case)

    def end(self) -> None:
        self._worker.end()


def _work(megabytes: int, seconds: float) -> None:
    most = 3 * megabytes << 20  # of address space: beyond that it ends with an error rather than take the machine along
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    _, longest = resource.getrlimit(resource.RLIMIT_CPU)
    print(json.dumps({"megabytes": _peak()}), flush=True)
    for line in sys.stdin:
        began = time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(began + seconds), longest))
        problems = run(json.loads(line))
        took = time.process_time() - began
        print(json.dumps({"problems": problems, "megabytes": _peak(), "seconds": took}), flush=True)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


if __name__ == "__main__":
    _work(int(sys.argv[1]), float(sys.argv[2]))
