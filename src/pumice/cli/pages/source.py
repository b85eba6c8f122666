"""Which kind of input pages are about, and what fills them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from pumice.cli.answers.starts import page_starts
from pumice.cli.answers.world import Question, WorldOptions, read_world
from pumice.cli.errors import InputError
from pumice.cli.policies import registry_of

if TYPE_CHECKING:
    from pumice.answers.world import World
    from pumice.framework.plugin.policy_file import Policy
    from pumice.runtime.job_times import JobTimes
    from pumice.runtime.problems.problem import Problem
    from pumice.web.feed import Feed
    from pumice.web.policy_trials import PolicyTrials
    from pumice.web.server import Explain


class Source(Struct, frozen=True):
    """``fill``: gives the feed what pages show, and ends when nothing more comes. ``explain``: answers about a job.
    ``policies``: tries policies. ``starts``: works out when waiting jobs are expected to start, as JSON; ``relief``:
    the change that lets most start. Both may raise NoResult. ``start_checks``: compares expected starts with real ones.
    ``problems``: what of the input could not be used.
    """

    fill: Callable[[Feed], Awaitable[None]]
    explain: Explain | None = None
    policies: PolicyTrials | None = None
    starts: Callable[[], dict[str, Any]] | None = None
    relief: Callable[[], dict[str, Any]] | None = None
    start_checks: Callable[[JobTimes], Awaitable[dict[str, Any]]] | None = None
    problems: tuple[Problem, ...] = ()

    def ask(self, feed: Feed) -> None:
        """Let a feed work out once, in a thread, what can be."""
        from pumice.web.expected_starts import ExpectedStarts
        from pumice.web.shared_work import SharedWork

        if self.starts is not None:
            feed.starts = ExpectedStarts(partial(asyncio.to_thread, self.starts), time.monotonic, changes=False)
        if self.relief is not None:
            feed.relief = SharedWork(partial(asyncio.to_thread, self.relief), time.monotonic, changes=False)
        if self.start_checks is not None:
            feed.start_checks = SharedWork(partial(self.start_checks, feed.job_times), time.monotonic, changes=False)


def relief_of(world: World, digest: str) -> dict[str, Any]:
    """Return the change that lets most jobs of a world start, as ``pumice explain --all --json`` prints it, with
    ``at``."""
    from pumice.answers.all_waiting import TRIALS_MAX, overview
    from pumice.answers.plain import overview_described
    from pumice.answers.world import Trials

    return overview_described(overview(Trials(world, TRIALS_MAX)), digest) | {"at": world.now}


def policy_reader(plugins_dir: str) -> Callable[[str], Policy]:
    """Return what makes a policy of a text that a viewer wrote."""
    from pumice.runtime.policy.conf import policy_of

    registry = registry_of(plugins_dir)
    return lambda text: policy_of(text, registry, where="the policy")


def source_of(paths: Sequence[str], options: WorldOptions) -> Source:
    """Return what the paths are. Raises: InputError, PolicyError, OSError."""
    from pumice.cli.pages.recorded import recorded_source
    from pumice.runtime.record.recorder import files_of

    if len(paths) == 1 and (folder := Path(paths[0])).is_dir() and files_of(folder):
        if options.conf is not None or options.now is not None or options.names:
            raise InputError("--conf, --now and --scheduler-name: a record says these itself")
        return recorded_source(folder, options.plugins_dir)
    if len(paths) == 1 and (found := _simulation(Path(paths[0]))) is not None:
        return found
    return _of_world(read_world(paths, options), options.plugins_dir)


def _simulation(path: Path) -> Source | None:
    """Return what shows the results of a simulation, None if the file has none."""
    from pumice.web.simulation import BYTES_MAX, results_in

    if path.suffix != ".json" or not path.is_file():
        return None
    with path.open("rb") as file:
        found = results_in(file.read(BYTES_MAX + 1))
    if found is None:
        return None

    async def fill(feed: Feed) -> None:
        feed.show_simulation(found)

    return Source(fill)


def _of_world(asked: Question, plugins_dir: str) -> Source:
    from pumice.answers.world import REASON_TRIALS_MAX, Trials
    from pumice.runtime.cycle_end import CycleEnd
    from pumice.runtime.digest import digest_of
    from pumice.runtime.policy.conf import shown_text
    from pumice.web.policy_trials import in_world, trials_here
    from pumice.web.publisher import Publisher
    from pumice.web.questions import Questions

    base = Trials(asked.world, REASON_TRIALS_MAX).base
    digest = digest_of(asked.world.now, base.decisions)

    async def fill(feed: Feed) -> None:
        publisher = Publisher(feed, asyncio.get_running_loop(), lambda: 0.0)
        publisher.show(CycleEnd(1, base.outcome, base.decisions, digest))

    shown = shown_text(asked.chosen.text)
    policies = trials_here(lambda: shown, policy_reader(plugins_dir), in_world(asked.world))
    return Source(
        fill,
        Questions(asked.world, digest).explain,
        policies,
        partial(page_starts, asked.world),
        partial(relief_of, asked.world, digest),
        problems=asked.problems,
    )
