"""Combinators: how the answers of several plugins, in tiers, become one answer.

Each function takes the hooks of a point as tiers of callables, and then the arguments of the question. An answer of a
type that the combinator cannot use is a ``WrongAnswer``, for which ``Hooks`` finds the plugin. Source: Volcano's
session functions (framework/session_plugins.go).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from enum import IntEnum
from itertools import chain
from math import isfinite, isnan
from typing import NamedTuple, TypeGuard, TypeVar

import numpy as np

from pumice.columns.dtypes import F64, AnyArray, Bool
from pumice.columns.rows import Candidates, NodeRows
from pumice.framework.plugin.errors import HookFunction, WrongAnswer
from pumice.framework.plugin.filter_result import ByHook, FilterResult, Invalid, Unfit
from pumice.framework.plugin.point import Key
from pumice.model.blockers import Blocker, QueueLimit
from pumice.model.decisions import Refusal

Tiers = Sequence[Sequence[HookFunction]]
Reason = TypeVar("Reason", Unfit, Invalid)

_NUMBERS = (bool, int, float, np.bool_, np.number)


#: Why a job is not admitted: a text, or the limit that is exceeded.
Rejection = str | QueueLimit


class Vote(IntEnum):
    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


def first_nonzero(tiers: Tiers, *args: object) -> int:
    """Return the answer of the first plugin with an opinion, in a comparison; 0 if none has one."""
    for tier in tiers:
        for hook in tier:
            answer = hook(*args)
            if not isinstance(answer, _NUMBERS):
                raise WrongAnswer(hook, answer, "a whole number")
            if answer:
                return int(answer)
    return 0


def rejection(tiers: Tiers, *args: object, texts: bool = True) -> Rejection | None:
    """Return None to admit, otherwise the limit that is exceeded or the text of the rejection, which is empty if the
    plugin gives none (``Vote.REJECT`` in place of a text). A rejection ends the vote. A permit decides after its tier
    has finished. If all abstain, that admits.
    ``texts``: an answer may be such a text or limit."""
    for tier in tiers:
        permitted = False
        for hook in tier:
            answer = hook(*args)
            if texts and isinstance(answer, str | QueueLimit):
                return answer
            if not is_number(answer):
                raise WrongAnswer(hook, answer, "a Vote")
            if answer < 0:
                return ""
            # Noted and not returned: a later plugin of the tier may still reject. Source: Volcano JobEnqueueable.
            permitted = permitted or bool(answer > 0)
        if permitted:
            return None
    return None


def vote(tiers: Tiers, *args: object) -> bool:
    """Return True unless a plugin rejects. A permit decides after its tier has finished."""
    return rejection(tiers, *args, texts=False) is None


def first_tier_agrees(tiers: Tiers, *args: object) -> bool:
    """Return True if all hooks of the first tier that has some agree, and False if there is no hook."""
    first = next(filter(None, tiers), None)
    return first is not None and all_of((first,), *args)


def intersect(tiers: Tiers, subject: object, candidates: Sized, *, afresh: bool = True) -> Bool:
    """Return victims on which all plugins of a tier agree, as a mask; the first tier that agrees on any decides.

    Each hook sees all candidates and answers a mask. One that abstains (None) is skipped, and an empty mask ends its
    tier only. ``afresh``: if those of a tier that have voted so far agree on no victim, the next hook of the tier
    starts afresh and their votes are lost; otherwise that ends the tier too. Source: Volcano's Preemptable and
    Reclaimable (framework/session_plugins.go), which start afresh.
    """
    for tier in tiers:
        victims: Bool | None = None
        for hook in tier:
            named = hook(subject, candidates)
            if named is None:
                continue
            if not is_mask(named, candidates):
                raise WrongAnswer(hook, named, f"None or a mask over {len(candidates)} tasks")
            # An empty mask is a veto for the tier, while None is no opinion. Without the difference, a plugin that is
            # not concerned with a preemptor would protect every task.
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
    """A hook's ``victims`` among the candidates of several nodes (rows,), and on which of the nodes it has an opinion
    at all (nodes,)."""

    victims: Bool
    speaks: Bool


def agree(tiers: Tiers, subject: object, candidates: Sized) -> Bool:
    """Return victims as ``intersect``, but count all votes: a tier whose plugins agree on no victim names none
    (decision 0017)."""
    return intersect(tiers, subject, candidates, afresh=False)


def intersect_by_node(tiers: Tiers, subject: object, candidates: Candidates, *, afresh: bool = True) -> Bool:
    """Return victims as ``intersect``, for the candidates of each node by themselves: a tier may decide on one node and
    not on another. A hook answers a mask over all candidates, None, or Named."""
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
            any_named = candidates.nodes_where(named)
            # As ``intersect``, with one flag per node in place of each variable: ``begun`` for victims that are not
            # None, ``asked`` for a tier that was not ended by an empty mask.
            both = np.where(begun[nth], victims & named, named)
            changed = speaking[nth]
            victims[changed] = both[changed] & any_named[nth[changed]]
            agreed = candidates.nodes_where(victims)
            begun = np.where(speaking, agreed, begun)
            asked &= ~(speaking & ~(any_named if afresh else agreed))
        found |= victims
        undecided &= ~begun
        if not undecided.any():
            break
    return found


def agree_by_node(tiers: Tiers, subject: object, candidates: Candidates) -> Bool:
    """Return victims as ``agree``, for the candidates of each node by themselves."""
    return intersect_by_node(tiers, subject, candidates, afresh=False)


class MayGo(NamedTuple):
    """An answer to which tasks should leave that names none: those in ``mask`` (rows,) may leave if others name
    them."""

    mask: Bool


def union(tiers: Tiers, candidates: Sized) -> Bool:
    """Return the victims of all hooks of a tier, as a mask, without tasks that a hook of it, or of an earlier tier,
    does not let go. The first tier that names any decides."""
    may_go = np.ones(len(candidates), dtype=bool)
    for tier in tiers:
        victims = np.zeros(len(candidates), dtype=bool)
        for hook in tier:
            answer = hook(candidates)
            mask = answer.mask if isinstance(answer, MayGo) else answer
            if not is_mask(mask, candidates):
                raise WrongAnswer(hook, answer, f"a mask over {len(candidates)} tasks")
            if isinstance(answer, MayGo):
                # Also for the tiers after this one: a task that one plugin protects is not offered again by a later
                # tier.
                may_go &= mask
            else:
                victims |= mask
        if (victims & may_go).any():
            return victims & may_go
    return np.zeros(len(candidates), dtype=bool)


def is_mask(answer: object, rows: Sized) -> TypeGuard[Bool]:
    """Return True if an answer is an array with True or False for each of some rows."""
    return isinstance(answer, np.ndarray) and answer.dtype == np.bool_ and answer.shape == (len(rows),)


def every_mask(tiers: Tiers, subject: object, rows: Sized) -> Bool:
    """Return the rows that all hooks of all tiers let through; all rows if no plugin has a hook."""
    found = np.ones(len(rows), dtype=bool)
    for hook in chain.from_iterable(tiers):
        answer = hook(subject, rows)
        if not is_mask(answer, rows):
            raise WrongAnswer(hook, answer, f"a mask over {len(rows)} rows")
        found &= answer
    return found


def all_of(tiers: Tiers, *args: object) -> bool:
    """Return True if every hook of every tier agrees."""
    return all(_yes_or_no(hook, hook(*args)) for tier in tiers for hook in tier)


def any_of(tiers: Tiers, *args: object) -> bool:
    """Return True if some hook agrees."""
    return any(_yes_or_no(hook, hook(*args)) for tier in tiers for hook in tier)


def _yes_or_no(hook: HookFunction, answer: object) -> bool:
    if not is_number(answer):
        raise WrongAnswer(hook, answer, "True or False")
    return bool(answer)


def is_number(answer: object) -> TypeGuard[float]:
    """Return True for a number of Python or NumPy that is not NaN."""
    return isinstance(answer, _NUMBERS) and not isnan(answer)


def any_mask(tiers: Tiers, subject: object, rows: Sized) -> Bool | None:
    """Return the rows that some hook names, or None if no hook names any."""
    found: Bool | None = None
    for hook in chain.from_iterable(tiers):
        mask = hook(subject, rows)
        if mask is not None:
            if not is_mask(mask, rows):
                raise WrongAnswer(hook, mask, f"None or a mask over {len(rows)} rows")
            found = mask if found is None else found | mask
    return found


def most_missing(tiers: Tiers, *args: object) -> int:
    """Return the largest number still missing, 0 if all agree. A hook answers True, False, or how many more tasks must
    be placed at least; the count lets a gang be placed at once."""
    missing = 0
    for hook in chain.from_iterable(tiers):
        answer = hook(*args)
        if not isinstance(answer, _NUMBERS):
            raise WrongAnswer(hook, answer, "True, False or a whole number")
        # A bool is an int in Python, and True means ready, not one task missing. So the type decides which of the
        # two is meant.
        missing = max(missing, (0 if answer else 1) if isinstance(answer, bool | np.bool_) else int(answer))
    return missing


class Allowed(NamedTuple):
    """``tasks``: how many. ``reason``: why none, empty for none given; ``blocker``: the same as a value, if given."""

    tasks: int
    reason: str = ""
    blocker: Blocker | None = None


def fewest(tiers: Tiers, subject: object, rows: Sized) -> Allowed:
    """Return the smallest number of rows that a hook allows. A True means one row, a False or an Unfit none."""
    count = len(rows)
    for hook in chain.from_iterable(tiers):
        answer = hook(subject, rows)
        if isinstance(answer, Unfit):
            return Allowed(0, answer.reason, answer.blocker)
        if not isinstance(answer, _NUMBERS):
            raise WrongAnswer(hook, answer, "a whole number, True, False or an Unfit")
        count = min(count, int(answer))
        if count <= 0:
            return Allowed(0)
    return Allowed(count)


def first_unfit(tiers: Tiers, *args: object) -> Unfit | None:
    """Return the first reason against a task, or None if there is none."""
    return _first_reason(tiers, args, Unfit)


def first_invalid(tiers: Tiers, *args: object) -> Invalid | None:
    """Return the first reason against a job, or None if there is none."""
    return _first_reason(tiers, args, Invalid)


def _first_reason(tiers: Tiers, args: tuple[object, ...], wanted: type[Reason]) -> Reason | None:
    for hook in chain.from_iterable(tiers):
        reason = hook(*args)
        if reason is not None:
            if not isinstance(reason, wanted):
                raise WrongAnswer(hook, reason, f"None or an {wanted.__name__}")
            return reason
    return None


def first_row(tiers: Tiers, subject: object, nodes: NodeRows, scores: F64) -> int | None:
    """Return the row that the first plugin with an answer names, one of those asked about; None if there is no
    answer."""
    for hook in chain.from_iterable(tiers):
        answer = hook(subject, nodes, scores)
        if answer is not None:
            # A row that was not asked about may have no room, and would be taken without a further check.
            if not isinstance(answer, int | np.integer) or answer not in nodes.rows:
                raise WrongAnswer(hook, answer, "None or one of the rows asked about")
            return int(answer)
    return None


def filter_results(tiers: Tiers, subject: object, rows: Sized) -> list[FilterResult]:
    """Return each filter's reasons against some rows, in order, without filters that object to none."""
    return [result for _, result in filter_results_by_hook(tiers, subject, rows)]


