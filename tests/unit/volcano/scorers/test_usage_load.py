"""How busy a node is with what was measured of it and what is starting there."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.volcano.scorers.usage_load import best_effort_use, composite, estimated_use, idleness_score, weighted


@pytest.mark.parametrize(
    ("request_", "limit", "use"),
    [
        pytest.param(1000.0, 0.0, 700.0, id="no limit: the request"),
        pytest.param(1000.0, 500.0, 700.0, id="a limit below it counts as none"),
        pytest.param(1000.0, 2000.0, 1200.0, id="and half of what is beyond"),
        pytest.param(0.0, 0.0, 0.0, id="nothing"),
    ],
)
def test_what_a_pod_will_use(request_: float, limit: float, use: float) -> None:
    assert estimated_use(np.array(request_), np.array(limit), 0.7, 0.5) == pytest.approx(use)


def test_at_risk_it_is_more_and_never_more_than_it_may() -> None:
    asked = np.array(1000.0)
    assert estimated_use(asked, np.array(0.0), 0.7, 0.0, 1.2) == pytest.approx(840.0)
    assert estimated_use(asked, np.array(0.0), 0.7, 0.0, 9.0) == 1000.0
    assert estimated_use(asked, np.array(1500.0), 0.7, 0.5, 9.0) == 1500.0
    assert best_effort_use(250.0, 1.2) == pytest.approx(300.0)


@pytest.mark.parametrize(
    ("percent", "coming", "capacity", "share"),
    [(50.0, 0.0, 100.0, 0.5), (50.0, 25.0, 100.0, 0.75), (90.0, 50.0, 100.0, 1.0), (50.0, 5.0, 0.0, 0.0)],
)
def test_the_share_in_use(percent: float, coming: float, capacity: float, share: float) -> None:
    assert composite(np.array(percent), np.array(coming), np.array(capacity)) == share


def test_the_idler_the_better() -> None:
    shares = np.array([[0.5, 0.25], [1.0, 1.0]])
    assert weighted(shares, np.array([3.0, 1.0])).tolist() == [0.4375, 1.0]
    assert weighted(shares, np.zeros(2)).tolist() == [0.0, 0.0], "where nothing has a weight"
    assert idleness_score(shares, np.array([1.0, 1.0]), 5.0).tolist() == [312.5, 0.0]
