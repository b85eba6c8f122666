"""Figures in words: best, median, ratio, what was missed, and the page that keeps what was not measured."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bench.figures import FIGURES, PEAK, Figure, Measure
from bench.processes import ROOT, Run
from bench.table import BEGIN, END, Result, begin_of, number, written

FIGURE = Figure("gang-1k", "some pods", ("bench",), (Measure("s", limit=2.0, original=39.0), Measure("MB")))


def runs(*seconds: float, digest: str = "d") -> list[Run]:
    return [Run({"s": s, "MB": 100 * s}, digest) for s in seconds]


def test_a_line_has_best_median_limit_and_ratio() -> None:
    figure = replace(FIGURE, measures=(*FIGURE.measures, Measure(PEAK, limit=60.0, original=500.0)))
    found = [Run({**run.values, PEAK: 50.0}, run.digest) for run in runs(3.0, 1.0, 1.5)]
    assert Result(figure, found).line() == (
        "| `gang-1k` | some pods | `pumice bench` |  | 50 / 50 ≤ 60 |  |"
        " s 1 / 1.5 ≤ 2, MB 100 / 150 | s 39 (26×), peak MB 500 (10×) |"
    )


@pytest.mark.parametrize(
    ("found", "missed"),
    [
        pytest.param(runs(1.0, 2.0, 9.0), [], id="the median counts, and may be the limit"),
        pytest.param(runs(1.0, 2.1, 9.0), ["gang-1k: s 2.1, must reach 2"], id="above"),
        pytest.param(runs(1.0) + runs(1.0, digest="e"), ["gang-1k: 2 digests in 2 runs"], id="not deterministic"),
    ],
)
def test_missed(found: list[Run], missed: list[str]) -> None:
    result = Result(FIGURE, found)
    assert result.missed == missed
    assert result.to_json()["missed"] == missed


@pytest.mark.parametrize(
    ("value", "text"), [(0.01234, "0.0123"), (4.5, "4.5"), (99.94, "99.9"), (100.4, "100"), (12345.6, "12,346")]
)
def test_number(value: float, text: str) -> None:
    assert number(value) == text


def test_a_page_keeps_the_figures_that_were_not_measured() -> None:
    empty = f"before\n{BEGIN}\n{END}\nafter\n"
    other = replace(FIGURE, name="topo-1")
    both = written(empty, [Result(FIGURE, runs(1.0)), Result(other, runs(2.0))])
    assert both.startswith("before\n") and both.endswith(f"{END}\nafter\n")

    again = written(both, [Result(other, runs(4.0))])
    assert Result(FIGURE, runs(1.0)).line() in again and Result(other, runs(4.0)).line() in again
    assert again.count("| `topo-1` |") == 1
    assert written(again, []) == again


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="found no markers"):
        written("# Performance\n", [])


def test_figures_have_names_of_their_own_and_the_page_lists_them_with_their_commands() -> None:
    assert len({figure.name for figure in FIGURES}) == len(FIGURES)
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert [figure.name for figure in FIGURES if begin_of(figure) not in page] == []
