"""Ways out: changes that a user can make, each run, as small as they may be, and what each costs and to which jobs.

A way changes whole steps in units that people use (a GPU, a core, a node, a pod of the minimum). A way that is given
was run and places the job; one step less was run and does not, nor does half of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice, product

from msgspec import Struct

from pumice.answers.lifts import Lift
from pumice.answers.reason import Reason
from pumice.answers.step import Step
from pumice.answers.steps import steps_for
from pumice.answers.world import Draft, Trial, Trials, World, starts
from pumice.model.pod import Pod
from pumice.model.workloads.podgroup import PodGroup

#: Combinations of steps that are tried for a reason of several parts.
_COMBINATIONS_MAX = 24
#: Combinations that are tried although ways are known, and how many of these are enough for the rest not to be.
_ALWAYS_TRIED, _ENOUGH = 4, 2
#: Ways that are given.
WAYS_MAX = 4


class Cost(Struct, frozen=True):
    """What a way takes. ``lowered``: part of the gang's minimum that it starts without. ``added``: resources in GPUs,
    or in cores where none are asked for. ``lost``: work of jobs that leave, in hours of the same. ``edits``: how many
    objects are changed."""

    lowered: float = 0.0
    added: float = 0.0
    lost: float = 0.0
    edits: int = 0

    @property
    def rank(self) -> tuple[float, int]:
        """Return the order of ways: a GPU that is added counts as an hour of it that is lost, and a minimum that is
        lowered to nothing as ten."""
        return (self.lost + self.added + 10.0 * self.lowered, self.edits)


class CountedStep(Struct, frozen=True):
    """A step, and how many of it."""

    step: Step
    count: int


class Way(Struct, frozen=True):
    """What to do, as sentences and as commands, with its cost. ``waits``: the job gets nodes that others have yet to
    leave. ``losers``: jobs that would have started in this cycle and do not, or that lose pods. ``chosen``: the steps
    that it is made of."""

    text: tuple[str, ...]
    commands: tuple[str, ...]
    changes: tuple[str, ...]
    cost: Cost
    losers: tuple[str, ...] = ()
    waits: bool = False
    chosen: tuple[CountedStep, ...] = ()


def ways_out(trials: Trials, job: str, reason: Reason) -> list[Way]:
    """Return ways out of a reason that were run and place the job, the cheapest first."""
    finder = _Finder(trials, job)
    found: dict[tuple[str, ...], tuple[CountedStep, ...]] = {}
    general, combined = _combinations(trials, job, reason.lifts)
    for number, steps in enumerate((*general, *islice(combined, _COMBINATIONS_MAX))):
        # The first combinations are the cheap ones; the others are for jobs for which there is hardly a way.
        rare = number >= len(general) + _ALWAYS_TRIED or any(step.is_last_resort for step in steps)
        if trials.is_cut:
            break
        if rare and len(found) >= _ENOUGH:
            continue
        chosen = finder.smallest(steps)
        if chosen:
            found.setdefault(tuple(each.step.text(each.count) for each in chosen), chosen)
    ways: list[Way] = []
    for text in sorted(found, key=lambda text: (*_cost(found[text]).rank, text)):
        way = finder.confirmed(found[text])
        if way is not None:
            ways.append(way)
        if len(ways) == WAYS_MAX:
            break
    return ways


def _combinations(
    trials: Trials, job: str, lifts: tuple[Lift, ...]
) -> tuple[list[tuple[Step, ...]], Iterator[tuple[Step, ...]]]:
    """Return steps of which each may do for all obstacles, and steps that may do together, one for each obstacle."""
    if not lifts:
        return [], iter(())
    general, by_lift = steps_for(trials, job, lifts)
    return [(step,) for step in general], _together(by_lift)


def _together(by_lift: list[list[Step]]) -> Iterator[tuple[Step, ...]]:
    # The first steps of each obstacle are the cheap ones, so combinations of early ones come first.
    choices = sorted(product(*(list(enumerate(steps)) for steps in by_lift)), key=lambda one: sum(i for i, _ in one))
    yield from (tuple(step for _, step in choice) for choice in choices[:_ALWAYS_TRIED])
    # The last steps of each take it away as a whole, which does where the others do not.
    yield tuple(steps[-1] for steps in by_lift)
    yield from (tuple(step for _, step in choice) for choice in choices[_ALWAYS_TRIED:])


def _cost(chosen: tuple[CountedStep, ...]) -> Cost:
    costs = [each.step.cost(each.count) for each in chosen]
    lowered, added, lost = (sum(cost[i] for cost in costs) for i in range(3))
    return Cost(lowered, added, lost, sum(each.step.edits(each.count) for each in chosen))


class _Finder:
    def __init__(self, trials: Trials, job: str) -> None:
        self.trials, self.job = trials, job
        self._known: dict[tuple[tuple[int, int], ...], bool] = {}

    def run(self, chosen: tuple[CountedStep, ...]) -> Trial | None:
        if self.trials.is_cut:
            return None
        draft = Draft(self.trials.world)
        for each in chosen:
            each.step.apply(draft, each.count)
        return self.trials.run(draft)

    def succeeds(self, chosen: tuple[CountedStep, ...]) -> bool:
        # The steps of a search live as long as it does, so that they are known by their identity.
        key = tuple((id(each.step), each.count) for each in chosen if each.count)
        if key not in self._known:
            trial = self.run(chosen)
            if trial is None:
                return False
            self._known[key] = starts(trial, self.trials.world, self.job)
        return self._known[key]

    def smallest(self, steps: tuple[Step, ...]) -> tuple[CountedStep, ...] | None:
        """Return the smallest counts with which these steps place the job, None where they do not at all."""
        most = tuple(CountedStep(step, step.most) for step in steps)
        if not self.succeeds(most):
            return None
        chosen = most
        for place in range(len(most)):
            chosen = self._with_least(chosen, place)
        return tuple(each for each in chosen if each.count)

    def _with_least(self, chosen: tuple[CountedStep, ...], place: int) -> tuple[CountedStep, ...]:
        """Return the steps with the smallest count at one place that is enough with the others as they are."""

        def at(count: int) -> tuple[CountedStep, ...]:
            return (*chosen[:place], CountedStep(chosen[place].step, count), *chosen[place + 1 :])

        found = _least(chosen[place].count, lambda count: self.succeeds(at(count)), may_be_none=len(chosen) > 1)
        return at(found)

    def confirmed(self, chosen: tuple[CountedStep, ...]) -> Way | None:
        """Return the way of these steps, run once more with the jobs that leave removed; None where it then fails."""
        leaves = [key for each in chosen for key in each.step.leaving(each.count)]
        trial = self.trials.run(draft_of(self.trials.world, chosen))
        if not starts(trial, self.trials.world, self.job):
            return None
        losers = tuple(dict.fromkeys((*leaves, *losers_by(self.trials, trial, self.job))))
        return Way(
            tuple(each.step.text(each.count) for each in chosen),
            tuple(line for each in chosen for line in each.step.commands(each.count)),
            tuple(line for each in chosen for line in each.step.changes(each.count)),
            _cost(chosen),
            losers,
            any(key in trial.outcome.pipelined for key in _keys(self.trials, self.job)),
            chosen,
        )


def draft_of(world: World, chosen: Iterable[CountedStep]) -> Draft:
    """Return a world with these steps made, and without the jobs that leave for them."""
    draft, leaves = Draft(world), list[str]()
    for each in chosen:
        each.step.apply(draft, each.count)
        leaves += each.step.leaving(each.count)
    for key in leaves:
        draft.remove(PodGroup, key)
        for pod in world.pods_of.get(key, ()):
            draft.remove(Pod, pod.key)
    return draft


def _keys(trials: Trials, job: str) -> list[str]:
    return [pod.key for pod in trials.world.pods_of.get(job, ())]


def _least(most: int, enough: Callable[[int], bool], *, may_be_none: bool = False) -> int:
    """Return a count that is enough while one less is not, and half of it is not. ``most`` is enough.

    ``may_be_none``: 0 may be enough, for there are other steps."""
    if may_be_none and enough(0):
        return 0
    low, high = 0, most
    # Doubling first: what is needed is small as a rule, and the most is far away.
    count = 1
    while count < high:
        if enough(count):
            high = count
            break
        low, count = count, 2 * count
    while True:
        while high - low > 1:
            middle = (low + high) // 2
            if enough(middle):
                high = middle
            else:
                low = middle
        # What is enough need not grow evenly, so half of it is asked for itself.
        if high > 1 and low > high // 2 and enough(high // 2):
            low, high = 0, high // 2
        else:
            return high


def losers_by(trials: Trials, trial: Trial, job: str) -> list[str]:
    """Return the jobs that start in the cycle as it is and not in this one, and those that lose pods in this one."""
    before, after = trials.base.placed, trial.placed
    evicted = {each.pod for each in trials.base.evicts}
    group_of = {pod.key: key for key, pods in trials.world.pods_of.items() for pod in pods}
    gone = [group_of.get(each.pod, each.pod) for each in trial.evicts if each.pod not in evicted]
    fewer = [key for key, count in sorted(before.items()) if key != job and after.get(key, 0) < count]
    return list(dict.fromkeys([*fewer, *gone]))
