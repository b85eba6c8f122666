"""Equal tasks go where they would go one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.columns.dtypes import F64, AnyArray
from pumice.placing.k_best import LOOK_MAX, KBestMerge

ROOM = np.array([3.0, 0.0, 40.0, 5.0, 5.0, 1.0])


def fullest(rows: AnyArray, after: F64) -> F64:
    return np.where(after < ROOM[rows], after - ROOM[rows], -np.inf)


def emptiest(rows: AnyArray, after: F64) -> F64:
    return np.where(after < ROOM[rows], ROOM[rows] - after, -np.inf)


def up_and_down(rows: AnyArray, after: F64) -> F64:
    return np.where(after < ROOM[rows], (after * 7 + rows * 3) % 5, -np.inf)


def one_by_one(score_after: object, places: list[int], count: int) -> list[int]:
    picked: list[int] = []
    for _ in range(count):
        scores = [
            (-score_after(np.array([row]), np.array([float(picked.count(row))]))[0], places[row])  # type: ignore[operator]
            for row in range(len(ROOM))
        ]
        best = min(range(len(ROOM)), key=scores.__getitem__)
        if scores[best][0] == np.inf:
            break
        picked.append(best)
    return picked


@pytest.mark.parametrize("score_after", [fullest, emptiest, up_and_down])
@pytest.mark.parametrize("count", [1, 2, 7, 50, 100])
@pytest.mark.parametrize("known", [1, 2])
@pytest.mark.parametrize("places", [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0]])
def test_a_ladder_picks_what_one_after_the_other_would(
    score_after: object, count: int, known: int, places: list[int]
) -> None:
    rows = np.arange(len(ROOM))
    steps = np.array([score_after(rows, np.full(len(rows), float(after))) for after in range(known)]).T.tolist()  # type: ignore[operator]
    ladder = KBestMerge(rows, np.array(places), steps, count, score_after)  # type: ignore[arg-type]
    assert ladder.climb() == one_by_one(score_after, places, count)


def test_no_call_looks_at_more_rows_than_pay() -> None:
    asked: list[int] = []

    def score_after(rows: AnyArray, after: F64) -> F64:
        asked.append(len(rows))
        return np.where(after < 8, after, -np.inf)

    rows = np.arange(LOOK_MAX)
    steps = [[0.0, 1.0] for _ in rows]
    assert (
        KBestMerge(rows, rows, steps, LOOK_MAX, score_after).climb() == np.repeat(np.arange(LOOK_MAX // 8), 8).tolist()
    )
    assert max(asked) <= LOOK_MAX
    assert len(asked) < LOOK_MAX // 8  # the neighbours of a node that fills up are looked at with it
