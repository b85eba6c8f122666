"""The combinators: how the answers of several plugins, in tiers, become one answer.

Every function takes the hooks of a point as tiers of callables, then the arguments of the question. An answer of a type
that the combinator has no use for is a ``WrongAnswer``: whoever asked says whose it was.
Source: Volcano's session functions (modes C, V, T, I, E, S, AND, OR, union, first registered).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from enum import IntEnum
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from pumice.columns.dtypes import F64, AnyArray, Bool
from pumice.columns.rows import Candidates, NodeRows
from pumice.framework.plugin.errors import WrongAnswer
from pumice.framework.plugin.filter_result import ByHook, FilterResult, Invalid, Unfit
from pumice.model.blockers import QueueLimit
from pumice.model.decisions import Refusal

Hook = Callable[..., Any]
Tiers = Sequence[Sequence[Hook]]

_AGAINST = (Unfit, Invalid)
_NUMBERS = (bool, int, float, np.bool_, np.number)


#: Why a job is not admitted: a text, or the limit that is exceeded.
Rejection = str | QueueLimit


class Vote(IntEnum):
    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


def first_nonzero(tiers: Tiers, *args: object) -> int:
    """Chained comparison: the first plugin with an opinion decides; 0 when none has one."""
    for tier in tiers:
        for hook in tier:
            answer = hook(*args)
            if not isinstance(answer, _NUMBERS):
                raise WrongAnswer(hook, answer, "a whole number")
            if answer:
                return int(answer)
    return 0


def rejection(tiers: Tiers, *args: object) -> Rejection | None:
    """A vote: a reject ends it; a permit lets its tier finish and then decides; all abstaining means yes. None for yes,
    else the limit that is exceeded or the text of the rejection, which is empty where the plugin gives none
    (``Vote.REJECT`` instead of a text)."""
    for tier in tiers:
        permitted = False
        for hook in tier:
            answer = hook(*args)
            if isinstance(answer, str | QueueLimit):
                return answer
            if not isinstance(answer, _NUMBERS):
                raise WrongAnswer(hook, answer, "a Vote")
            if answer < 0:
                return ""
            permitted = permitted or bool(answer > 0)
        if permitted:
            return None
    return None


def vote(tiers: Tiers, *args: object) -> bool:
    """A reject ends it; a permit lets its tier finish and then decides; all abstaining means yes."""
    return rejection(tiers, *args) is None


def first_tier_agrees(tiers: Tiers, *args: object) -> bool:
    """The first tier with hooks decides: all of them must agree. No hook at all means no."""
    for tier in tiers:
        if tier:
            return all_of([tier], *args)
    return False


def intersect(tiers: Tiers, subject: object, candidates: Sized, *, afresh: bool = True) -> Bool:
    """Victims that all voting plugins of a tier name, as a mask; the first tier that names any decides.

    Each hook sees all candidates and answers a mask; one that abstains (None) is skipped, a mask without anybody ends
    its tier only. ``afresh``: where those of a tier that have voted so far agree on nobody, the next one of the tier
    starts afresh, and their votes are lost; otherwise that ends the tier too. Source: Volcano mode I, which starts
    afresh.
    """
    for tier in tiers:
        victims: Bool | None = None
        for hook in tier:
            named = hook(subject, candidates)
            if named is None:
                continue
            if not is_mask(named, candidates):
                raise WrongAnswer(hook, named, f"None or a mask over {len(candidates)} tasks")
            if not np.count_nonzero(named):
                victims = None
                break
            both = named if victims is None else victims & named
            victims = both if np.count_nonzero(both) else None
            if victims is None and not afresh:
                break
        if victims is not None:
            return victims
    return np.zeros(len(candidates), dtype=bool)


class Named(NamedTuple):
    """A hook's victims among the candidates of several nodes: ``victims`` (rows,), and on which of the nodes it has an
    opinion at all (nodes,)."""

    victims: Bool
    speaks: Bool


def agree(tiers: Tiers, subject: object, candidates: Sized) -> Bool:
    """As intersect, but no vote is lost: a tier whose plugins agree on nobody names nobody (decision 0018)."""
    return intersect(tiers, subject, candidates, afresh=False)


def intersect_by_node(tiers: Tiers, subject: object, candidates: Candidates, *, afresh: bool = True) -> Bool:
    """As intersect, for the candidates of each node by themselves: a tier may decide on one node and not on another. A
    hook answers a mask over all candidates, None, or Named."""
    if candidates.node_count == 1:
        return intersect(tiers, subject, candidates, afresh=afresh)
    nth, undecided = candidates.nth, np.ones(candidates.node_count, dtype=bool)
    found = np.zeros(len(candidates), dtype=bool)
    for tier in tiers:
        victims, begun, asked = np.zeros_like(found), np.zeros_like(undecided), undecided.copy()
        for hook in tier:
            answer = hook(subject, candidates)
            if answer is None:
                continue
            named, speaks = answer if isinstance(answer, Named) else (answer, None)
            if not is_mask(named, candidates):
                raise WrongAnswer(hook, answer, f"None or a mask over {len(candidates)} tasks")
            speaking = asked if speaks is None else asked & speaks
            somebody = candidates.nodes_where(named)
            both = np.where(begun[nth], victims & named, named)
            changed = speaking[nth]
            victims[changed] = both[changed] & somebody[nth[changed]]
            agreed = candidates.nodes_where(victims)
            begun = np.where(speaking, agreed, begun)
            asked &= ~(speaking & ~(somebody if afresh else agreed))
        found |= victims
        undecided &= ~begun
        if not undecided.any():
            break
    return found


def agree_by_node(tiers: Tiers, subject: object, candidates: Candidates) -> Bool:
    """As agree, for the candidates of each node by themselves."""
    return intersect_by_node(tiers, subject, candidates, afresh=False)


class MayGo(NamedTuple):
    """A hook's answer to who should leave that names nobody: ``mask`` (rows,) is who may, if others name him."""

    mask: Bool


