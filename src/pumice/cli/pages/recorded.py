"""Pages of a record: its cycles are run again, and the last one is what pages show."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from pumice.cli.answers.recording import recorded_policy
from pumice.cli.answers.starts import page_starts
from pumice.cli.errors import InputError
from pumice.cli.pages.source import Source, policy_reader, relief_of

if TYPE_CHECKING:
    from pumice.answers.world import World
    from pumice.runtime.job_times import JobTimes
    from pumice.runtime.record.replay import PolicyOf, ReplayedCycle
    from pumice.runtime.serving.viewers import Viewer
    from pumice.web.feed import Feed
    from pumice.web.policy_trials import CycleInput
    from pumice.web.publisher import Publisher
    from pumice.web.questions import Questions

#: At so many cycles of a record it is worked out what was to be expected then.
_CHECKED_AT = 4
#: While cycles are run again, summaries take at most half of the time.
_SHARE = 1.0


def recorded_source(folder: Path, plugins_dir: str) -> Source:
    """Return what runs a record again for pages. Raises: InputError if it has nothing to run."""
    from pumice.runtime.record.reading import RecordError, read_record
    from pumice.web.policy_trials import CYCLES_MAX, on_cycles, trials_here

    try:
        next(iter(read_record(folder)), None)
    except RecordError as error:
        raise InputError(str(error)) from None
    found = _Recorded(folder, recorded_policy(plugins_dir))
    policies = trials_here(found.text, policy_reader(plugins_dir), on_cycles(found.kept), CYCLES_MAX)
    return Source(found.fill, found.explain, policies, found.starts, found.relief, found.start_checks)


class _Recorded:
    """A record that is run again in a thread of its own, while pages show how far it is."""

    def __init__(self, folder: Path, policy_of: PolicyOf) -> None:
        self._folder, self._policy_of = folder, policy_of
        self._stop, self._ended = Event(), Event()
        self._questions: Questions | None = None
        self._last: tuple[World, str] | None = None
        self._earlier = _Spread(_CHECKED_AT)
        self._text = ""
        self._cycles: list[CycleInput] = []

    async def fill(self, feed: Feed) -> None:
        """Run all cycles again. If this is cancelled, the thread ends after its cycle."""
        from pumice.web.publisher import Publisher

        loop = asyncio.get_running_loop()
        publisher = Publisher(feed, loop, time.monotonic, share=_SHARE, always=True)
        try:
            await asyncio.to_thread(self._run, feed, publisher, loop)
        finally:
            self._stop.set()
            self._ended.set()

    def text(self) -> str:
        """Return the text of the policy of the last cycle."""
        return self._text

    def kept(self) -> list[CycleInput]:
        """Return the inputs of the last cycles, the oldest first."""
        return self._cycles

    async def explain(self, job: str, viewer: Viewer) -> dict[str, Any]:
        """Answer about the last cycle. Raises: KeyError with a sentence."""
        if self._questions is None:
            raise KeyError("the cycles of the record are still being run again: ask when the last one is shown")
        return await self._questions.explain(job, viewer)

    def starts(self) -> dict[str, Any]:
        """Return when jobs are expected to start after the last cycle. Raises: NoResult."""
        return page_starts(self._world()[0])

    def relief(self) -> dict[str, Any]:
        """Return the change that lets most jobs start in the last cycle. Raises: NoResult."""
        return relief_of(*self._world())

    async def start_checks(self, times: JobTimes) -> dict[str, Any]:
        """Return the starts that were expected at some cycles, against those that happened. Raises: NoResult."""
        from pumice.web.start_checks import compared

        return compared(await asyncio.to_thread(self._earlier_starts), times)

    def _earlier_starts(self) -> list[dict[str, Any]]:
        self._world()
        earlier = self._earlier.kept
        return [page_starts(_world_of(each), len(earlier)) for each in earlier]

    def _world(self) -> tuple[World, str]:
        """Return the cluster of the last cycle with the digest of that, when it was run."""
        from pumice.web.shared_work import NoResult

        self._ended.wait()
        if self._last is None:
            raise NoResult("no cycle of the record could be run again")
        return self._last

    def _run(self, feed: Feed, publisher: Publisher, loop: asyncio.AbstractEventLoop) -> None:
        from pumice.framework.plugin.errors import PolicyError
        from pumice.runtime.cycle_end import CycleEnd, StopWatch
        from pumice.runtime.record.reading import End, RecordError
        from pumice.runtime.record.replay import replay

        def note(text: str) -> None:
            loop.call_soon_threadsafe(feed.note, text)

        watch, last, end, differ = StopWatch(), None, None, 0
        try:
            for each in replay(self._folder, self._policy_of, observe=watch):
                if self._stop.is_set():
                    return
                if isinstance(each, End):
                    note(f"The record is damaged: {each.why}. What is whole is shown.")
                    continue
                differ += not each.is_equal
                self._keep(each)
                last, end = each, CycleEnd(each.number, each.outcome, each.decisions, each.digest, watch.taken())
                publisher.take(end)
        except (RecordError, PolicyError, InputError, OSError) as error:
            note(f"The record ends here: {error}")
        if differ:
            note(f"{differ:,} cycles decided otherwise than when they were recorded: see pumice replay.")
        if last is None or end is None:
            note("No cycle of the record could be run again.")
            return
        publisher.show(end)
        world = _world_of(last)
        self._questions, self._last = _questions_of(world, last.digest), (world, last.digest)

    def _keep(self, cycle: ReplayedCycle) -> None:
        from pumice.web.policy_trials import CYCLES_MAX, CycleInput

        self._text = cycle.conf.text
        given = CycleInput(cycle.number, cycle.now, cycle.snapshot, cycle.policy)
        self._earlier.take(given)
        kept = [*self._cycles, given]
        # Replaced and not changed, because another thread may be reading it.
        self._cycles = kept[-CYCLES_MAX:]


class _Spread:
    """Keeps a few of many cycles, spread evenly over all that came. ``most``: so many, an even number."""

    def __init__(self, most: int) -> None:
        self.kept: list[CycleInput] = []
        self._most, self._each, self._seen = most, 1, 0

    def take(self, cycle: CycleInput) -> None:
        """Take the next cycle."""
        if self._seen % self._each == 0:
            if len(self.kept) == self._most:
                # Each second one stays, and from now on each second one of those that would have been kept is.
                self.kept = self.kept[::2]
                self._each *= 2
            if self._seen % self._each == 0:
                self.kept.append(cycle)
        self._seen += 1


def _questions_of(world: World, digest: str) -> Questions:
    from pumice.web.questions import Questions

    return Questions(world, digest)


def _world_of(cycle: CycleInput | ReplayedCycle) -> World:
    from pumice.answers.world import World
    from pumice.runtime.files.known_objects import all_objects_in, scheduler_names_in

    names = scheduler_names_in(cycle.snapshot) or (cycle.policy.dialect.scheduler,)
    return World(all_objects_in(cycle.snapshot, cycle.now), cycle.policy, cycle.now, names)
