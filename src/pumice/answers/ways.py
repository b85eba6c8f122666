"""Ways out: changes that a user can make, each run, as small as they may be, and what each costs and to which jobs.

A way changes whole steps in units that people use (a GPU, a core, a node, a pod of the minimum). A way that is given
was run and places the job; one step less was run and does not, nor does half of it. Of counts above 64 the smallest is
known to a thirty-second.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice, product
from math import inf

from msgspec import Struct

from pumice.answers.reason import Reason
from pumice.answers.steps.choice import steps_for
from pumice.answers.steps.step import ALTOGETHER, Step
from pumice.answers.world import Draft, Trial, Trials, World, starts
from pumice.model.pod import Pod
from pumice.model.workloads.podgroup import PodGroup

#: Combinations of steps that are tried for a reason of several parts.
_COMBINATIONS_MAX = 24
#: Combinations that are tried although ways are known, and how many of these are enough for the rest not to be.
_ALWAYS_TRIED, _ENOUGH = 4, 2
#: Larger counts are found to a thirty-second: each of their trials is about hundreds of pods.
_EXACT_MAX = 64
#: Of the cost of a way, what a cheaper one takes at most: one that is cheaper by less is not looked for.
_WORTH_LESS = 0.95
#: A cost that is little beside a resource that is added.
_LITTLE = 0.5
#: Counts of such a step that are tried one by one.
_ONE_BY_ONE = 16
#: Counts of a step of which each is tried where the largest does not place the job.
_FEW = 4
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


class _Effect(Struct, frozen=True):
    """What a trial that places the job does beside that. ``losers``: jobs that start in the cycle as it is and not in
    this one, and those that lose pods in this one. ``waits``: as in ``Way``."""

    losers: tuple[str, ...]
    waits: bool


class _Found(Struct, frozen=True):
    """Steps that place the job, and what the trial did. ``steps``: that were tried together, also those of which none
    is needed."""

    chosen: tuple[CountedStep, ...]
    effect: _Effect
    steps: tuple[Step, ...]

    @property
    def text(self) -> tuple[str, ...]:
        return tuple(each.step.text(each.count) for each in self.chosen)

    @property
    def counted(self) -> tuple[CountedStep, ...]:
        """Return all steps that were tried together, each with its count."""
        return tuple(CountedStep(one, sum(e.count for e in self.chosen if e.step is one)) for one in self.steps)


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
    found: dict[tuple[str, ...], _Found] = {}
    general, by_lift = steps_for(trials, job, reason.lifts, reason.blockers) if reason.lifts else ([], [])
    combined = islice(_together(by_lift), _COMBINATIONS_MAX)
    for number, steps in enumerate((*((step,) for step in general), *combined)):
        # The first combinations are the cheap ones; the others are for jobs for which there is hardly a way, or none
        # that leaves each obstacle in place and changes an amount.
        rare = number >= len(general) + _ALWAYS_TRIED or any(step.is_last_resort for step in steps)
        if trials.is_cut:
            break
        if rare and len(found) >= _ENOUGH and min(map(_rank, found.values())) < ALTOGETHER:
            continue
        smallest = finder.smallest(steps)
        if smallest is not None:
            found.setdefault(smallest.text, smallest)
    if by_lift:
        for better in (*_alone(finder, by_lift, found.values()), *_improved(finder, by_lift, found.values())):
            found.setdefault(better.text, better)
    ways: list[Way] = []
    for text in sorted(found, key=lambda text: (*cost_of(found[text].chosen).rank, text)):
        chosen = found[text].chosen
        if any(_contains(chosen, way.chosen) or _means_the_same(chosen, way.chosen) for way in ways):
            continue
        way = finder.confirmed(found[text])
        if way is not None:
            ways.append(way)
        if len(ways) == WAYS_MAX:
            break
    return ways


def _alone(finder: _Finder, by_lift: list[list[Step]], found: Iterable[_Found]) -> Iterator[_Found]:
    """Yield ways of one step that costs little against one obstacle, where all that are found cost much: by each of the
    first counts, and then by counts that double. An obstacle that is taken away altogether may let others in before the
    job where a little of it does not."""
    if min(map(_rank, found), default=inf) < 2 * _LITTLE:
        return
    # Of steps with few counts there is no middle.
    for step in (each for each in chain(*by_lift) if each.most > 2):
        most = _most_below(step, _LITTLE)
        counts = (*range(1, min(most, _ONE_BY_ONE) + 1), *(1 << power for power in range(5, most.bit_length())))
        alone = next((count for count in counts if finder.succeeds((CountedStep(step, count),))), 0)
        if alone and (smallest := finder.smallest((step,), (alone,))) is not None:
            yield smallest


def _improved(finder: _Finder, by_lift: list[list[Step]], found: Iterable[_Found]) -> Iterator[_Found]:
    """Yield ways that are cheaper than the cheapest of those with a step for each obstacle: of one obstacle after the
    other, each other step is put in place of its own. Not all combinations, or steps of one obstacle, are tried
    before."""
    ways = [each for each in found if len(each.steps) == len(by_lift)]
    if not ways:
        return
    best: _Found | None = min(ways, key=_rank)
    while best is not None:
        exchanged = (
            finder.smallest(tuple(each.step for each in counted), tuple(each.count for each in counted))
            for place, steps in enumerate(by_lift)
            for step in steps
            for counted in _cheaper(best, by_lift, place, step)
        )
        best = next((each for each in exchanged if each is not None), None)
        if best is not None:
            yield best


def _cheaper(best: _Found, by_lift: list[list[Step]], place: int, step: Step) -> Iterator[tuple[CountedStep, ...]]:
    """Yield steps with another one at one place, as many of it as cost less together: beside the others as they are,
    and beside as many of one of the others, or of the last step against its obstacle, as the cost leaves.

    A dearer step may make fewer of the others do, or need another one beside it."""
    counted, limit = best.counted, _rank(best) * _WORTH_LESS
    if limit <= 0.0:
        return
    beside = [(at, one) for at, steps in enumerate(by_lift) if at != place for one in (counted[at].step, steps[-1])]
    for at, one in ((place, step), *beside):
        chosen = [*counted]
        chosen[place] = CountedStep(step, 1)
        # Of the other one first, for more than one of the step itself may do no more.
        for there, which in ((at, one), (place, step)):
            chosen[there] = CountedStep(which, 0)
            chosen[there] = CountedStep(which, _most_below(which, limit - cost_of(chosen).rank[0]))
        if chosen[place].count:
            yield tuple(chosen)


def _most_below(step: Step, cost: float) -> int:
    """Return how many of a step cost no more than that."""
    return bisect_right(range(1, step.most + 1), cost, key=lambda count: cost_of([CountedStep(step, count)]).rank[0])


def _together(by_lift: list[list[Step]]) -> Iterator[tuple[Step, ...]]:
    """Yield combinations with a step for each obstacle, the cheap ones first; none without obstacles, or if one has no
    steps."""
    if not by_lift or not all(by_lift):
        return
    # The first steps of each obstacle are the cheap ones, so combinations of early ones come first.
    choices = sorted(product(*(list(enumerate(steps)) for steps in by_lift)), key=lambda one: sum(i for i, _ in one))
    yield from (tuple(step for _, step in choice) for choice in choices[:_ALWAYS_TRIED])
    # The last steps of each take it away as a whole, which does where the others do not.
    yield tuple(steps[-1] for steps in by_lift)
    yield from (tuple(step for _, step in choice) for choice in choices[_ALWAYS_TRIED:])


def _between(most: tuple[CountedStep, ...]) -> Iterator[tuple[CountedStep, ...]]:
    """Yield fewer of each step that has few counts, but not one, beside the largest counts of the others."""
    for place, (step, count) in enumerate((each.step, each.count) for each in most):
        for fewer in range(2, count) if count <= _FEW else ():
            yield (*most[:place], CountedStep(step, fewer), *most[place + 1 :])


def _rank(found: _Found) -> float:
    return cost_of(found.chosen).rank[0]


def _contains(chosen: tuple[CountedStep, ...], others: tuple[CountedStep, ...]) -> bool:
    """Return True if steps make all changes that others make, and more."""
    return all(any(_covers(each, other) for each in chosen) for other in others)


def _means_the_same(chosen: tuple[CountedStep, ...], others: tuple[CountedStep, ...]) -> bool:
    """Return True if steps make the same changes as others, to other objects."""
    return len(chosen) == len(others) and all(
        one.step is other.step or one.step.means == other.step.means != ""
        for one, other in zip(chosen, others, strict=True)
    )


def _covers(one: CountedStep, other: CountedStep) -> bool:
    if one.step is other.step:
        return one.count >= other.count
    lines = [{*each.step.commands(each.count), *each.step.changes(each.count)} for each in (one, other)]
    return bool(lines[1]) and lines[0] >= lines[1]


def cost_of(chosen: Iterable[CountedStep]) -> Cost:
    """Return what steps take together. A step that is not made takes nothing."""
    chosen = [each for each in chosen if each.count]
    costs = [each.step.cost(each.count) for each in chosen]
    lowered, added, lost = (sum(cost[i] for cost in costs) for i in range(3))
    return Cost(lowered, added, lost, sum(each.step.edits(each.count) for each in chosen))


class _Finder:
    def __init__(self, trials: Trials, job: str) -> None:
        self.trials, self.job = trials, job
        #: By the steps that were run, None where they do not place the job.
        self._effects: dict[tuple[tuple[int, int], ...], _Effect | None] = {}
        self._job_of = {pod.key: key for key, pods in trials.world.pods_of.items() for pod in pods}

    def effect(self, chosen: tuple[CountedStep, ...]) -> _Effect | None:
        """Return what these steps do, None where they do not place the job."""
        # The steps of a search live as long as it does, so that they are known by their identity.
        key = tuple((id(each.step), each.count) for each in chosen if each.count)
        if key not in self._effects:
            if self.trials.is_cut:
                return None
            draft = Draft(self.trials.world)
            for each in chosen:
                each.step.apply(draft, each.count)
            self._effects[key] = self._effect_in(self.trials.run(draft))
        return self._effects[key]

    def succeeds(self, chosen: tuple[CountedStep, ...]) -> bool:
        return self.effect(chosen) is not None

    def smallest(self, steps: tuple[Step, ...], first: tuple[int, ...] = ()) -> _Found | None:
        """Return the smallest counts with which these steps place the job, None where they do not at all. ``first``:
        the largest counts that are of use."""
        chosen = self._enough(steps, first)
        if chosen is None:
            return None
        for place in range(len(chosen)):
            chosen = self._with_least(chosen, place)
        effect = self.effect(chosen)
        return None if effect is None else _Found(tuple(each for each in chosen if each.count), effect, steps)

    def _enough(self, steps: tuple[Step, ...], first: tuple[int, ...]) -> tuple[CountedStep, ...] | None:
        """Return counts with which these steps place the job: those that are likely, the largest, or of a single step
        the smallest, and of a step with few counts those between; for more of it may let others in before the job."""
        most = tuple(CountedStep(step, step.most) for step in steps)
        likely = tuple(CountedStep(step, step.likely or step.most) for step in steps)
        tried = [likely, most, *([(CountedStep(steps[0], 1),)] if len(steps) == 1 else ())]
        if first:
            most = tuple(CountedStep(step, count) for step, count in zip(steps, first, strict=True))
            tried = [most, tuple(CountedStep(each.step, min(each.count, 1)) for each in most)]
        if first or len(steps) == 1:
            tried += _between(most)
        return next((each for each in dict.fromkeys(tried) if self.succeeds(each)), None)

    def _with_least(self, chosen: tuple[CountedStep, ...], place: int) -> tuple[CountedStep, ...]:
        """Return the steps with the smallest count at one place that is enough with the others as they are."""

        def at(count: int) -> tuple[CountedStep, ...]:
            return (*chosen[:place], CountedStep(chosen[place].step, count), *chosen[place + 1 :])

        one = chosen[place]
        found = least_count(
            one.count, lambda count: self.succeeds(at(count)), one.step.likely, may_be_none=len(chosen) > 1
        )
        return at(found)

    def confirmed(self, found: _Found) -> Way | None:
        """Return the way of these steps, run once more with the jobs that leave removed; None where it then fails."""
        chosen = found.chosen
        leaves = [key for each in chosen for key in each.step.leaving(each.count)]
        effect: _Effect | None = found.effect
        if leaves:
            effect = self._effect_in(self.trials.run(draft_of(self.trials.world, chosen)))
        if effect is None:
            return None
        return Way(
            tuple(each.step.text(each.count) for each in chosen),
            tuple(line for each in chosen for line in each.step.commands(each.count)),
            tuple(line for each in chosen for line in each.step.changes(each.count)),
            cost_of(chosen),
            tuple(dict.fromkeys((*leaves, *effect.losers))),
            effect.waits,
            chosen,
        )

    def _effect_in(self, trial: Trial) -> _Effect | None:
        """Return what a trial did, None where it did not place the job."""
        world, job = self.trials.world, self.job
        if not starts(trial, world, job):
            return None
        before, after = self.trials.base.placed, trial.placed
        evicted = {each.pod for each in self.trials.base.evicts}
        gone = [self._job_of.get(each.pod, each.pod) for each in trial.evicts if each.pod not in evicted]
        fewer = [key for key, count in sorted(before.items()) if key != job and after.get(key, 0) < count]
        waits = any(pod.key in trial.outcome.pipelined for pod in world.pods_of.get(job, ()))
        return _Effect(tuple(dict.fromkeys([*fewer, *gone])), waits)


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


def least_count(most: int, enough: Callable[[int], bool], likely: int = 0, *, may_be_none: bool = False) -> int:
    """Return a count that is enough while half of it is not, and one less is not; of counts above ``_EXACT_MAX``, while
    a thirty-second less is not. ``most`` is enough.

    ``likely``: a count that is asked first, 0 for none. One above ``_EXACT_MAX`` is taken if a fifth less is not
    enough: it was counted. ``may_be_none``: 0 may be enough, for there are other steps."""
    if may_be_none and enough(0):
        return 0
    low, high = 0, most
    if 0 < likely < most and not enough(likely):
        low = likely
    elif 0 < likely <= most:
        high = likely
        less = likely - 1 if likely <= _EXACT_MAX else likely * 4 // 5
        if enough(less):
            high = less
        else:
            low = likely - 1
    # By steps that double: what is needed is near as a rule, and the most is far away.
    step = 1
    while low + step < high:
        if enough(low + step):
            high = low + step
            break
        low, step = low + step, 2 * step
    while True:
        while high - low > max(1, (high - 1) // (_EXACT_MAX // 2)):
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