def union(tiers: Tiers, candidates: Sized) -> Bool:
    """Everybody's victims of a tier, as a mask, but for those of whom a hook of it, or of an earlier one, says that
    they may not go; the first tier that names any decides."""
    may_go = np.ones(len(candidates), dtype=bool)
    for tier in tiers:
        victims = np.zeros(len(candidates), dtype=bool)
        for hook in tier:
            answer = hook(candidates)
            mask = answer.mask if isinstance(answer, MayGo) else answer
            if not is_mask(mask, candidates):
                raise WrongAnswer(hook, answer, f"a mask over {len(candidates)} tasks")
            if isinstance(answer, MayGo):
                may_go &= mask
            else:
                victims |= mask
        if (victims & may_go).any():
            return victims & may_go
    return np.zeros(len(candidates), dtype=bool)


def is_mask(answer: Any, rows: Sized) -> bool:
    """Whether an answer is True or False for each of some rows, as an array."""
    return isinstance(answer, np.ndarray) and answer.dtype == np.bool_ and answer.shape == (len(rows),)


def every_mask(tiers: Tiers, subject: object, rows: Sized) -> Bool:
    """Rows that every hook of every tier lets through; all of them where no plugin has one."""
    found = np.ones(len(rows), dtype=bool)
    for tier in tiers:
        for hook in tier:
            answer = hook(subject, rows)
            if not is_mask(answer, rows):
                raise WrongAnswer(hook, answer, f"a mask over {len(rows)} rows")
            found &= answer
    return found


def all_of(tiers: Tiers, *args: object) -> bool:
    """Every hook of every tier agrees."""
    return all(_yes_or_no(hook, hook(*args)) for tier in tiers for hook in tier)


def any_of(tiers: Tiers, *args: object) -> bool:
    """Some hook agrees."""
    return any(_yes_or_no(hook, hook(*args)) for tier in tiers for hook in tier)


def _yes_or_no(hook: Hook, answer: Any) -> bool:
    if not isinstance(answer, _NUMBERS):
        raise WrongAnswer(hook, answer, "True or False")
    return bool(answer)


def any_mask(tiers: Tiers, subject: object, rows: Sized) -> Bool | None:
    """Rows of which some hook says so; None where none does of any."""
    found: Bool | None = None
    for tier in tiers:
        for hook in tier:
            mask = hook(subject, rows)
            if mask is not None:
                if not is_mask(mask, rows):
                    raise WrongAnswer(hook, mask, f"None or a mask over {len(rows)} rows")
                found = mask if found is None else found | mask
    return found


