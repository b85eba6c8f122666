"""The smallest set of obstacles without which a job starts, found and checked by running cycles.

The cycle's own blockers lead the search: the nearest is lifted, the next cycle names the next. What was lifted is then
made minimal: of its subsets, smaller ones first, the first one without which the job starts is the reason. So that no
part of a reason starts the job: each part was run. A scheduler is not monotone, which is why nothing is inferred from
a larger or a smaller set. After U. Junker, QuickXplain (AAAI 2004), and the hitting sets of R. Reiter (1987).
"""

from __future__ import annotations

from itertools import combinations, product

from msgspec import Struct
from msgspec.structs import replace

from pumice.answers.codes import Code
from pumice.answers.lifts import Lift, lift, lifts_of, relevant
from pumice.answers.world import Draft, Trial, Trials, row_of, starts
from pumice.model.blockers import Blocker, NotAdmitted, QueueLimit
from pumice.reasons.blockers import Blockers

#: Obstacles lifted one after another before all that could be are lifted at once.
_STEPS_MAX = 6
#: A larger set is made smaller one by one, and not by all its subsets.
_SUBSETS_OF_MAX = 5

#: Obstacles of the cluster: without one more jobs may start, also before the one that is asked about.
_OF_ALL_JOBS = {
    Code.RESOURCE_QUOTA,
    Code.QUEUE_CLOSED,
    Code.QUEUE_LIMIT,
    Code.QUEUE_SHARE,
    Code.GUARANTEE,
    Code.ADMISSION,
    Code.AFFINITY,
    Code.ROOM,
}


class Reason(Struct, frozen=True):
    """Why a job does not start. ``lifts``: without them together it does, and without a part of them it does not.
    ``blockers``: what the cycle says about each. ``tried``: obstacles that were lifted and need not be.
    ``is_minimal``: every part was run; False where the trials ran out, or nothing was found."""

    lifts: tuple[Lift, ...] = ()
    blockers: tuple[Blocker | None, ...] = ()
    tried: tuple[Lift, ...] = ()
    is_minimal: bool = False


