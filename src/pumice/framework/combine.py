"""The combinators: how the answers of several plugins, in tiers, become one answer.

Every function takes the hooks of a point as tiers of callables, then the arguments of the question. There are twelve
ways in all; refinement of node sets comes with the KAI dialect.
Source: Volcano's session functions (modes C, V, T, I, E, S, AND, OR, union, first registered).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

Hook = Callable[..., Any]
Tiers = Sequence[Sequence[Hook]]


class Vote(IntEnum):
    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


def first_nonzero(tiers: Tiers, *args: Any) -> int:
    """Chained comparison: the first plugin with an opinion decides; 0 when none has one."""
    for tier in tiers:
        for hook in tier:
            answer = hook(*args)
            if answer:
                return int(answer)
    return 0


def vote(tiers: Tiers, *args: Any) -> bool:
    """A reject ends it; a permit lets its tier finish and then decides; all abstaining means yes."""
    for tier in tiers:
        permitted = False
        for hook in tier:
            answer = hook(*args)
            if answer < 0:
                return False
            permitted = permitted or answer > 0
        if permitted:
            return True
    return True


def first_tier_agrees(tiers: Tiers, *args: Any) -> bool:
    """The first tier with hooks decides: all of them must agree. No hook at all means no."""
    for tier in tiers:
        if tier:
            return all(hook(*args) for hook in tier)
    return False


def intersect(tiers: Tiers, subject: Any, candidates: Sequence[Any], *rest: Any) -> list[Any]:
    """Victims that all voting plugins of a tier name; the first tier that names any decides.

    Each hook sees the whole candidate list and answers (victims, vote); an abstaining one is skipped, an empty list
    ends its tier only, and after an empty intersection the next plugin of the tier starts afresh. Source: Volcano mode
    I, traps included.
    """
    for tier in tiers:
        victims: list[Any] | None = None
        for hook in tier:
            named, answer = hook(subject, candidates, *rest)
            if answer == Vote.ABSTAIN:
                continue
            if not named:
                victims = None
                break
            if victims is None:
                victims = list(named)
            else:
                keep = set(named)
                victims = [v for v in victims if v in keep] or None
        if victims is not None:
            return victims
    return []


def union(tiers: Tiers, *args: Any) -> list[Any]:
    """Everybody's victims of a tier, in order of naming; the first tier that names any decides."""
    for tier in tiers:
        victims = dict.fromkeys(v for hook in tier for v in hook(*args))
        if victims:
            return list(victims)
    return []


def all_of(tiers: Tiers, *args: Any) -> bool:
    """Every hook of every tier agrees."""
    return all(hook(*args) for tier in tiers for hook in tier)


def any_of(tiers: Tiers, *args: Any) -> bool:
    """Some hook agrees."""
    return any(hook(*args) for tier in tiers for hook in tier)


def most_missing(tiers: Tiers, *args: Any) -> int:
    """``all_of`` for hooks that may also count: the largest number still missing, 0 when all agree.

    A hook answers True, False, or how many more tasks must be placed at least. The count lets a gang be placed in one
    go.
    """
    missing = 0
    for tier in tiers:
        for hook in tier:
            answer = hook(*args)
            missing = max(missing, (0 if answer else 1) if isinstance(answer, bool | np.bool_) else answer)
    return missing


def first_failure(tiers: Tiers, *args: Any) -> Any:
    """The first reason against, None when there is none."""
    for tier in tiers:
        for hook in tier:
            reason = hook(*args)
            if reason is not None:
                return reason
    return None


#: The first hook that answers; the same walk, read as an answer instead of as a reason against.
first_answer = first_failure


def merge(tiers: Tiers, *args: Any) -> dict[str, Any]:
    """What every hook has to add; of two answers under one key the first counts."""
    found: dict[str, Any] = {}
    for tier in tiers:
        for hook in tier:
            found = {**(hook(*args) or {}), **found}
    return found


def first_registered(tiers: Tiers, *args: Any) -> Any:
    """The first plugin with the hook decides, whatever it says; None when no plugin has it."""
    for tier in tiers:
        for hook in tier:
            return hook(*args)
    return None


def total(tiers: Tiers, *args: Any) -> float:
    """Sum of all answers; None counts as nothing."""
    return float(sum(answer for tier in tiers for hook in tier if (answer := hook(*args)) is not None))


def notify(tiers: Tiers, *args: Any) -> Any:
    """Tell every hook, in order; the first refusal that comes back is returned after all were told."""
    refusal = None
    for tier in tiers:
        for hook in tier:
            answer = hook(*args)
            if answer is not None and refusal is None:
                refusal = answer
    return refusal