def most_missing(tiers: Tiers, *args: object) -> int:
    """``all_of`` for hooks that may also count: the largest number still missing, 0 when all agree.

    A hook answers True, False, or how many more tasks must be placed at least. The count lets a gang be placed in one
    go.
    """
    missing = 0
    for tier in tiers:
        for hook in tier:
            answer = hook(*args)
            if not isinstance(answer, _NUMBERS):
                raise WrongAnswer(hook, answer, "True, False or a whole number")
            missing = max(missing, (0 if answer else 1) if isinstance(answer, bool | np.bool_) else int(answer))
    return missing


class Allowed(NamedTuple):
    """``tasks``: how many; ``reason`` why none, empty where the plugin that said so gave none."""

    tasks: int
    reason: str = ""


def fewest(tiers: Tiers, subject: object, rows: Sized) -> Allowed:
    """``all_of`` for hooks that say how many of some rows: the smallest number. A True is one, a False or an Unfit
    none."""
    count = len(rows)
    for tier in tiers:
        for hook in tier:
            answer = hook(subject, rows)
            if isinstance(answer, Unfit):
                return Allowed(0, answer.reason)
            if not isinstance(answer, _NUMBERS):
                raise WrongAnswer(hook, answer, "a whole number, True, False or an Unfit")
            count = min(count, int(answer))
            if count <= 0:
                return Allowed(0)
    return Allowed(count)


def first_failure(tiers: Tiers, *args: object) -> Any:
    """The first reason against, None when there is none."""
    for tier in tiers:
        for hook in tier:
            reason = hook(*args)
            if reason is not None:
                if not isinstance(reason, _AGAINST):
                    raise WrongAnswer(hook, reason, "None or a reason")
                return reason
    return None


def first_row(tiers: Tiers, subject: object, nodes: NodeRows, scores: F64) -> int | None:
    """The row that the first plugin with an answer names, one of those asked about; None when none has an answer."""
    for tier in tiers:
        for hook in tier:
            answer = hook(subject, nodes, scores)
            if answer is not None:
                if not isinstance(answer, int | np.integer) or answer not in nodes.rows:
                    raise WrongAnswer(hook, answer, "None or one of the rows asked about")
                return int(answer)
    return None


def filter_results(tiers: Tiers, subject: object, rows: Sized) -> list[FilterResult]:
    """Every filter's reasons against some rows, in order; those that have nothing to say are left out."""
    return [result for _, result in filter_results_by_hook(tiers, subject, rows)]


def filter_results_by_hook(tiers: Tiers, subject: object, rows: Sized) -> ByHook:
    """Every filter's reasons against some rows, with the filter's number among all that are asked. Filters that have
    nothing to say are left out."""
    found = []
    for number, hook in enumerate(chain.from_iterable(tiers)):
        answer = hook(subject, rows)
        if answer is None:
            continue
        if not isinstance(answer, FilterResult) or len(answer.codes) != len(rows):
            raise WrongAnswer(hook, answer, f"a FilterResult about {len(rows)} rows")
        found.append((number, answer))
    return found


def total(tiers: Tiers, subject: object, rows: Sized, start: F64 | float = 0.0) -> F64 | float:
    """The sum of all scores of some rows, on top of ``start``: an array, or one number where all rows have the same.
    None counts as nothing. Terms are added one after the other, so that equal scores are equal to the last bit."""
    found = start
    for tier in tiers:
        for hook in tier:
            answer = hook(subject, rows)
            if answer is None:
                continue
            if isinstance(answer, np.ndarray):
                if answer.shape != (len(rows),) or answer.dtype.kind not in "biuf":
                    raise WrongAnswer(hook, answer, f"one number for each of {len(rows)} rows")
            elif not isinstance(answer, _NUMBERS):
                raise WrongAnswer(hook, answer, "an array, a number or None")
            found = found + answer
    return found


def open_to_each(tiers: Tiers, classes: Sized, rows: Sized) -> Bool | None:
    """Rows to which no filter objects, for each of some classes (classes, rows); None where none does to any."""
    found: Bool | None = None
    for tier in tiers:
        for hook in tier:
            answer = hook(classes, rows)
            if answer is None:
                continue
            if not isinstance(answer, np.ndarray) or answer.dtype != np.bool_ or answer.shape != _each(classes, rows):
                raise WrongAnswer(hook, answer, f"None or a mask of {len(classes)} classes by {len(rows)} nodes")
            found = answer if found is None else found & answer
    return found