class _Search:
    def __init__(self, trials: Trials, job: str) -> None:
        self.trials, self.job = trials, job
        self.results: dict[frozenset[Lift], Trial] = {frozenset(): trials.base}
        self.said: dict[Lift, Blocker] = {}

    def run(self, lifts: tuple[Lift, ...]) -> Trial | None:
        """Return the cycle without these obstacles, None where the trials have run out."""
        known = self.results.get(frozenset(lifts))
        if known is not None or self.trials.is_cut:
            return known
        draft = Draft(self.trials.world)
        for each in lifts:
            lift(draft, self.job, each)
        found = self.results[frozenset(lifts)] = self.trials.run(draft)
        return found

    def succeeds(self, lifts: tuple[Lift, ...]) -> bool:
        found = self.run(lifts)
        return found is not None and starts(found, self.trials.world, self.job)

    def named(self, trial: Trial) -> list[Lift]:
        """Return what the cycle says against the job, the nearest first."""
        row = row_of(trial.outcome, self.job)
        found: list[Lift] = []
        for blocker in Blockers(trial.outcome).of(row) if row is not None else ():
            # Each of several limits against an admission is an obstacle of its own.
            for limit in blocker.by if isinstance(blocker, NotAdmitted) and blocker.by else (blocker,):
                for each in lifts_of(limit, self.trials.world, self.job):
                    self.said.setdefault(each, _of_resource(limit, each))
                    found.append(each)
        return list(dict.fromkeys(found))

    def led(self, candidates: list[Lift]) -> tuple[Lift, ...]:
        """Return obstacles without which the job starts, found by asking the cycle for the next; empty for none."""
        lifted: tuple[Lift, ...] = ()
        for _ in range(_STEPS_MAX):
            trial = self.run(lifted)
            if trial is None:
                return ()
            if starts(trial, self.trials.world, self.job):
                return lifted
            following = [each for each in self.named(trial) if each not in lifted]
            if not following:
                break
            lifted += (following[0],)
        everything = tuple(dict.fromkeys((*lifted, *candidates)))
        # The order is a last resort: where the others are gone hardly anything is in the way.
        for some in (tuple(each for each in everything if each.code is not Code.ORDER), everything):
            if self.succeeds(some):
                return self.shrunk(some)
        return ()

    def shrunk(self, lifts: tuple[Lift, ...]) -> tuple[Lift, ...]:
        """Return a part without which the job starts, and does not where any one of it is left in place."""
        keeps = lifts
        # What the cycle named is kept if possible, so the others are tried first.
        for each in sorted(lifts, key=lambda each: each in self.said):
            fewer = tuple(other for other in keeps if other != each)
            if self.succeeds(fewer):
                keeps = fewer
        return keeps

    def smallest(self, lifts: tuple[Lift, ...]) -> tuple[tuple[Lift, ...], bool]:
        """Return the smallest part without which the job starts, and whether every smaller part of it was run."""
        if len(lifts) > _SUBSETS_OF_MAX:
            lifts = self.shrunk(lifts)
        for size in range(1, len(lifts)):
            for part in combinations(lifts, size):
                if self.succeeds(part):
                    return part, True
                if self.trials.is_cut:
                    return lifts, False
        return lifts, True

    def fewer(self, smallest: tuple[Lift, ...], others: list[Lift]) -> tuple[Lift, ...]:
        """Return a smaller set without which the job starts, past which the cycle led; empty for none.

        One other obstacle may do in place of two, and two in place of three."""
        # Not that others come first: where they are gone hardly anything is in the way.
        order = [each for each in others if each.code is Code.ORDER]
        rest = tuple(each for each in others if each not in order)
        # Obstacles that are lifted for all jobs may let others in before this one, so those of its own are run apart.
        parts = [
            tuple(each for each in rest if (each.code in _OF_ALL_JOBS) is is_of_all) for is_of_all in (False, True)
        ]
        without_two = product(combinations(smallest, len(smallest) - 2), parts)
        found = next((fewer for kept, part in without_two if (fewer := self.with_one(kept, part))), ())
        found = found or self.with_one_room(smallest, rest)
        if not found and len(smallest) > 2:
            without_three = combinations(smallest, len(smallest) - 3)
            found = next((fewer for kept in without_three if (fewer := self.with_two(kept, rest))), ())
        return found or next(((each,) for each in order if self.succeeds((each,))), ())

    def with_one(self, lifts: tuple[Lift, ...], others: tuple[Lift, ...]) -> tuple[Lift, ...]:
        """Return these lifts with one other without which the job starts, found by halves; empty for none.

        Where all others together do not help, one of them alone hardly does: it is not run."""
        if not others or not self.succeeds((*lifts, *others)):
            return ()
        if len(others) == 1:
            return (*lifts, *others)
        half = len(others) // 2
        return self.with_one(lifts, others[:half]) or self.with_one(lifts, others[half:])

    def with_one_room(self, smallest: tuple[Lift, ...], others: tuple[Lift, ...]) -> tuple[Lift, ...]:
        """Return obstacles of which one resource is in place of two without which the job starts; empty for none.

        Some nodes lack two resources, and others only one: each is run by itself, for together with other obstacles it
        may let others in before the job."""
        lacking = [each for each in smallest if each.code is Code.ROOM]
        kept = (tuple(each for each in smallest if each not in two) for two in combinations(lacking, 2))
        rooms = [each for each in others if each.code is Code.ROOM]
        return next((fewer for few, one in product(kept, rooms) if self.succeeds(fewer := (*few, one))), ())

    def with_two(self, lifts: tuple[Lift, ...], others: tuple[Lift, ...]) -> tuple[Lift, ...]:
        """Return these lifts with at most two others without which the job starts; empty for none."""
        if not self.succeeds((*lifts, *others)):
            return ()
        found = (*lifts, *self.needed(lifts, others))
        return found if len(found) <= len(lifts) + 2 and self.succeeds(found) else ()

    def needed(self, lifts: tuple[Lift, ...], others: tuple[Lift, ...]) -> tuple[Lift, ...]:
        """Return the others that are needed beside these lifts, found by halves. The job starts without all of them."""
        if len(others) <= 1:
            return others
        half = len(others) // 2
        second = () if self.succeeds((*lifts, *others[:half])) else self.needed((*lifts, *others[:half]), others[half:])
        first = () if self.succeeds((*lifts, *second)) else self.needed((*lifts, *second), others[:half])
        return (*first, *second)


def reason_of(trials: Trials, job: str) -> Reason:
    """Return why a job of the session that does not start does not."""
    search = _Search(trials, job)
    candidates = list(relevant(trials.world, job))
    found = search.led(candidates)
    if not found:
        return Reason(tried=tuple(search.said))
    smallest, is_minimal = search.smallest(found)
    while len(smallest) > 1 and is_minimal:
        fewer = search.fewer(smallest, [each for each in candidates if each not in smallest])
        if not fewer:
            break
        smallest, is_minimal = search.smallest(fewer)
    for each in smallest:
        if each not in search.said:
            _name(search, smallest, each)
    ordered = tuple(sorted(smallest, key=lambda each: list(Code).index(each.code)))
    tried = tuple(each for each in found if each not in smallest)
    return Reason(ordered, tuple(search.said.get(each) for each in ordered), tried, is_minimal)


def _of_resource(said: Blocker, what: Lift) -> Blocker:
    """Return a blocker with the amounts of one resource alone, where the obstacle is that resource."""
    if not isinstance(said, QueueLimit) or what.code is not Code.ROOM:
        return said
    return replace(said, resources=tuple(each for each in said.resources if each.resource == what.name))


def _name(search: _Search, lifts: tuple[Lift, ...], which: Lift) -> None:
    """Ask the cycle for the blocker of one obstacle, with the others of the reason lifted."""
    trial = search.run(tuple(each for each in lifts if each != which))
    if trial is not None:
        search.named(trial)
