"""Cut a workload into blocks of time, each a workload of its own.

Moved arrivals show what a policy owes to chance within one trace. Blocks show how much its figures differ from one week
to the next, which says more about weeks that are not in the trace.
"""

from __future__ import annotations

from msgspec.structs import replace

from pumice.sim.scenes.scene import Scene
from pumice.sim.workloads.work import TimeShift, Work

#: Blocks of one workload. A year has 366 days.
BLOCKS_MAX = 1000


class BlockError(ValueError):
    """A workload cannot be cut into such blocks: found, wanted."""


def blocks_of(scene: Scene, span_s: float) -> list[Scene]:
    """Return scenes with the jobs that arrive in each ``span_s`` seconds, from the first arrival on.

    Each block begins with the objects of the scene and without the jobs of the blocks before it. A block without jobs
    is left out, and so is the last one if it is shorter than the others. Raises: BlockError.
    """
    arrivals = [work.arrival_s for work in scene.works]
    if not arrivals:
        raise BlockError("found no jobs with a time of arrival")
    first = min(arrivals)
    # The last job arrives within its block, so the blocks before that one are known to be whole.
    count = int((max(arrivals) - first) / span_s)
    if not 2 <= count <= BLOCKS_MAX:
        days = (max(arrivals) - first) / 86_400
        raise BlockError(f"found {count} blocks in {days:.1f} days of arrivals, wanted 2 to {BLOCKS_MAX}")
    blocks: list[list[Work]] = [[] for _ in range(count)]
    for work in scene.works:
        number = int((work.arrival_s - first) / span_s)
        if number < count:
            blocks[number].append(TimeShift(work, work.arrival_s - first - number * span_s))
    return [replace(scene, works=tuple(works)) for works in blocks if works]