def totals(tiers: Tiers, classes: Sized, rows: Sized) -> F64:
    """The sum of all scores of some rows, as ``total`` gives it, for each of some classes (classes, rows)."""
    found: F64 | None = None
    for tier in tiers:
        for hook in tier:
            answer = hook(classes, rows)
            if answer is None:
                continue
            if not isinstance(answer, np.ndarray) or answer.shape != _each(classes, rows):
                raise WrongAnswer(hook, answer, f"None or numbers for {len(classes)} classes by {len(rows)} nodes")
            found = (0.0 if found is None else found) + answer
    return np.zeros(_each(classes, rows)) if found is None else found


def _each(classes: Sized, rows: Sized) -> tuple[int, int]:
    return len(classes), len(rows)


def finite_total(tiers: Tiers, subject: object, rows: Sized, start: F64 | float = 0.0) -> F64 | float:
    """The same, of finite numbers. Whoever uses a sum finds out that one is not finite, and then asks this."""
    for tier in tiers:
        for hook in tier:
            answer = hook(subject, rows)
            if answer is not None and not np.isfinite(answer).all():
                raise WrongAnswer(hook, answer, "finite numbers")
    return total(tiers, subject, rows, start)


def keys(tiers: Tiers, rows: Sized) -> list[AnyArray]:
    """Chained comparison of many: a column of keys from each plugin, the first that differs decides."""
    found: list[AnyArray] = []
    for tier in tiers:
        for hook in tier:
            answer = hook(rows)
            if not isinstance(answer, np.ndarray) or answer.shape != (len(rows),) or answer.dtype.kind not in "biuf":
                raise WrongAnswer(hook, answer, f"one key for each of {len(rows)} rows")
            if answer.dtype.kind == "f" and np.isnan(np.add.reduce(answer)) and np.isnan(answer).any():
                raise WrongAnswer(hook, answer, "keys that are numbers")
            found.append(answer)
    return found


def single_keys(tiers: Tiers, subject: object) -> list[Any]:
    """The key that every hook gives, in order: a number, or a tuple of numbers."""
    found = []
    for tier in tiers:
        for hook in tier:
            answer = hook(subject)
            for part in answer if isinstance(answer, tuple) else (answer,):
                if not isinstance(part, _NUMBERS) or np.isnan(part):
                    raise WrongAnswer(hook, answer, "a number, or a tuple of numbers")
            found.append(answer)
    return found


def each(tiers: Tiers, *args: object) -> list[Any]:
    """Every answer, in order."""
    return [hook(*args) for tier in tiers for hook in tier]


def merge(tiers: Tiers, *args: object) -> dict[str, Any]:
    """What every hook has to add; of two answers under one key the first counts."""
    found: dict[str, Any] = {}
    for tier in tiers:
        for hook in tier:
            answer = hook(*args)
            if answer is not None and not isinstance(answer, Mapping):
                raise WrongAnswer(hook, answer, "None or a mapping")
            found = {**(answer or {}), **found}
    return found


def first_registered(tiers: Tiers, *args: object) -> Any:
    """The first plugin with the hook decides, whatever it says; None when no plugin has it."""
    for tier in tiers:
        for hook in tier:
            return hook(*args)
    return None


def refine(tiers: Tiers, subject: object, whole: object) -> list[Any]:
    """Each hook takes apart what those before it left: the parts, in order. Without a hook the whole is the only
    one."""
    parts = [whole]
    for tier in tiers:
        for hook in tier:
            parts = [finer for part in parts for finer in hook(subject, part)]
    return parts


def notify(tiers: Tiers, *args: object) -> Refusal | None:
    """Tell every hook, in order; the first refusal that comes back is returned after all were told."""
    refusal = None
    for tier in tiers:
        for hook in tier:
            answer = hook(*args)
            if answer is not None:
                if not isinstance(answer, Refusal):
                    raise WrongAnswer(hook, answer, "None or a Refusal")
                refusal = refusal or answer
    return refusal
