"""The smallest set of obstacles without which a job starts, found and checked by running cycles.

The cycle's own blockers lead the search: the nearest is lifted, the next cycle names the next. What was lifted is then
made minimal: of its subsets, smaller ones first, the first one without which the job starts is the reason. So that no
part of a reason starts the job: each part was run. At last the smaller sets of all obstacles that the job could have
are run. A scheduler is not monotone, which is why nothing is inferred from a larger or a smaller set: where the trials
do not suffice for all of them, the reason is not called smallest. After U. Junker, QuickXplain (AAAI 2004), and the
hitting sets of R. Reiter (1987).
"""

from __future__ import annotations

from itertools import combinations

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


class Reason(Struct, frozen=True):
    """Why a job does not start. ``lifts``: without them together it does, and without a part of them it does not.
    ``blockers``: what the cycle says about each. ``tried``: obstacles that were lifted and need not be.
    ``is_minimal``: every part was run. ``is_smallest``: so was every smaller set of the obstacles that the job could
    have; that others come first, only alone or where it is in the reason. Both are False where nothing was found, and
    where the trials ran out."""

    lifts: tuple[Lift, ...] = ()
    blockers: tuple[Blocker | None, ...] = ()
    tried: tuple[Lift, ...] = ()
    is_minimal: bool = False
    is_smallest: bool = False


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

    def was_run(self, lifts: tuple[Lift, ...]) -> bool:
        return frozenset(lifts) in self.results

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
                if not self.was_run(part):
                    return lifts, False
        return lifts, True

    def smaller(self, than: tuple[Lift, ...], candidates: list[Lift]) -> tuple[tuple[Lift, ...], bool]:
        """Return the smallest set of candidates with fewer obstacles without which the job starts, empty for none, and
        whether every smaller set was run."""
        # What the cycle named comes first: of equal sets, that one has amounts and names in it. Without the other jobs
        # that wait hardly anything is in the way, so the order comes last, and is taken alone or where it is in the
        # reason already.
        ordered = sorted(candidates, key=lambda each: (each.code is Code.ORDER, each not in self.said))
        beside = [each for each in ordered if each.code is not Code.ORDER or each in than]
        for size in range(1, len(than)):
            for part in combinations(ordered if size == 1 else beside, size):
                if self.succeeds(part):
                    return part, True
                if not self.was_run(part):
                    return (), False
        return (), True


def reason_of(trials: Trials, job: str) -> Reason:
    """Return why a job of the session that does not start does not."""
    search = _Search(trials, job)
    candidates = list(relevant(trials.world, job))
    found = search.led(candidates)
    if not found:
        return Reason(tried=tuple(search.said))
    smallest, is_minimal = search.smallest(found)
    smaller, is_smallest = search.smaller(smallest, list(dict.fromkeys((*candidates, *found))))
    if smaller:
        smallest, is_minimal = smaller, True
    for each in smallest:
        if each not in search.said:
            _name(search, smallest, each)
    ordered = tuple(sorted(smallest, key=lambda each: list(Code).index(each.code)))
    tried = tuple(each for each in found if each not in smallest)
    return Reason(ordered, tuple(search.said.get(each) for each in ordered), tried, is_minimal, is_smallest)


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
