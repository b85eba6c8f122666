"""``python -m bench.records``: what a record of cycles costs the loop that writes it, how large it is, and whether its
cycles decide the same again.

The loop is that of ``pumice simulate --record`` on a trace. CPU time of the recorder is measured around its calls in
that loop, and compared with the rest of the same run. ``--profile`` prints where that time goes.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import pstats
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pumice.cli.main import main as pumice
from pumice.runtime.policy.conf import policy_of
from pumice.runtime.policy.languages import builtin_registry
from pumice.runtime.record.recorder import Recorder
from pumice.runtime.record.replay import ReplayedCycle, replay

#: What the loop calls.
_CALLS = ("use_conf", "begin_anew", "take", "begin_cycle", "noting", "end_cycle", "flush", "close")
_OWN_CALLS = 10_000


class Meter:
    """Sums the CPU seconds of calls of all recorders, those within another call once. ``opening``: those of the first
    cycle, which reads the types of all objects once in a process; ``seconds``: of all others."""

    def __init__(self, profile: cProfile.Profile | None) -> None:
        self.seconds = self.opening = 0.0
        self.recorder = list[Recorder]()
        self._depth, self._profile, self._calls = 0, profile, 0

    def install(self) -> None:
        """Measure the calls of recorders from now on."""
        for name in _CALLS:
            setattr(Recorder, name, self._measured(getattr(Recorder, name)))

    def _measured(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def measured(recorder: Recorder, *args: Any, **more: Any) -> Any:
            if self._depth:
                return call(recorder, *args, **more)
            self._depth += 1
            self.recorder[:] = [recorder]
            if self._profile is not None:
                self._profile.enable()
            began = time.process_time()
            try:
                return call(recorder, *args, **more)
            finally:
                spent = time.process_time() - began
                self._calls += 1
                if call.__name__ == "begin_cycle" and not self.opening:
                    self.opening = spent
                else:
                    self.seconds += spent
                if self._profile is not None:
                    self._profile.disable()
                self._depth -= 1

        return measured

    def own_cost(self) -> float:
        """Return the CPU seconds in ``seconds`` that measuring takes itself."""
        calls, before = self._calls, self.seconds
        nothing = self._measured(lambda _: None)
        for _ in range(_OWN_CALLS):
            nothing(self.recorder[0])
        each, self.seconds = (self.seconds - before) / _OWN_CALLS, before
        return calls * each


def simulate(words: Sequence[str]) -> float:
    """Run ``pumice simulate`` in this process. Return its CPU seconds."""
    began = time.process_time()
    with redirect_stdout(io.StringIO()):
        pumice(["simulate", *words], standalone_mode=False)
    return time.process_time() - began


def equal_again(folder: Path, most: int) -> tuple[int, int]:
    """Return how many of the first cycles of a record were run again, and how many decided the same."""
    registry = builtin_registry()
    cycles = (
        each
        for each in replay(folder, lambda text, lenient: policy_of(text, registry, strict=not lenient))
        if isinstance(each, ReplayedCycle)
    )
    equal = [each.is_equal for each in islice(cycles, most)]
    return len(equal), sum(equal)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m bench.records", description=__doc__)
    parser.add_argument("--trace", default="../shared/traces/philly-gavel", help="default %(default)s")
    parser.add_argument("--nodes", default="125x4gpu", help="default %(default)s")
    parser.add_argument("--until", default="17d", help="default %(default)s")
    parser.add_argument("--cycles", type=int, default=1_000, help="that are run again (default %(default)s)")
    parser.add_argument("--profile", action="store_true", help="print where the time of the recorder goes")
    wanted = parser.parse_args(words)
    profile = cProfile.Profile(time.process_time) if wanted.profile else None
    meter = Meter(profile)
    meter.install()
    with TemporaryDirectory() as name:
        folder = Path(name, "record")
        given = [wanted.trace, "--nodes", wanted.nodes, "--until", wanted.until, "--record", str(folder), "--json"]
        whole = simulate(given)
        (recorder,) = meter.recorder
        own = meter.own_cost()
        spent, rest = meter.seconds - own, whole - meter.seconds - meter.opening
        each = recorder.bytes / max(recorder.events, 1)
        print(
            f"the recorder beside the loop: {spent:.2f} and {rest:.2f} CPU s, {100 * spent / rest:.1f} %, at most 3 %"
        )
        print(f"not counted: {1000 * meter.opening:.0f} ms once in a process, and {own:.2f} CPU s of this measurement")
        print(f"{recorder.events:,} events, {each:.0f} bytes each, at most 200")
        found, equal = equal_again(folder, wanted.cycles)
        print(f"{found:,} cycles run again, {equal:,} equal")
    if profile is not None:
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
    return 0 if equal == found else 1


if __name__ == "__main__":
    sys.exit(main())
