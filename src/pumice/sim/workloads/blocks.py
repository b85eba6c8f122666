"""Cut a workload into blocks of time, each a workload of its own.

Moved arrivals show what a policy owes to chance within one trace. Blocks show how much its figures differ from one week
to the next, which says more about weeks that are not in the trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from msgspec.structs import replace

from pumice.sim.scenes.scene import Scene
from pumice.sim.workloads.work import Work, arriving

#: Blocks of one workload. A year has 366 days.
BLOCKS_MAX = 1000


class BlockError(ValueError):
    """A workload cannot be cut into such blocks: found, wanted."""


class Blocks(Sequence[Scene]):
    """Scenes with the jobs that arrive in each ``span_s`` seconds, from the first arrival on.

    Each block begins with the objects of the scene and without the jobs of the blocks before it. A block without jobs
    is left out, and so is the last one if it is shorter than the others. ``left_out``: jobs of that one. A block is
    made when it is asked for. Raises: BlockError.
    """

    def __init__(self, scene: Scene, span_s: float) -> None:
        arrivals = [work.arrival_s for work in scene.works]
        if not arrivals:
            raise BlockError("found no jobs with a time of arrival")
        self._scene, self._span_s, self._first = scene, span_s, min(arrivals)
        # The last job arrives within its block, so the blocks before that one are known to be whole.
        count = int((max(arrivals) - self._first) / span_s)
        if not 2 <= count <= BLOCKS_MAX:
            days = (max(arrivals) - self._first) / 86_400
            raise BlockError(f"found {count} blocks in {days:.1f} days of arrivals, wanted 2 to {BLOCKS_MAX}")
        numbers = [self._number_of(work) for work in scene.works]
        self._numbers = sorted({number for number in numbers if number < count})
        self.left_out = sum(number >= count for number in numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, at: int) -> Scene: ...
    @overload
    def __getitem__(self, at: slice) -> list[Scene]: ...
    def __getitem__(self, at: int | slice) -> Scene | list[Scene]:
        if isinstance(at, slice):
            return [self._block(number) for number in self._numbers[at]]
        return self._block(self._numbers[at])

    def _number_of(self, work: Work) -> int:
        return int((work.arrival_s - self._first) / self._span_s)

    def _block(self, number: int) -> Scene:
        begins = self._first + number * self._span_s
        works = (
            arriving(work, work.arrival_s - begins) for work in self._scene.works if self._number_of(work) == number
        )
        return replace(self._scene, works=tuple(works))
