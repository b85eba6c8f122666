"""How nodes should be scored for a pod, by its annotations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

SCORING_ANNOTATION = "volcano.sh/resource-strategy-scoring-type"
WEIGHT_ANNOTATION = "volcano.sh/resource-strategy-weight"
MOST_ALLOCATED, LEAST_ALLOCATED = "MostAllocated", "LeastAllocated"
NAMES_MAX, WEIGHT_MAX, TEXT_MAX = 64, 1_000_000, 8192


class ResourceStrategy(Struct, frozen=True):
    """``most``: fuller nodes are better, else emptier ones. ``weights``: by resource; without any, no node has a
    score."""

    most: bool = False
    weights: tuple[tuple[str, int], ...] = ()


def resource_strategy(annotations: Mapping[str, str]) -> ResourceStrategy | None:
    """Return the strategy in annotations, or None if there is none. Source: Volcano resource-strategy-fit."""
    scoring = annotations.get(SCORING_ANNOTATION)
    return None if not scoring else _strategy_of(scoring, annotations.get(WEIGHT_ANNOTATION, ""))


@lru_cache(maxsize=1024)
def _strategy_of(scoring: str, weights: str) -> ResourceStrategy:
    """Return the strategy for the texts of two annotations. Cached, because pods of a job have equal annotations."""
    return ResourceStrategy(scoring == MOST_ALLOCATED, _weights_of(weights))


def _weights_of(text: str) -> tuple[tuple[str, int], ...]:
    """Return weights from JSON, none if the text is invalid or out of bounds."""
    try:
        # Bounded, because tenants write annotations, and JSON of any length would be parsed in the scheduler.
        found = json.loads(text) if len(text) <= TEXT_MAX else None
    except (ValueError, RecursionError):
        return ()
    if not isinstance(found, dict) or len(found) > NAMES_MAX:
        return ()
    # ``type`` and not ``isinstance``: True is an int for Python but not for Go's JSON.
    if not all(type(weight) is int and 0 <= weight <= WEIGHT_MAX for weight in found.values()):
        return ()
    return tuple(sorted(found.items()))
