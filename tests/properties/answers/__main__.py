"""``python -m tests.properties.answers``: answers about random clusters, as many as asked for, held to what an answer
promises. It prints how many of each kind were checked, and what was wrong with which seed.

``reasons``: without all parts of one the job starts, without some of them it does not. ``smallest``: no smaller set of
obstacles does. ``ways``: the first places the job and half of it does not. ``cost``: no cheaper one of the same steps
does. One explanation of each job is held to all that are asked for.

With ``--keep FILE`` each cluster that was checked is a line of that file, and clusters that are there already are not
checked again: a run that was ended goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from pumice.answers.explanation import Explanation, Verdict, explain
from tests.properties.answers.answer_worlds import LANGUAGES, WALK, WALK_LARGE, random_world
from tests.properties.answers.checks import FreshStores, cheaper_way, smaller_sets, wrong_of, wrong_reason


class Checked(Struct, frozen=True):
    """What was counted in the world of a seed, and what was wrong there."""

    seed: int
    language: str
    checks: tuple[str, ...]
    counts: dict[str, int]
    wrong: tuple[str, ...]


def _reasons(stores: FreshStores, answer: Explanation, counts: Counter[str]) -> list[str]:
    counts["reasons"] += 1
    return wrong_reason(stores, answer)


def _smallest(stores: FreshStores, answer: Explanation, counts: Counter[str]) -> list[str]:
    found = smaller_sets(stores, answer)
    if found is None:
        return []
    counts["compared with all smaller sets"] += 1
    counts["of these of several parts"] += found[1]
    return [] if found[0] else [f"{answer.job}: a smaller set of obstacles would do"]


def _ways(stores: FreshStores, answer: Explanation, counts: Counter[str]) -> list[str]:
    counts["with a way out"] += bool(answer.ways)
    return [wrong for way in answer.ways[:1] for wrong in wrong_of(stores, answer.job, way)]


def _cost(stores: FreshStores, answer: Explanation, counts: Counter[str]) -> list[str]:
    if not answer.ways:
        return []
    cheaper = cheaper_way(stores, answer, _CHEAPER_MAX)
    counts["compared with all cheaper ways" if cheaper is not None else "with too many ways to compare"] += 1
    return [f"{answer.job}: {'; '.join(answer.ways[0].text)}, and cheaper: {cheaper}"] if cheaper else []


_CHECKS: dict[str, Callable[[FreshStores, Explanation, Counter[str]], list[str]]] = {
    "reasons": _reasons,
    "smallest": _smallest,
    "ways": _ways,
    "cost": _cost,
}
_WITH_WAYS = {"ways", "cost"}
#: One of so many clusters is large: a small one has as many kinds of reasons, and is checked sooner.
_LARGE_EACH = 10
#: Cheaper ways that are run beside one.
_CHEAPER_MAX = 40


def check(checks: tuple[str, ...], language: str, seed: int, *, reserves: bool = False) -> Checked:
    """Check answers about the world of a seed."""
    counts, wrong = Counter[str](), list[str]()
    world = random_world(
        random.Random(seed), language, reserves=reserves, size=WALK if seed % _LARGE_EACH else WALK_LARGE
    )
    stores = FreshStores(world)
    for job in world.groups:
        answer = explain(world, job, ways=bool(_WITH_WAYS & set(checks)), trials=stores.one)
        if answer.verdict is Verdict.STARTS:
            continue
        counts["waiting jobs"] += 1
        for each in checks:
            wrong += [f"{each}: {text}" for text in _CHECKS[each](stores, answer, counts)]
    return Checked(seed, language, checks, dict(counts), tuple(wrong))


def check_all(
    checks: tuple[str, ...], language: str, seeds: Iterable[int], kept: Path | None, *, reserves: bool
) -> Iterator[Checked]:
    """Yield what was found for each seed, also for those that a file has, and write the others into it."""
    lines = kept.read_bytes().splitlines() if kept is not None and kept.exists() else []
    there = {(each.seed, each.language, each.checks): each for each in map(_read, lines) if each is not None}
    for seed in seeds:
        found = there.get((seed, language, checks))
        if found is None:
            found = check(checks, language, seed, reserves=reserves)
            if kept is not None:
                with kept.open("ab") as file:
                    file.write(msgspec.json.encode(found) + b"\n")
        yield found


def _read(line: bytes) -> Checked | None:
    """Return what a line says, None for one whose writing was ended."""
    try:
        return msgspec.json.decode(line, type=Checked)
    except msgspec.MsgspecError:
        return None


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.properties.answers", description=__doc__)
    parser.add_argument("--check", choices=("all", *_CHECKS), default="all", help="default %(default)s")
    parser.add_argument("--language", choices=LANGUAGES, default="volcano", help="default %(default)s")
    parser.add_argument("--first", type=int, default=50_000, help="the first seed (default %(default)s)")
    parser.add_argument("--seeds", type=int, default=100, help="how many (default %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="a line for each cluster; those there are not run")
    parser.add_argument("--reserves", action="store_true", help="room is kept for the oldest jobs (Volcano's language)")
    wanted = parser.parse_args()
    if wanted.reserves and wanted.language != "volcano":
        parser.error("--reserves: no action of KAI's language asks ours/reserve")
    checks = tuple(_CHECKS) if wanted.check == "all" else (wanted.check,)
    counts, wrong = Counter[str](), dict[int, tuple[str, ...]]()
    seeds = range(wanted.first, wanted.first + wanted.seeds)
    for found in check_all(checks, wanted.language, seeds, wanted.keep, reserves=wanted.reserves):
        counts += Counter({"clusters": 1, **found.counts})
        if found.wrong:
            wrong[found.seed] = found.wrong
    print(json.dumps({"counts": counts, "wrong": wrong}, indent=2))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
