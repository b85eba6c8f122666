"""What another policy would do: cycles that were decided, run under it as well, and what differs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from msgspec import Struct

from pumice.answers.difference import Difference, compare, difference_of
from pumice.answers.plain import difference_described
from pumice.answers.world import Draft, Trial, World
from pumice.columns.snapshot import Snapshot
from pumice.cycle import run_cycle
from pumice.framework.plugin.errors import PolicyError
from pumice.framework.plugin.policy_file import Policy
from pumice.runtime.digest import digest_of
from pumice.runtime.loop import ListPlanner
from pumice.runtime.policy.check import described, warnings_of

#: Cycles of a record under which a policy can be tried, the last ones. Each holds a snapshot.
CYCLES_MAX = 20
#: No further cycle is begun after so many seconds.
_TIME_MAX_S = 20.0
#: What is listed of a difference at most.
_LISTED_MAX = 50


class CycleInput(Struct, frozen=True):
    """All that a cycle was given."""

    number: int
    now: float
    snapshot: Snapshot
    policy: Policy


class TriedCycle(Struct, frozen=True):
    """A cycle under both policies."""

    number: int
    now: float
    difference: Difference


#: Yields the last so many cycles under a policy too, the newest first.
Try = Callable[[Policy, int], Iterator[TriedCycle]]


def in_world(world: World) -> Try:
    """Try policies on a cluster from files."""

    def tried(policy: Policy, count: int) -> Iterator[TriedCycle]:
        draft = Draft(world)
        draft.policy = policy
        yield TriedCycle(1, world.now, compare(world, draft))

    return tried


def on_cycles(cycles: Callable[[], list[CycleInput]]) -> Try:
    """Try policies on cycles, of which the function returns those that are kept, the oldest first."""

    def tried(policy: Policy, count: int) -> Iterator[TriedCycle]:
        for each in cycles()[::-1][:count]:
            before, after = (_run(each, under) for under in (each.policy, policy))
            yield TriedCycle(each.number, each.now, difference_of(before, after))

    return tried


def _run(cycle: CycleInput, policy: Policy) -> Trial:
    planner = ListPlanner()
    return Trial(run_cycle(cycle.snapshot, policy, cycle.now, planner), tuple(planner.taken))


class PolicyTrials(Struct, frozen=True):
    """``text``: returns that of the policy in force. ``run``: returns what is wrong with a policy, or what it would do
    in the last so many cycles, as JSON. ``cycles_max``: how many can be tried."""

    text: Callable[[], str]
    run: Callable[[str, int], Awaitable[dict[str, Any]]]
    cycles_max: int = 1


def trials_here(
    text: Callable[[], str], policy_of: Callable[[str], Policy], tried: Try, cycles_max: int = 1
) -> PolicyTrials:
    """Return what tries policies in a thread of this process. ``policy_of``: makes a policy of a text; may raise
    PolicyError."""
    return PolicyTrials(text, _TrialsHere(policy_of, tried, cycles_max).run, cycles_max)


class _TrialsHere:
    """Tries policies, one at a time."""

    def __init__(self, policy_of: Callable[[str], Policy], tried: Try, cycles_max: int) -> None:
        self._policy_of, self._tried, self._cycles_max = policy_of, tried, cycles_max
        self._one = asyncio.Lock()

    async def run(self, text: str, count: int) -> dict[str, Any]:
        """See PolicyTrials."""
        async with self._one:
            return await asyncio.to_thread(self._run, text, min(count, self._cycles_max))

    def _run(self, text: str, count: int) -> dict[str, Any]:
        try:
            policy = self._policy_of(text)
        except PolicyError as error:
            return {"problems": list(error.problems), "warnings": [], "policy": None, "cycles": [], "last": None}
        until, cycles, last, is_cut = time.monotonic() + _TIME_MAX_S, list[dict[str, Any]](), None, False
        for each in self._tried(policy, count):
            last = last or _listed(each)
            cycles.append(_counted(each))
            if time.monotonic() > until and len(cycles) < count:
                is_cut = True
                break
        found = {"problems": [], "warnings": warnings_of(policy), "policy": described(policy)}
        return found | {"cycles": cycles, "last": last, "is_cut": is_cut}


def _counted(cycle: TriedCycle) -> dict[str, Any]:
    found = cycle.difference
    return {
        "number": cycle.number,
        "at": cycle.now,
        "same": found.is_empty,
        "placed": len(found.placed),
        "not_placed": len(found.not_placed),
        "evicted": len(found.evicted),
        "spared": len(found.spared),
        "waits": len(found.waits),
    }


def _listed(cycle: TriedCycle) -> dict[str, Any]:
    """Return a difference with the first of each list."""
    found = cycle.difference
    digests = [digest_of(cycle.now, trial.decisions) for trial in (found.before, found.after)]
    whole = difference_described(found, *digests)
    for name in ("evicted", "spared", "waiting", "queues"):
        whole[name] = whole[name][:_LISTED_MAX]
    for name in ("placed", "not_placed"):
        whole[name] = dict(list(whole[name].items())[:_LISTED_MAX])
    return whole