def filter_results_by_hook(tiers: Tiers, subject: object, rows: Sized) -> ByHook:
    """Return each filter's reasons against some rows, with the filter's number among all that are asked, without
    filters that object to none."""
    found = []
    for number, hook in enumerate(chain.from_iterable(tiers)):
        answer = hook(subject, rows)
        if answer is None:
            continue
        if not isinstance(answer, FilterResult) or not answer.is_about(len(rows)):
            raise WrongAnswer(hook, answer, f"a FilterResult about {len(rows)} rows")
        found.append((number, answer))
    return found


def total(tiers: Tiers, subject: object, rows: Sized, start: F64 | float = 0.0) -> F64 | float:
    """Return the sum of all scores of some rows and ``start``: an array, or one number if all rows have the same. None
    counts as nothing. Terms are added one after the other, so that equal scores are equal to the last bit."""
    found = start
    for hook in chain.from_iterable(tiers):
        answer = hook(subject, rows)
        if answer is None:
            continue
        if isinstance(answer, np.ndarray):
            if answer.shape != (len(rows),) or answer.dtype.kind not in "biuf":
                raise WrongAnswer(hook, answer, f"one number for each of {len(rows)} rows")
        elif not (isinstance(answer, _NUMBERS) and isfinite(answer)):
            raise WrongAnswer(hook, answer, "an array, a finite number or None")
        # Not in place, because ``start`` may be an array that is kept.
        found = found + answer
    return found


