"""``python -m bench``: run each figure several times as a whole process, and say the best and the median."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from bench.figures import CYCLE_CPU, FIGURES, TO_EQUAL, Figure
from bench.pairs import Pairs, missed_pairs, pairs_table
from bench.processes import PUMICE, ROOT, Run, RunError, run
from bench.table import Result, number, table, written

T = TypeVar("T")
_RUNS = 5
_RUNS_QUICK = 2


def main(arguments: Sequence[str] | None = None, figures: Sequence[Figure] = FIGURES) -> int:
    """0: every figure reached what it must; 1: one did not, or failed; 2: wrong arguments; 130: interrupted."""
    options = _options(arguments, figures)
    return _compare(options, figures) if options.against else _measure(options, figures)


def _measure(options: argparse.Namespace, figures: Sequence[Figure]) -> int:
    """Run each figure, print the table, and write it if asked."""
    results, failed, code = _of_each(options, figures, lambda figure: Result(figure, list(_runs(figure, options.runs))))
    if options.json:
        print(json.dumps({"figures": [result.to_json() for result in results], "failed": failed}, indent=2))
    elif results:
        print(table(result.line() for result in results))
    missed = _say_missed([text for result in results for text in result.missed])
    if options.write and not code:
        options.write.write_text(written(options.write.read_text(encoding="utf-8"), results), encoding="utf-8")
        _say(f"wrote {options.write}")
    return code or int(missed or bool(failed))


def _compare(options: argparse.Namespace, figures: Sequence[Figure]) -> int:
    """Run each figure in pairs with the Pumice of ``--against``, and print the ratios."""
    pairs, failed, code = _of_each(
        options, figures, lambda figure: Pairs(figure, list(_pairs(figure, options.runs, options.against)))
    )
    if options.json:
        print(json.dumps({"pairs": [each.to_json() for each in pairs], "failed": failed}, indent=2))
    else:
        print(pairs_table(pairs))
    missed = _say_missed(missed_pairs(pairs, options.limit))
    return code or int(missed or bool(failed))


def _of_each(
    options: argparse.Namespace, figures: Sequence[Figure], measure: Callable[[Figure], T]
) -> tuple[list[T], list[str], int]:
    """Return what was measured of each figure, what failed, and 130 after Ctrl-C, else 0."""
    found: list[T] = []
    failed: list[str] = []
    try:
        for figure in _chosen(options, figures):
            try:
                found.append(measure(figure))
            except RunError as error:
                failed.append(f"{figure.name}: {error}")
                _say(failed[-1])
    except KeyboardInterrupt:
        _say("interrupted: these are the figures that were whole until then")
        return found, failed, 130
    return found, failed, 0


def _say_missed(missed: Sequence[str]) -> bool:
    """Say what was missed. Return True if anything was."""
    for text in missed:
        _say(f"missed: {text}")
    return bool(missed)


def _pairs(figure: Figure, asked: int | None, other: Path) -> Iterator[tuple[Run, Run]]:
    count = asked or figure.runs or _RUNS
    for i in range(count):
        this, that = (run((*command, *figure.arguments), {}, i, figure.within) for command in (PUMICE, (str(other),)))
        pair = Pairs(figure, [(this, that)])
        _say(f"{figure.name} {i + 1}/{count}: {pair.measure} ratio {number(pair.ratio)}")
        yield this, that


def _options(arguments: Sequence[str] | None, figures: Sequence[Figure]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m bench", description="The figures of docs/performance.md.")
    parser.add_argument("--quick", action="store_true", help=f"the short figures only, {_RUNS_QUICK} runs each")
    parser.add_argument("--only", action="append", default=[], choices=[f.name for f in figures], metavar="NAME")
    parser.add_argument("--runs", type=int, metavar="N", help=f"runs of each figure (default {_RUNS})")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the figures between the markers of this page")
    parser.add_argument(
        "--against", type=Path, metavar="PUMICE", help="pair each run with one of this other executable of pumice"
    )
    parser.add_argument("--limit", type=float, metavar="RATIO", help="with --against: fail above this ratio of CPU")
    options = parser.parse_args(arguments)
    if options.runs is not None and options.runs < 1:
        parser.error(f"--runs: found {options.runs}, wanted at least 1")
    if options.against and not options.against.is_file():
        parser.error(f"--against {options.against}: found no such file, wanted the executable of another pumice")
    if options.write and options.against:
        parser.error("--write: found with --against, wanted one of them: a page holds the figures of one Pumice")
    if options.limit is not None and not options.against:
        parser.error("--limit: wanted --against too: a ratio needs two")
    if options.quick and options.runs is None:
        options.runs = _RUNS_QUICK
    if options.write:
        try:
            written(options.write.read_text(encoding="utf-8"), ())  # now, and not after an hour of measuring
        except (OSError, ValueError) as error:
            parser.error(f"--write {options.write}: {error}")
    return options


def _chosen(options: argparse.Namespace, figures: Sequence[Figure]) -> Iterator[Figure]:
    for figure in figures:
        if options.only:
            wanted = figure.name in options.only
        else:
            wanted = figure.quick or not options.quick
        if wanted and figure.needs is not None and not (ROOT / figure.needs).exists():
            _say(f"{figure.name}: left out, {figure.needs} is not there")
        elif wanted:
            yield figure


def _runs(figure: Figure, asked: int | None) -> Iterator[Run]:
    """Each run has another seed for Python's hashes, so that one digest says that no decision depends on them."""
    count = asked or figure.runs or _RUNS
    for i in range(count):
        found = _run(figure, i)
        values = ", ".join(f"{m.name} {number(found.values[m.name])}" for m in figure.measures)
        _say(f"{figure.name} {i + 1}/{count}: {values}")
        yield found


def _run(figure: Figure, seed: int) -> Run:
    """One run, between two of the figure that it is held against."""
    if figure.equal is None:
        return run((*PUMICE, *figure.arguments), figure.holds, seed, figure.within)
    before, found, after = (_run(each, seed) for each in (figure.equal, replace(figure, equal=None), figure.equal))
    times = 2 * found.values[CYCLE_CPU] / (before.values[CYCLE_CPU] + after.values[CYCLE_CPU])
    return replace(found, values={**found.values, TO_EQUAL: times})


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
