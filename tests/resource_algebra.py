"""Volcano's comparisons and arithmetic of resources that Pumice itself has no use for: its core computes with arrays.

Volcano's recorded answers are held against them: they say what a scalar means that one side does not name.
Source: Volcano's ``Resource``.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from enum import Enum

from pumice.model.quantity import INT64_MAX
from pumice.model.resources import CPU, EMPTY, IGNORED_SCALARS, MEMORY, MIN_RESOURCE, Resource

Names = tuple[str, ...]
_Within = Callable[[float, float], bool]

MAX_FLOAT = sys.float_info.max


class Missing(Enum):
    """What a scalar means that one side does not name: none of it, or no limit. The value is its marker."""

    ZERO = 0.0
    INFINITY = -1.0


def _at_most(a: float, b: float) -> bool:
    """Whether ``a`` is below ``b`` or within MIN_RESOURCE of it."""
    return a < b or abs(a - b) < MIN_RESOURCE


def describe(one: Resource) -> str:
    """``cpu 2000.00, memory 4096.00`` and the scalars by name; the text in Volcano's messages."""
    return ", ".join(f"{name} {_amount_text(amount)}" for name, amount in one._items())


def names(one: Resource) -> Names:
    """The resources of which there is at least MIN_RESOURCE."""
    return tuple(name for name, amount in one._items() if amount >= MIN_RESOURCE)


def is_zero(one: Resource, name: str) -> bool:
    """Whether there is nothing of one resource.

    Raises: AssertionError for a scalar that this value does not name, unless it names none at all.
    """
    if name not in (CPU, MEMORY) and one.scalars is not None and name not in one.scalars:
        raise AssertionError(f"unknown resource {name}: there is {describe(one)}")
    return one.get(name) < MIN_RESOURCE


def sub(one: Resource, other: Resource) -> Resource:
    """What is left after ``other`` is taken, which must fit.

    Raises: AssertionError where it does not fit.
    """
    if not less_equal(other, one, Missing.ZERO):
        raise AssertionError(f"cannot take <{describe(other)}> from <{describe(one)}>")
    return sub_unchecked(one, other)


def sub_unchecked(one: Resource, other: Resource) -> Resource:
    """What is left after ``other`` is taken, below zero perhaps. With ``scalars`` None no scalar is taken."""
    scalars = one.scalars
    if scalars is not None:
        scalars = dict(scalars)
        for name, amount in other._named.items():
            scalars[name] = scalars.get(name, 0.0) - amount
    return one._with(one.milli_cpu - other.milli_cpu, one.memory - other.memory, scalars)


def fit_delta(one: Resource, request: Resource) -> Resource:
    """What is left after each requested amount and MIN_RESOURCE; below zero is what is insufficient."""
    wanted = {name: amount + MIN_RESOURCE for name, amount in request._items() if amount > 0}
    left = {**one._named, **{name: one.get(name) - amount for name, amount in wanted.items()}}
    cpu, memory = left.pop(CPU, one.milli_cpu), left.pop(MEMORY, one.memory)
    return one._with(cpu, memory, left)


def min_dimension(one: Resource, other: Resource, missing: Missing) -> Resource:
    """The smaller of both, in this value's own dimensions."""
    scalars = one.scalars
    if scalars is not None:
        bounds = other._named
        kept = scalars if missing is Missing.INFINITY else dict.fromkeys(scalars, 0.0)
        bounded = {name: min(amount, bounds[name]) for name, amount in scalars.items() if name in bounds}
        scalars = {**kept, **bounded}
    return one._with(min(one.milli_cpu, other.milli_cpu), min(one.memory, other.memory), scalars)