def open_to_each(tiers: Tiers, classes: Sized, rows: Sized) -> Bool | None:
    """Return the rows to which no filter objects, for each of some classes (classes, rows); None if none objects at
    all."""
    found: Bool | None = None
    for hook in chain.from_iterable(tiers):
        answer = hook(classes, rows)
        if answer is None:
            continue
        if not isinstance(answer, np.ndarray) or answer.dtype != np.bool_ or answer.shape != (len(classes), len(rows)):
            raise WrongAnswer(hook, answer, f"None or a mask of {len(classes)} classes by {len(rows)} nodes")
        found = answer if found is None else found & answer
    return found


def totals(tiers: Tiers, classes: Sized, rows: Sized) -> F64:
    """Return the sum of all scores of some rows, as ``total``, for each of some classes (classes, rows)."""
    found: F64 | None = None
    for hook in chain.from_iterable(tiers):
        answer = hook(classes, rows)
        if answer is None:
            continue
        if not isinstance(answer, np.ndarray) or answer.shape != (len(classes), len(rows)):
            raise WrongAnswer(hook, answer, f"None or numbers for {len(classes)} classes by {len(rows)} nodes")
        found = (0.0 if found is None else found) + answer
    return np.zeros((len(classes), len(rows))) if found is None else found


def finite_total(tiers: Tiers, subject: object, rows: Sized, start: F64 | float = 0.0) -> F64 | float:
    """Return ``total``, after checking that all scores are finite. Asked only after a sum turned out not to be."""
    for hook in chain.from_iterable(tiers):
        answer = hook(subject, rows)
        if answer is not None and not np.isfinite(answer).all():
            raise WrongAnswer(hook, answer, "finite numbers")
    return total(tiers, subject, rows, start)


