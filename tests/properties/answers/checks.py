"""What holds for each answer about a world: a reason is sound and small, the first way out is true and cheap."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import combinations, product

from msgspec.structs import replace

from pumice.answers.codes import Code
from pumice.answers.edits import add_nodes, assign, drain, remove
from pumice.answers.explanation import Explanation, Verdict, explain
from pumice.answers.lifts import Lift, lift, relevant
from pumice.answers.steps.choice import steps_for
from pumice.answers.steps.step import Step
from pumice.answers.ways import CountedStep, Way, cost_of, draft_of
from pumice.answers.world import Draft, Trials, World, starts

#: Obstacles of which all sets are run.
_CANDIDATES_MAX = 9
#: Cheaper ways that are run beside one; where there are more, a way is not compared.
_CHEAPER_MAX = 300
#: By how much the first way may be dearer than the cheapest.
_DEARER = 1.05


def starts_without(world: World, job: str, lifts: tuple[Lift, ...]) -> bool:
    """Return True if the job starts once these obstacles are gone, in a store that has seen nothing else."""
    draft = Draft(world)
    for each in lifts:
        lift(draft, job, each)
    return starts_in(world, job, draft)


def lifts_of(answer: Explanation) -> tuple[Lift, ...]:
    """Return the obstacles of an answer that were lifted in trials, none where nothing was run."""
    return tuple(Lift(part.code, part.name) for part in answer.parts) if answer.is_checked and answer.trials else ()


def wrong_reasons(world: World) -> list[str]:
    """Return what is wrong with the reasons of the jobs of a world that wait."""
    trials = Trials(world, 0)
    answers = (explain(world, job, ways=False, trials=trials) for job in world.groups)
    return [wrong for answer in answers for wrong in wrong_reason(world, answer)]


def wrong_reason(world: World, answer: Explanation) -> list[str]:
    """Return what is wrong with a reason: without all parts of it the job must start, without some of them it must not,
    in a store that has seen nothing else."""
    job, lifts = answer.job, lifts_of(answer)
    if answer.verdict is Verdict.STARTS:
        return []
    found = [] if answer.parts and answer.verdict is not Verdict.UNKNOWN else [f"{job}: no answer"]
    if lifts:
        parts = [part for size in range(len(lifts)) for part in combinations(lifts, size)]
        if not starts_without(world, job, lifts):
            found.append(f"{job}: does not start without {lifts}")
        found += [f"{job}: starts without {part} alone" for part in parts if starts_without(world, job, part)]
    return found


def smaller_sets(world: World, answer: Explanation) -> tuple[bool, bool] | None:
    """Return whether the reason of a job is a smallest set of all obstacles that it could have, and whether it has more
    than one part. None where there is no reason, or too many sets for a test.

    That others come first is an obstacle only in reasons that name it: without the other jobs that wait hardly anything
    is in the way, so reasons name it last."""
    job, lifts = answer.job, lifts_of(answer)
    candidates = [each for each in relevant(world, job) if each.code is not Code.ORDER or each in lifts]
    if not lifts or len(candidates) > _CANDIDATES_MAX:
        return None
    smaller = (part for size in range(1, len(lifts)) for part in combinations(candidates, size))
    return not any(starts_without(world, job, part) for part in smaller), len(lifts) > 1


def wrong_ways(world: World) -> list[str]:
    """Return what is wrong with the first ways out of the jobs of a world."""
    return [
        wrong for job in world.groups for way in explain(world, job).ways[:1] for wrong in wrong_of(world, job, way)
    ]


def wrong_of(world: World, job: str, way: Way) -> list[str]:
    """Return what is wrong with a way out: it must place the job, and half of its amounts must not, in a store that has
    seen nothing else; so must the changes that a user is advised to try."""
    found = []
    halves = [replace(each, count=each.count // 2) for each in way.chosen]
    if not starts_in(world, job, draft_of(world, way.chosen)):
        found.append(f"{job}: does not start by {way.text}")
    if starts_in(world, job, draft_of(world, [each for each in halves if each.count])):
        found.append(f"{job}: starts by half of {way.text}")
    if all(each.step.changes(each.count) for each in way.chosen) and not starts_in(
        world, job, changed(world, way.changes)
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


def starts_in(world: World, job: str, draft: Draft) -> bool:
    """Return True if the job starts in a draft, in a store that has seen nothing else."""
    fresh = World(draft.objects(), draft.policy, world.now, world.scheduler_names)
    return starts(Trials(fresh, 0).base, fresh, job)


def cheaper_way(world: World, answer: Explanation) -> str | None:
    """Return a way out of the steps of an answer's first that costs less by more than a twentieth, "" where none of
    them places the job, None where there are too many to run. Steps of last resort are compared with a way that has
    one."""
    job, way, trials = answer.job, answer.ways[0], Trials(world, _CHEAPER_MAX)
    lifts = tuple(Lift(part.code, part.name) for part in answer.parts)
    general, by_lift = steps_for(trials, job, lifts, tuple(part.blocker for part in answer.parts))
    most = way.cost.rank[0] / _DEARER
    found: dict[tuple[str, ...], tuple[CountedStep, ...]] = {}
    is_last = any(each.step.is_last_resort for each in way.chosen)
    for steps in (*((each,) for each in general), *product(*by_lift)):
        if is_last or not any(step.is_last_resort for step in steps):
            found |= _counts_below(steps, most)
        if len(found) > _CHEAPER_MAX:
            return None
    for text, chosen in found.items():
        if _starts_by(trials, job, chosen) and starts_in(world, job, draft_of(world, chosen)):
            return "; ".join(text)
    return ""


def _starts_by(trials: Trials, job: str, chosen: tuple[CountedStep, ...]) -> bool:
    """Return True if the job starts by these steps in the store of the trials, which is not filled again for each."""
    draft = Draft(trials.world)
    for each in chosen:
        each.step.apply(draft, each.count)
    return starts(trials.run(draft), trials.world, job)


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