def diff(one: Resource, other: Resource, missing: Missing) -> tuple[Resource, Resource]:
    """(by how much this is more, by how much it is less). An unlimited scalar appears as -1 on the larger side."""
    mine, theirs, unlimited = one._named, other._named, Missing.INFINITY.value
    more: dict[str, float] = {}
    less: dict[str, float] = {}
    for name in mine.keys() | theirs.keys():
        a, b = mine.get(name, missing.value), theirs.get(name, missing.value)
        if a == unlimited:
            more[name] = unlimited
        elif b == unlimited:
            less[name] = unlimited
        elif a > b:
            more[name] = a - b
        else:
            less[name] = b - a
    cpu, memory = one.milli_cpu - other.milli_cpu, one.memory - other.memory
    return Resource(max(0.0, cpu), max(0.0, memory), more), Resource(max(0.0, -cpu), max(0.0, -memory), less)


def with_scalar(one: Resource, name: str, amount: float) -> Resource:
    """The same with this amount of one scalar in place of what there was."""
    return one._with(one.milli_cpu, one.memory, {**one._named, name: amount})


def equal(one: Resource, other: Resource) -> bool:
    """Whether both differ by less than MIN_RESOURCE in this value's own dimensions."""
    return all(abs(amount - other.get(name)) < MIN_RESOURCE for name, amount in one._items())


def less(one: Resource, other: Resource, missing: Missing) -> bool:
    """Whether this is strictly less in every dimension, by however little."""
    return _all_within(one, other, missing, operator.lt)


def less_equal(one: Resource, other: Resource, missing: Missing) -> bool:
    """Whether this is at most ``other`` in every dimension."""
    return _all_within(one, other, missing, _at_most)


def less_equal_names(one: Resource, other: Resource, missing: Missing) -> tuple[bool, Names]:
    """(whether this is at most ``other`` in its own dimensions, the dimensions in which it is not)."""
    over = tuple(name for name, a, b in _compared(one, other, missing) if b is not None and not _at_most(a, b))
    return not over, over


def less_partly(one: Resource, other: Resource, missing: Missing) -> bool:
    """Whether this is strictly less in some dimension."""
    return _some_within(one, other, missing, operator.lt)


def less_equal_partly(one: Resource, other: Resource, missing: Missing) -> bool:
    """Whether this is at most ``other`` in some dimension."""
    return _some_within(one, other, missing, _at_most)


def greater_partly(one: Resource, other: Resource, missing: Missing) -> tuple[bool, Names]:
    """(whether this exceeds ``other`` in one of its own dimensions, which)."""
    fits, over = less_equal_names(one, other, missing)
    return not fits, over


def less_equal_with_dimension(one: Resource, other: Resource | None, request: Resource | None) -> tuple[bool, Names]:
    """(whether this is at most ``other`` in what is requested, the dimensions in which it is not).

    MIN_RESOURCE gives no room here. Without a request all of this value's dimensions count, and it does; without
    an ``other`` nothing fits.
    """
    if other is None:
        return False, names(one)
    if request is None:
        return less_equal_names(one, other, Missing.ZERO)
    asked = request if one.scalars is not None else Resource(request.milli_cpu, request.memory)
    over = _requested(one, other, asked, operator.gt)
    return not over, over


def less_equal_partly_with_dimension(one: Resource, other: Resource, request: Resource | None) -> tuple[bool, Names]:
    """(whether this is at most ``other`` in something requested, in what)."""
    names = () if request is None else _requested(one, other, request, _at_most)
    return bool(names), names


def less_equal_partly_with_dimension_zero_filtered(
    one: Resource, other: Resource, request: Resource | None
) -> tuple[bool, Names]:
    """As ``less_equal_partly_with_dimension``, without the dimensions of which neither side has anything."""
    _, names = less_equal_partly_with_dimension(one, other, request)
    names = tuple(name for name in names if one.get(name) >= MIN_RESOURCE or other.get(name) >= MIN_RESOURCE)
    return bool(names), names


def greater_partly_with_dimension(
    one: Resource, other: Resource | None, request: Resource | None
) -> tuple[bool, Names]:
    """(whether this exceeds ``other`` in something requested, in what). MIN_RESOURCE gives no room here."""
    names = () if request is None else _requested(one, other or EMPTY, request, operator.gt)
    return bool(names), names