def keys(tiers: Tiers, rows: Sized) -> list[AnyArray]:
    """Return a column of keys from each plugin, for a chained comparison: the first column that differs decides."""
    found: list[AnyArray] = []
    for hook in chain.from_iterable(tiers):
        answer = hook(rows)
        if not isinstance(answer, np.ndarray) or answer.shape != (len(rows),) or answer.dtype.kind not in "biuf":
            raise WrongAnswer(hook, answer, f"one key for each of {len(rows)} rows")
        # The sum is a cheap first test. It is also NaN for inf - inf, so elements are only looked at after it.
        if answer.dtype.kind == "f" and np.isnan(np.add.reduce(answer)) and np.isnan(answer).any():
            raise WrongAnswer(hook, answer, "keys that are numbers")
        found.append(answer)
    return found


def single_keys(tiers: Tiers, subject: object) -> list[Key]:
    """Return the key of every hook, in order: a number, or a tuple of numbers."""
    found = []
    for hook in chain.from_iterable(tiers):
        answer = hook(subject)
        for part in answer if isinstance(answer, tuple) else (answer,):
            # A NaN is neither before nor after any key, so the order of the others would depend on how they are sorted.
            if not is_number(part):
                raise WrongAnswer(hook, answer, "a number, or a tuple of numbers")
        found.append(answer)
    return found


def each(tiers: Tiers, *args: object) -> list[object]:
    """Return all answers, in order."""
    return [hook(*args) for tier in tiers for hook in tier]


def merge(tiers: Tiers, *args: object) -> dict[str, object]:
    """Return what all hooks add; of two answers under one key, the first counts."""
    found: dict[str, object] = {}
    for hook in chain.from_iterable(tiers):
        answer = hook(*args)
        if answer is not None and not isinstance(answer, Mapping):
            raise WrongAnswer(hook, answer, "None or a mapping")
        found = {**(answer or {}), **found}
    return found


def first_registered(tiers: Tiers, *args: object) -> object:
    """Return the answer of the first plugin with the hook, whatever it is; None if no plugin has it."""
    return next((hook(*args) for hook in chain.from_iterable(tiers)), None)


def notify(tiers: Tiers, *args: object) -> Refusal | None:
    """Notify all hooks, in order. Return the first refusal, after all have been notified."""
    refusal = None
    for hook in chain.from_iterable(tiers):
        answer = hook(*args)
        if answer is not None:
            if not isinstance(answer, Refusal):
                raise WrongAnswer(hook, answer, "None or a Refusal")
            # Volcano's event handlers run one after the other, and an error of one does not stop the others: all
            # hear of the event, also after a refusal.
            refusal = refusal or answer
    return refusal
