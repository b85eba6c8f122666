"""Figures: found when somebody asks, once, and as arrays; one that fails is left out."""

from __future__ import annotations

from typing import Any

import numpy as np

from pumice.framework.cycle.figures import Figures


def test_they_are_found_when_somebody_asks_and_once() -> None:
    asked = []

    def find() -> dict[str, Any]:
        asked.append(1)
        return {"a.b": [1, 2], "a.c": lambda: [3], "a.d": lambda: 1 / 0}

    figures = Figures(find)
    assert not asked
    assert figures["a.b"].tolist() == [1, 2] and isinstance(figures["a.b"], np.ndarray)
    assert figures["a.c"].tolist() == [3]
    assert list(figures) == ["a.b", "a.c"] and len(figures) == 2, "the one that fails is not published"
    assert asked == [1]


def test_what_was_found_is_found_for_all_that_share_it() -> None:
    found: dict[str, Any] = {}
    assert Figures(lambda: {"a.b": [1]}, found)["a.b"].tolist() == [1]
    assert Figures(lambda: {"a.b": 1 / 0}, found)["a.b"].tolist() == [1]
