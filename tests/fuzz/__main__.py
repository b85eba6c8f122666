"""``python -m tests.fuzz``: so many inputs, each made from a seed, in a process that is bounded in time and memory.

A worker takes inputs one after the other; one that takes longer than ``--seconds``, or needs more than ``--megabytes``,
is ended, and the input is a finding like any other that breaks a law. A finding is cut down and written to ``--save``;
``--replay`` runs it again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from tests.fuzz.cases import make
from tests.fuzz.shrink import shrunk
from tests.fuzz.workers import Bounds, Fresh, Outcome


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10.0, help="of CPU, for one input")
    parser.add_argument("--megabytes", type=int, default=1024, help="for one input, with the program itself")
    parser.add_argument("--findings", type=int, default=20, help="stop after so many")
    parser.add_argument("--save", type=Path, default=Path("fuzz-findings"), help="folder for what is found")
    parser.add_argument("--replay", type=Path, nargs="*", help="run these findings again, and nothing else")
    wanted = parser.parse_args()
    bounds = Bounds(wanted.seconds, wanted.megabytes)
    if wanted.replay:
        return _replay(wanted.replay, bounds)
    return _search(wanted, bounds)


def _search(wanted: argparse.Namespace, bounds: Bounds) -> int:
    kinds: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    slowest, which, largest = 0.0, 0, 0
    fresh = Fresh(bounds)
    for number in range(wanted.first, wanted.first + wanted.count):
        case = make(wanted.seed, number)
        kinds[case["kind"]] += 1
        reports: Outcome = fresh.run(case)
        (slowest, which), largest = max((slowest, which), (reports.seconds, number)), max(largest, reports.megabytes)
        for problem in reports.problems[:1]:
            sign = f"{case['kind']}: {_sign(problem)}"
            seen[sign] += 1
            if seen[sign] == 1:
                _keep(wanted, number, case, problem, bounds)
        if len(seen) >= wanted.findings:
            print(f"stopped after {number - wanted.first + 1} inputs: {wanted.findings} findings")
            break
        if (number + 1) % 1000 == 0:
            print(
                f"{number + 1 - wanted.first} inputs, {len(seen)} findings, slowest {slowest:.1f} s of CPU",
                file=sys.stderr,
            )
    fresh.end()
    listed = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    print(f"{sum(kinds.values())} inputs of seed {wanted.seed} from {wanted.first} on: {listed}")
    print(f"slowest {slowest:.2f} s of CPU (input {which}), most memory of a worker {largest} MB")
    for sign, count in seen.most_common():
        print(f"{count} times {sign}")
    return 1 if seen else 0


def _sign(problem: str) -> str:
    """What makes two findings the same: the words without names and numbers, as far as the place in the program."""
    fault, _, where = problem.partition(" (")
    return f"{fault[:40]} … {where[:80]}" if where else fault[:60]


def _keep(wanted: argparse.Namespace, number: int, case: dict[str, object], problem: str, bounds: Bounds) -> None:
    wanted.save.mkdir(exist_ok=True)
    path = wanted.save / f"{case['kind']}-{wanted.seed}-{number}.json"
    with Fresh(bounds) as fresh:
        small = shrunk(case, lambda each: [_sign(text) for text in fresh.run(each).problems], _sign(problem))
    path.write_text(json.dumps(small | {"problem": problem}, indent=1) + "\n")
    print(f"input {number} ({case['kind']}): {problem}\n  {path}", flush=True)


def _replay(paths: list[Path], bounds: Bounds) -> int:
    failed = False
    for path in paths:
        with Fresh(bounds) as fresh:
            reports = fresh.run(json.loads(path.read_text()))
        failed |= bool(reports.problems)
        print(f"{path}: {reports.seconds:.2f} s, {reports.megabytes} MB: {'; '.join(reports.problems) or 'nothing'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
