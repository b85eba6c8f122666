"""Which differences count: the primary figure alone, the others together and after it."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.report.comparison import Figure, FigureKind, PairedRuns, RunOutcome

WAIT, USE, END = (
    Figure("wait_mean", "wait, mean", FigureKind.SECONDS, True),
    Figure("use", "use", FigureKind.SHARE, False),
    Figure("simulated", "time until the end", FigureKind.SECONDS, None),
)
CLEAR, UNCLEAR = (10.0, 10.1, 9.9, 10.0, 10.1), (3.0, -2.0, 1.0, -1.0, 0.5)


def better(wait: tuple[float, ...], use: tuple[float, ...], primary: str) -> dict[str, str]:
    pairs = tuple(
        (
            RunOutcome(i, "a", "done", {WAIT: 0.0, USE: 0.0, END: 0.0}),
            RunOutcome(i, "b", "done", {WAIT: w, USE: u, END: 10.0}),
        )
        for i, (w, u) in enumerate(zip(wait, use, strict=True))
    )
    rows = PairedRuns(("A", "B"), (), 1, 0.0, pairs, primary).rows
    assert [row.figure.name for row in rows if row.is_primary] == [primary] * bool(primary)
    return {row.figure.name: row.better for row in rows if row.better}


@pytest.mark.parametrize(
    ("wait", "use", "primary", "wanted"),
    [
        (CLEAR, CLEAR, "wait_mean", {"wait_mean": "a", "use": "b"}),
        (CLEAR, UNCLEAR, "wait_mean", {"wait_mean": "a"}),
        (UNCLEAR, CLEAR, "wait_mean", {}),
        (UNCLEAR, CLEAR, "use", {"use": "b"}),
        (UNCLEAR, CLEAR, "", {"use": "b"}),
    ],
)
def test_others_count_only_if_the_primary_figure_differs(
    wait: tuple[float, ...], use: tuple[float, ...], primary: str, wanted: dict[str, str]
) -> None:
    assert better(wait, use, primary) == wanted


@pytest.mark.parametrize("primary", ["wait_mean", ""])
def test_of_200_tables_of_equal_policies_few_say_better(primary: str) -> None:
    # As figures of one run are, these move together in part: each has a share of the same chance.
    dice = np.random.default_rng(11)
    figures = [WAIT, *(Figure(f"f{i}", f"f{i}", FigureKind.SECONDS, True) for i in range(11))]

    def outcome(seed: int, label: str) -> RunOutcome:
        values = dice.normal() + dice.normal(size=len(figures))
        return RunOutcome(seed, label, "done", dict(zip(figures, values.tolist(), strict=True)))

    wrong = 0
    for _ in range(200):
        pairs = tuple((outcome(seed, "a"), outcome(seed, "b")) for seed in range(5))
        wrong += any(row.better for row in PairedRuns(("A", "B"), (), 1, 0.0, pairs, primary).rows)
    assert wrong <= 10


DONE = Figure("completed", "jobs done", FigureKind.NUMBER, False)


@pytest.mark.parametrize(
    ("done", "policy"),
    [
        pytest.param(((24, 0), (24, 0)), "B", id="always as many more"),
        pytest.param(((20, 24), (21, 24), (20, 25)), "A", id="more in each universe"),
        pytest.param(((24, 23), (22, 24), (24, 24)), "", id="by chance"),
        pytest.param(((24, 24), (24, 24)), "", id="none"),
        pytest.param(((24, 0),), "", id="one universe"),
    ],
)
def test_a_policy_that_leaves_more_jobs_undone_is_named(done: tuple[tuple[int, int], ...], policy: str) -> None:
    pairs = tuple(
        (RunOutcome(i, "a", "done", {DONE: float(a)}), RunOutcome(i, "b", "done", {DONE: float(b)}))
        for i, (a, b) in enumerate(done)
    )
    found = PairedRuns(("A", "B"), (), 1, 0.0, pairs).caution
    assert found.startswith(f"{policy} leaves more jobs undone") if policy else not found