def greater_partly_with_relevant_dimensions(
    one: Resource, other: Resource | None, request: Resource | None
) -> tuple[bool, Names]:
    """As ``greater_partly_with_dimension``, in the dimensions of which ``other`` has some or which it names."""
    other = other or EMPTY
    _, names = greater_partly_with_dimension(one, other, request)
    names = tuple(name for name in names if other.get(name) >= MIN_RESOURCE or name in other._named)
    return bool(names), names


def _compared(one: Resource, other: Resource, missing: Missing) -> Iterator[tuple[str, float, float | None]]:
    """(name, this amount, the other's) in this value's dimensions; None where the other has no limit."""
    absent = 0.0 if missing is Missing.ZERO else None
    theirs = other._named
    yield CPU, one.milli_cpu, other.milli_cpu
    yield MEMORY, one.memory, other.memory
    for name, amount in one._named.items():
        yield name, amount, theirs.get(name, absent)


def _all_within(one: Resource, other: Resource, missing: Missing, within: _Within) -> bool:
    if missing is Missing.INFINITY and not other._named.keys() <= one._named.keys():
        return False
    return all(b is None or within(a, b) for _, a, b in _compared(one, other, missing))


def _some_within(one: Resource, other: Resource, missing: Missing, within: _Within) -> bool:
    if missing is Missing.ZERO and not other._named.keys() <= one._named.keys():
        return True
    return any(b is None or within(a, b) for _, a, b in _compared(one, other, missing))


def _requested(one: Resource, other: Resource, request: Resource, compare: _Within) -> Names:
    return tuple(
        name
        for name, wanted in request._items()
        if wanted > 0 and name not in IGNORED_SCALARS and compare(one.get(name), other.get(name))
    )


def intersection(a: Resource, b: Resource) -> Names:
    """The resources of which both have at least MIN_RESOURCE."""
    return tuple(name for name in names(a) if b.get(name) >= MIN_RESOURCE)


def intersection_without_ignored(a: Resource, b: Resource) -> Names:
    """The resources of which both have at least MIN_RESOURCE, leaving out ``pods``."""
    return tuple(name for name in intersection(a, b) if name not in IGNORED_SCALARS)


def exceeded_part(left: Resource | None, right: Resource | None) -> Resource:
    """By how much ``left`` is more than ``right``; all of it where there is no ``right``."""
    if left is None or right is None:
        return left or EMPTY
    return diff(left, right, Missing.ZERO)[0]


def min_of(left: Resource, right: Resource) -> Resource:
    """The smaller in each dimension. Scalars: those ``left`` names, and none unless both sides name some."""
    scalars = None
    if left.scalars is not None and right.scalars is not None:
        scalars = {name: min(amount, right.get(name)) for name, amount in left.scalars.items()}
    return Resource(min(left.milli_cpu, right.milli_cpu), min(left.memory, right.memory), scalars)


def max_of(left: Resource, right: Resource) -> Resource:
    """The larger in each dimension. Scalars of which neither side has more than nothing are left out."""
    scalars = None
    if left.scalars is not None or right.scalars is not None:
        larger = {name: max(left.get(name), right.get(name)) for name in {**left._named, **right._named}}
        scalars = {name: amount for name, amount in larger.items() if amount > 0}
    return Resource(max(left.milli_cpu, right.milli_cpu), max(left.memory, right.memory), scalars)


def share(part: float, whole: float) -> float:
    """``part`` of ``whole``; of nothing, something is 1 and nothing is 0."""
    if whole == 0:
        return 0.0 if part == 0 else 1.0
    return part / whole


def _amount_text(amount: float) -> str:
    if amount == MAX_FLOAT:
        return "maxFloat"
    return "maxInt" if amount == float(INT64_MAX) else f"{amount:.2f}"
