"""``python -m tests.properties.answers``: answers about random clusters, as many as asked for, held to what an answer
promises. It prints how many of each kind were checked, and what was wrong with which seed.

``reasons``: without all parts of one the job starts, without some of them it does not. ``smallest``: no smaller set of
obstacles does. ``ways``: the first places the job and half of it does not, and no cheaper one of the same steps does.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator

from msgspec import Struct

from pumice.answers.explanation import explain
from pumice.answers.world import Trials, World, starts
from tests.properties.answers.answer_worlds import LANGUAGES, random_world
from tests.properties.answers.checks import cheaper_way, smaller_sets, wrong_of, wrong_reasons


class Found(Struct, frozen=True):
    """``counts``: of what was checked. ``wrong``: by seed."""

    counts: Counter[str]
    wrong: dict[int, list[str]]


def _waiting(world: World) -> Iterator[str]:
    base = Trials(world, 0).base
    yield from (job for job in world.groups if not starts(base, world, job))


def _reasons(world: World, counts: Counter[str]) -> list[str]:
    counts["waiting jobs"] += len(list(_waiting(world)))
    return wrong_reasons(world)


def _smallest(world: World, counts: Counter[str]) -> list[str]:
    wrong = []
    for job in _waiting(world):
        found = smaller_sets(world, job)
        if found is not None:
            counts["reasons"] += 1
            counts["reasons of several parts"] += found[1]
            if not found[0]:
                wrong.append(f"{job}: a smaller set of obstacles would do")
    return wrong


def _ways(world: World, counts: Counter[str]) -> list[str]:
    wrong = []
    for job in _waiting(world):
        counts["waiting jobs"] += 1
        for way in explain(world, job).ways[:1]:
            counts["with a way out"] += 1
            wrong += wrong_of(world, job, way)
            cheaper = cheaper_way(world, job, way)
            counts["compared with all cheaper ones" if cheaper is not None else "too many ways to compare"] += 1
            if cheaper:
                wrong.append(f"{job}: {'; '.join(way.text)}, and cheaper: {cheaper}")
    return wrong


_CHECKS: dict[str, Callable[[World, Counter[str]], list[str]]] = {
    "reasons": _reasons,
    "smallest": _smallest,
    "ways": _ways,
}


def check(kind: str, language: str, seeds: range) -> Found:
    """Check answers about the worlds of some seeds."""
    counts, wrong = Counter[str](), dict[int, list[str]]()
    for seed in seeds:
        world = random_world(random.Random(seed), language)
        counts["clusters"] += 1
        if found := _CHECKS[kind](world, counts):
            wrong[seed] = found
    return Found(counts, wrong)


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.properties.answers", description=__doc__)
    parser.add_argument("--check", choices=tuple(_CHECKS), default="reasons")
    parser.add_argument("--language", choices=LANGUAGES, default="volcano")
    parser.add_argument("--first", type=int, default=50_000, help="the first seed (default %(default)s)")
    parser.add_argument("--seeds", type=int, default=100, help="how many (default %(default)s)")
    wanted = parser.parse_args()
    found = check(wanted.check, wanted.language, range(wanted.first, wanted.first + wanted.seeds))
    print(json.dumps({"counts": found.counts, "wrong": found.wrong}, indent=2))
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
