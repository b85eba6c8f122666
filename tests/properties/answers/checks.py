"""What holds for each answer about a world: a reason is sound and small, the first way out is true and cheap."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from itertools import combinations, product
from typing import Generic, TypeVar

from msgspec.structs import replace

from pumice.answers.codes import Code
from pumice.answers.edits import add_nodes, assign, drain, remove
from pumice.answers.explanation import Explanation, Verdict, explain
from pumice.answers.lifts import Lift, lift, relevant
from pumice.answers.steps.choice import steps_for
from pumice.answers.steps.step import Step
from pumice.answers.ways import CountedStep, Way, cost_of, draft_of
from pumice.answers.world import Draft, Id, Trial, Trials, World, starts
from pumice.framework.plugin.policy_file import Policy
from pumice.model.events import Object

T = TypeVar("T")

#: Obstacles of which all sets are run, and how many sets.
_CANDIDATES_MAX, _SETS_MAX = 9, 60
#: Cheaper ways that are run beside one; where there are more, a way is not compared.
_CHEAPER_MAX = 120
#: By how much the first way may be dearer than the cheapest.
_DEARER = 1.05


class _ByDraft(Generic[T]):
    """What was found for drafts of one world, found once for equal drafts."""

    def __init__(self) -> None:
        self._known: dict[tuple[Id, ...], list[tuple[dict[Id, Object | None], Policy, T]]] = {}

    def get(self, draft: Draft, make: Callable[[Draft], T]) -> T:
        changed = draft.changed
        known = self._known.setdefault(tuple(changed), [])
        for before, policy, found in known:
            if before == changed and policy == draft.policy:
                return found
        known.append((changed, draft.policy, made := make(draft)))
        return made


class _OnceEach(Trials):
    """Trials of which equal ones are run once. All count."""

    def __init__(self, world: World) -> None:
        super().__init__(world, 0)
        self._trials = _ByDraft[Trial]()
        #: Run at once, in a store that has seen nothing else.
        self.unchanged = self.base

    def run(self, draft: Draft) -> Trial:
        before = self.run_count
        found = self._trials.get(draft, super().run)
        self.run_count = before + 1
        return found


class FreshStores:
    """Cycles on drafts of one world, each in a store that has seen nothing else. Of equal drafts one is run."""

    def __init__(self, world: World) -> None:
        self.world = world
        #: One store for all drafts, as answers use it: cheaper, and what it says is run again before it counts.
        self.one = _OnceEach(world)
        self._known = _ByDraft[tuple[World, Trial]]()

    def starts(self, job: str, draft: Draft) -> bool:
        """Return True if the job starts in a draft."""
        fresh, trial = self._known.get(draft, self._in_a_store_of_its_own)
        return starts(trial, fresh, job)

    def _in_a_store_of_its_own(self, draft: Draft) -> tuple[World, Trial]:
        fresh = World(draft.objects(), draft.policy, self.world.now, self.world.scheduler_names)
        if not draft.changed and draft.policy is self.world.policy:
            return fresh, self.one.unchanged
        # Trials run a draft without some of the objects in a store of its own themselves.
        if any(draft.get(*key) is None for key in draft.changed):
            return fresh, self.one.run(draft)
        return fresh, Trials(fresh, 0).base

    def starts_twice(self, job: str, draft: Draft) -> bool:
        """Return True if the job starts in a draft, in the store for all drafts and in one of its own. Most drafts that
        are compared with an answer do not start the job, and cost only the first."""
        return starts(self.one.run(draft), self.world, job) and self.starts(job, draft)

    def without(self, job: str, lifts: tuple[Lift, ...]) -> Draft:
        """Return a draft in which these obstacles of a job are gone."""
        draft = Draft(self.world)
        for each in lifts:
            lift(draft, job, each)
        return draft


def lifts_of(answer: Explanation) -> tuple[Lift, ...]:
    """Return the obstacles of an answer that were lifted in trials, none where nothing was run."""
    return tuple(Lift(part.code, part.name) for part in answer.parts) if answer.is_checked and answer.trials else ()


def wrong_reasons(world: World) -> list[str]:
    """Return what is wrong with the reasons of the jobs of a world that wait."""
    trials, stores = Trials(world, 0), FreshStores(world)
    answers = (explain(world, job, ways=False, trials=trials) for job in world.groups)
    return [wrong for answer in answers for wrong in wrong_reason(stores, answer)]


def wrong_reason(stores: FreshStores, answer: Explanation) -> list[str]:
    """Return what is wrong with a reason: without all parts of it the job must start, without some of them it must not,
    in stores that have seen nothing else."""
    job, lifts = answer.job, lifts_of(answer)
    if answer.verdict is Verdict.STARTS:
        return []
    found = [] if answer.parts and answer.verdict is not Verdict.UNKNOWN else [f"{job}: no answer"]
    if lifts:
        parts = [part for size in range(len(lifts)) for part in combinations(lifts, size)]
        if not stores.starts(job, stores.without(job, lifts)):
            found.append(f"{job}: does not start without {lifts}")
        found += [
            f"{job}: starts without {part} alone" for part in parts if stores.starts(job, stores.without(job, part))
        ]
    return found


def smaller_sets(stores: FreshStores, answer: Explanation) -> tuple[bool, bool] | None:
    """Return whether the reason of a job is a smallest set of all obstacles that it could have, and whether it has more
    than one part. None where there is no reason, or too many sets for a test.

    That others come first is an obstacle only in reasons that name it: without the other jobs that wait hardly anything
    is in the way, so reasons name it last."""
    job, lifts = answer.job, lifts_of(answer)
    candidates = [each for each in relevant(stores.world, job) if each.code is not Code.ORDER or each in lifts]
    if not lifts or len(candidates) > _CANDIDATES_MAX:
        return None
    smaller = [part for size in range(1, len(lifts)) for part in combinations(candidates, size)]
    if len(smaller) > _SETS_MAX:
        return None
    return not any(stores.starts_twice(job, stores.without(job, part)) for part in smaller), len(lifts) > 1


def wrong_ways(world: World) -> list[str]:
    """Return what is wrong with the first ways out of the jobs of a world."""
    stores = FreshStores(world)
    return [
        wrong for job in world.groups for way in explain(world, job).ways[:1] for wrong in wrong_of(stores, job, way)
    ]


def wrong_of(stores: FreshStores, job: str, way: Way) -> list[str]:
    """Return what is wrong with a way out: it must place the job, and half of its amounts must not, in stores that have
    seen nothing else; so must the changes that a user is advised to try."""
    found, world = [], stores.world
    halves = [replace(each, count=each.count // 2) for each in way.chosen]
    if not stores.starts(job, draft_of(world, way.chosen)):
        found.append(f"{job}: does not start by {way.text}")
    if stores.starts(job, draft_of(world, [each for each in halves if each.count])):
        found.append(f"{job}: starts by half of {way.text}")
    if all(each.step.changes(each.count) for each in way.chosen) and not stores.starts(
        job, changed(world, way.changes)
    ):
        found.append(f"{job}: does not start by {way.changes}")
    return found


def changed(world: World, changes: tuple[str, ...]) -> Draft:
    """Return a world with changes as ``pumice whatif`` makes them, in its order."""
    draft = Draft(world)
    for name, change in (("add-nodes", add_nodes), ("set", assign), ("drain", drain), ("remove", remove)):
        for text in changes:
            if text.startswith(f"--{name} "):
                change(draft, shlex.split(text)[1])
    return draft


def cheaper_way(stores: FreshStores, answer: Explanation, ways_max: int = _CHEAPER_MAX) -> str | None:
    """Return a way out of the steps of an answer's first that costs less by more than a twentieth, "" where none of
    them places the job, None where there are more than ``ways_max`` to run. Steps of last resort are compared with a
    way that has one."""
    job, way = answer.job, answer.ways[0]
    lifts = tuple(Lift(part.code, part.name) for part in answer.parts)
    general, by_lift = steps_for(stores.one, job, lifts, tuple(part.blocker for part in answer.parts))
    most = way.cost.rank[0] / _DEARER
    found: dict[tuple[str, ...], tuple[CountedStep, ...]] = {}
    is_last = any(each.step.is_last_resort for each in way.chosen)
    for steps in (*((each,) for each in general), *product(*by_lift)):
        if is_last or not any(step.is_last_resort for step in steps):
            found |= _counts_below(steps, most)
        if len(found) > ways_max:
            return None
    return next(
        ("; ".join(text) for text, chosen in found.items() if stores.starts_twice(job, draft_of(stores.world, chosen))),
        "",
    )


def _counts_below(steps: tuple[Step, ...], most: float) -> Iterator[tuple[tuple[str, ...], tuple[CountedStep, ...]]]:
    """Yield numbers of steps that cost less than an amount, with their texts."""
    ranges = [_range_below(step, most) for step in steps]
    for counts in product(*ranges):
        chosen = tuple(CountedStep(step, count) for step, count in zip(steps, counts, strict=True) if count)
        if chosen and cost_of(chosen).rank[0] < most:
            yield tuple(each.step.text(each.count) for each in chosen), chosen


def _range_below(step: Step, most: float) -> range:
    """Return the counts of one step that cost less than an amount: costs grow with counts."""
    count = 0
    while count < min(step.most, _CHEAPER_MAX) and cost_of([CountedStep(step, count + 1)]).rank[0] < most:
        count += 1
    return range(count + 1)
