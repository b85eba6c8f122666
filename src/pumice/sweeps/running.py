"""Run universes on an engine: what is finished is kept at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

from msgspec import Struct

from pumice.sweeps.engines import Engine
from pumice.sweeps.folder import SweepFolder
from pumice.sweeps.sharing import share_out
from pumice.sweeps.universe import Universe, run_universe

Work = Callable[[Universe], bytes]


class Failure(Struct, frozen=True):
    """A universe that has no row. ``why``: the error, or that its worker died."""

    universe: Universe
    why: str


def run_all(
    universes: Sequence[Universe],
    engine: Engine,
    folder: SweepFolder,
    finished: Callable[[Universe], object] = lambda universe: None,
    work: Work = run_universe,
) -> list[Failure]:
    """Run universes that have no row yet, keep each row when it is there, and return those that failed."""
    left = [each for each in universes if folder.row(each.digest) is None]
    failures: list[Failure] = []
    with closing(share_out(left, engine, work)) as answers:
        for done in answers:
            universe = left[done.index]
            if done.value is None:
                failures.append(Failure(universe, done.why))
                continue
            folder.put(universe.digest, done.value)
            finished(universe)
    return failures
