"""How nodes are to be scored for a pod, in its own words."""

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
    """``most``: the fuller a node, the better; else the emptier. ``weights``: of resources, by name; none where the pod
    gives none that can be read, and then no node has a score."""

    most: bool = False
    weights: tuple[tuple[str, int], ...] = ()


def resource_strategy(annotations: Mapping[str, str]) -> ResourceStrategy | None:
    """What annotations say of it; None where they say nothing. Source: Volcano resource-strategy-fit."""
    scoring = annotations.get(SCORING_ANNOTATION)
    return None if not scoring else _strategy_of(scoring, annotations.get(WEIGHT_ANNOTATION, ""))


@lru_cache(maxsize=1024)
def _strategy_of(scoring: str, weights: str) -> ResourceStrategy:
    return ResourceStrategy(scoring == MOST_ALLOCATED, _weights_of(weights))


def _weights_of(text: str) -> tuple[tuple[str, int], ...]:
    try:
        found = json.loads(text) if len(text) <= TEXT_MAX else None
    except (ValueError, RecursionError):
        return ()
    if not isinstance(found, dict) or len(found) > NAMES_MAX:
        return ()
    if not all(type(weight) is int and 0 <= weight <= WEIGHT_MAX for weight in found.values()):
        return ()
    return tuple(sorted(found.items()))
