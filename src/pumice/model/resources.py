"""An amount of resources, as one immutable value, and every way in which two amounts are compared.

Units: milli-cores, bytes, whole ``pods`` and thousandths of every other (scalar) resource.
Source: Volcano's ``Resource``, whose many comparisons differ in what a scalar that one side does not name stands for.
Name tuples come in the order cpu, memory, scalars by name.
"""

from __future__ import annotations

import operator
import re
import sys
from collections.abc import Callable, Container, Iterator, Mapping
from enum import Enum
from functools import lru_cache
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import force_setattr

from pumice.model.quantity import INT64_MAX, Quantity, QuantityError, format_quantity, milli_value, whole_value

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"

#: Amounts that differ by less are equal, and amounts below it are nothing.
MIN_RESOURCE = 0.1
MAX_FLOAT = sys.float_info.max
#: Scalars that every pod uses and that therefore say nothing about what it needs.
IGNORED_SCALARS = frozenset({PODS})

_NO_SCALARS: Mapping[str, float] = MappingProxyType({})

_EXTENDED_RESOURCE = re.compile(
    r"(?!requests\.)(?=[^/]{1,244}/[^/]{1,63}\Z)"  # a quota puts "requests." before it; the domain then has 253
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
)

Names = tuple[str, ...]
_Within = Callable[[float, float], bool]


class Missing(Enum):
    """What a scalar that one side does not name stands for: none of it, or no limit. The value is its marker."""

    ZERO = 0.0
    INFINITY = -1.0


def _at_most(a: float, b: float) -> bool:
    """Whether ``a`` is below ``b`` or within MIN_RESOURCE of it."""
    return a < b or abs(a - b) < MIN_RESOURCE


class Resource(Struct, frozen=True):
    """Amounts by resource name. ``scalars`` None (none were ever named) differs from an empty mapping: see ``sub``.

    ``max_task_num`` is how many pods a node takes; it is carried along and takes part in no operation.
    ``==`` is exact; ``equal`` allows for MIN_RESOURCE.
    """

    milli_cpu: float = 0.0
    memory: float = 0.0
    scalars: Mapping[str, float] | None = None
    max_task_num: int = 0

    def __post_init__(self) -> None:
        if self.scalars is not None:
            force_setattr(self, "scalars", MappingProxyType(dict(sorted(self.scalars.items()))))

    def __hash__(self) -> int:
        scalars = None if self.scalars is None else tuple(self.scalars.items())
        return hash((self.milli_cpu, self.memory, scalars, self.max_task_num))

    def __reduce__(self) -> tuple[type[Resource], tuple[float, float, dict[str, float] | None, int]]:
        scalars = None if self.scalars is None else dict(self.scalars)
        return Resource, (self.milli_cpu, self.memory, scalars, self.max_task_num)

    # -- to and from Kubernetes

    @classmethod
    def from_list(cls, quantities: Mapping[str, Quantity] | None, ignored: Container[str] = frozenset()) -> Resource:
        """The amounts of a Kubernetes resource list. Names that are not scalars, and ``ignored`` ones, are left out.

        Raises: QuantityError naming the resource.
        """
        milli_cpu = memory = pods = 0
        scalars: dict[str, float] = {}
        for name, quantity in (quantities or _NO_SCALARS).items():
            try:
                if name == CPU:
                    milli_cpu = milli_value(quantity)
                elif name == MEMORY:
                    memory = whole_value(quantity)
                elif name in ignored:
                    continue
                elif name == PODS:
                    pods = whole_value(quantity)
                    scalars[PODS] = float(pods)
                elif is_kept_scalar(name):
                    scalars[name] = float(milli_value(quantity))
            except QuantityError as error:
                raise QuantityError(f"{name}: {error}") from None
        return cls(float(milli_cpu), float(memory), scalars or None, pods)

    def to_list(self) -> dict[str, str]:
        """The Kubernetes resource list, in canonical texts; cpu and memory are always in it."""
        return {name: format_quantity(name, amount) for name, amount in self._items()}

    def describe(self) -> str:
        """``cpu 2000.00, memory 4096.00`` and the scalars by name; the text in Volcano's messages."""
        return ", ".join(f"{name} {_amount_text(amount)}" for name, amount in self._items())

    # -- reading

    def get(self, name: str) -> float:
        """The amount of one resource, 0 where it is not named."""
        if name == CPU:
            return self.milli_cpu
        if name == MEMORY:
            return self.memory
        return self._named.get(name, 0.0)

    def names(self) -> Names:
        """The resources of which there is at least MIN_RESOURCE."""
        return tuple(name for name, amount in self._items() if amount >= MIN_RESOURCE)

    def is_empty(self) -> bool:
        """Whether there is nothing of anything but ``pods``."""
        return all(amount < MIN_RESOURCE for name, amount in self._items() if name not in IGNORED_SCALARS)

    def is_zero(self, name: str) -> bool:
        """Whether there is nothing of one resource.

        Raises: AssertionError for a scalar that this value does not name, unless it names none at all.
        """
        if name not in (CPU, MEMORY) and self.scalars is not None and name not in self.scalars:
            raise AssertionError(f"unknown resource {name}: there is {self.describe()}")
        return self.get(name) < MIN_RESOURCE

    # -- arithmetic

    def add(self, other: Resource) -> Resource:
        """Both together."""
        scalars = self.scalars
        if other.scalars:
            scalars = dict(self._named)
            for name, amount in other.scalars.items():
                scalars[name] = scalars.get(name, 0.0) + amount
        return self._with(self.milli_cpu + other.milli_cpu, self.memory + other.memory, scalars)

    def sub(self, other: Resource) -> Resource:
        """What is left after ``other`` is taken, which must fit.

        Raises: AssertionError where it does not fit.
        """
        if not other.less_equal(self, Missing.ZERO):
            raise AssertionError(f"cannot take <{other.describe()}> from <{self.describe()}>")
        return self.sub_unchecked(other)

    def sub_unchecked(self, other: Resource) -> Resource:
        """What is left after ``other`` is taken, below zero perhaps. With ``scalars`` None no scalar is taken."""
        scalars = self.scalars
        if scalars is not None:
            scalars = dict(scalars)
            for name, amount in other._named.items():
                scalars[name] = scalars.get(name, 0.0) - amount
        return self._with(self.milli_cpu - other.milli_cpu, self.memory - other.memory, scalars)

    def multi(self, factor: float) -> Resource:
        """Every amount times ``factor``, not rounded."""
        scalars = self.scalars
        if scalars is not None:
            scalars = {name: amount * factor for name, amount in scalars.items()}
        return self._with(self.milli_cpu * factor, self.memory * factor, scalars)

    def set_max(self, other: Resource | None) -> Resource:
        """The larger of both in each dimension; None changes nothing."""
        if other is None:
            return self
        scalars = self.scalars
        if other.scalars:
            scalars = dict(self._named)
            for name, amount in other.scalars.items():
                scalars[name] = max(scalars.get(name, amount), amount)
        return self._with(max(self.milli_cpu, other.milli_cpu), max(self.memory, other.memory), scalars)

    def fit_delta(self, request: Resource) -> Resource:
        """What is left after each requested amount and MIN_RESOURCE; below zero is what is insufficient."""
        wanted = {name: amount + MIN_RESOURCE for name, amount in request._items() if amount > 0}
        left = {**self._named, **{name: self.get(name) - amount for name, amount in wanted.items()}}
        cpu, memory = left.pop(CPU, self.milli_cpu), left.pop(MEMORY, self.memory)
        return self._with(cpu, memory, left)

    def min_dimension(self, other: Resource, missing: Missing) -> Resource:
        """The smaller of both, in this value's own dimensions."""
        scalars = self.scalars
        if scalars is not None:
            bounds = other._named
            kept = scalars if missing is Missing.INFINITY else dict.fromkeys(scalars, 0.0)
            bounded = {name: min(amount, bounds[name]) for name, amount in scalars.items() if name in bounds}
            scalars = {**kept, **bounded}
        return self._with(min(self.milli_cpu, other.milli_cpu), min(self.memory, other.memory), scalars)

    def diff(self, other: Resource, missing: Missing) -> tuple[Resource, Resource]:
        """(by how much this is more, by how much it is less). An unlimited scalar appears as -1 on the larger side."""
        mine, theirs, unlimited = self._named, other._named, Missing.INFINITY.value
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
        cpu, memory = self.milli_cpu - other.milli_cpu, self.memory - other.memory
        return Resource(max(0.0, cpu), max(0.0, memory), more), Resource(max(0.0, -cpu), max(0.0, -memory), less)

    def with_scalar(self, name: str, amount: float) -> Resource:
        """The same with this amount of one scalar in place of what there was."""
        return self._with(self.milli_cpu, self.memory, {**self._named, name: amount})

    def add_scalar(self, name: str, amount: float) -> Resource:
        """The same and this much more of one scalar."""
        return self.with_scalar(name, self._named.get(name, 0.0) + amount)

    # -- comparison in all dimensions

    def equal(self, other: Resource) -> bool:
        """Whether both differ by less than MIN_RESOURCE in this value's own dimensions."""
        return all(abs(amount - other.get(name)) < MIN_RESOURCE for name, amount in self._items())

    def less(self, other: Resource, missing: Missing) -> bool:
        """Whether this is strictly less in every dimension, by however little."""
        return self._all_within(other, missing, operator.lt)

    def less_equal(self, other: Resource, missing: Missing) -> bool:
        """Whether this is at most ``other`` in every dimension."""
        return self._all_within(other, missing, _at_most)

    def less_equal_names(self, other: Resource, missing: Missing) -> tuple[bool, Names]:
        """(whether this is at most ``other`` in its own dimensions, the dimensions in which it is not)."""
        over = tuple(name for name, a, b in self._compared(other, missing) if b is not None and not _at_most(a, b))
        return not over, over

    def less_partly(self, other: Resource, missing: Missing) -> bool:
        """Whether this is strictly less in some dimension."""
        return self._some_within(other, missing, operator.lt)

    def less_equal_partly(self, other: Resource, missing: Missing) -> bool:
        """Whether this is at most ``other`` in some dimension."""
        return self._some_within(other, missing, _at_most)

    def greater_partly(self, other: Resource, missing: Missing) -> tuple[bool, Names]:
        """(whether this exceeds ``other`` in one of its own dimensions, which)."""
        fits, over = self.less_equal_names(other, missing)
        return not fits, over

    # -- comparison in the dimensions that a request asks for

    def less_equal_with_dimension(self, other: Resource | None, request: Resource | None) -> tuple[bool, Names]:
        """(whether this is at most ``other`` in what is requested, the dimensions in which it is not).

        MIN_RESOURCE gives no room here. Without a request all of this value's dimensions count, and it does; without
        an ``other`` nothing fits.
        """
        if other is None:
            return False, self.names()
        if request is None:
            return self.less_equal_names(other, Missing.ZERO)
        asked = request if self.scalars is not None else Resource(request.milli_cpu, request.memory)
        over = self._requested(other, asked, operator.gt)
        return not over, over

    def less_equal_partly_with_dimension(self, other: Resource, request: Resource | None) -> tuple[bool, Names]:
        """(whether this is at most ``other`` in something requested, in what)."""
        names = () if request is None else self._requested(other, request, _at_most)
        return bool(names), names

    def less_equal_partly_with_dimension_zero_filtered(
        self, other: Resource, request: Resource | None
    ) -> tuple[bool, Names]:
        """As ``less_equal_partly_with_dimension``, without the dimensions of which neither side has anything."""
        _, names = self.less_equal_partly_with_dimension(other, request)
        names = tuple(name for name in names if self.get(name) >= MIN_RESOURCE or other.get(name) >= MIN_RESOURCE)
        return bool(names), names

    def greater_partly_with_dimension(self, other: Resource | None, request: Resource | None) -> tuple[bool, Names]:
        """(whether this exceeds ``other`` in something requested, in what). MIN_RESOURCE gives no room here."""
        names = () if request is None else self._requested(other or EMPTY, request, operator.gt)
        return bool(names), names

    def greater_partly_with_relevant_dimensions(
        self, other: Resource | None, request: Resource | None
    ) -> tuple[bool, Names]:
        """As ``greater_partly_with_dimension``, in the dimensions of which ``other`` has some or which it names."""
        other = other or EMPTY
        _, names = self.greater_partly_with_dimension(other, request)
        names = tuple(name for name in names if other.get(name) >= MIN_RESOURCE or name in other._named)
        return bool(names), names

    # -- pieces of the above

    @property
    def _named(self) -> Mapping[str, float]:
        return _NO_SCALARS if self.scalars is None else self.scalars

    def _items(self) -> Iterator[tuple[str, float]]:
        yield CPU, self.milli_cpu
        yield MEMORY, self.memory
        yield from self._named.items()

    def _with(self, milli_cpu: float, memory: float, scalars: Mapping[str, float] | None) -> Resource:
        return Resource(milli_cpu, memory, scalars, self.max_task_num)

    def _compared(self, other: Resource, missing: Missing) -> Iterator[tuple[str, float, float | None]]:
        """(name, this amount, the other's) in this value's dimensions; None where the other has no limit."""
        absent = 0.0 if missing is Missing.ZERO else None
        theirs = other._named
        yield CPU, self.milli_cpu, other.milli_cpu
        yield MEMORY, self.memory, other.memory
        for name, amount in self._named.items():
            yield name, amount, theirs.get(name, absent)

    def _all_within(self, other: Resource, missing: Missing, within: _Within) -> bool:
        if missing is Missing.INFINITY and not other._named.keys() <= self._named.keys():
            return False
        return all(b is None or within(a, b) for _, a, b in self._compared(other, missing))

    def _some_within(self, other: Resource, missing: Missing, within: _Within) -> bool:
        if missing is Missing.ZERO and not other._named.keys() <= self._named.keys():
            return True
        return any(b is None or within(a, b) for _, a, b in self._compared(other, missing))

    def _requested(self, other: Resource, request: Resource, compare: _Within) -> Names:
        return tuple(
            name
            for name, wanted in request._items()
            if wanted > 0 and name not in IGNORED_SCALARS and compare(self.get(name), other.get(name))
        )


EMPTY = Resource()


def intersection(a: Resource, b: Resource) -> Names:
    """The resources of which both have at least MIN_RESOURCE."""
    return tuple(name for name in a.names() if b.get(name) >= MIN_RESOURCE)


def intersection_without_ignored(a: Resource, b: Resource) -> Names:
    """The resources of which both have at least MIN_RESOURCE, leaving out ``pods``."""
    return tuple(name for name in intersection(a, b) if name not in IGNORED_SCALARS)


def exceeded_part(left: Resource | None, right: Resource | None) -> Resource:
    """By how much ``left`` is more than ``right``; all of it where there is no ``right``."""
    if left is None or right is None:
        return left or EMPTY
    return left.diff(right, Missing.ZERO)[0]


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


@lru_cache(maxsize=1024)
def is_kept_scalar(name: str) -> bool:
    """Whether a resource that is not cpu, memory or pods is scheduled by. Source: Kubernetes' scalar resource names."""
    if name.startswith("count/"):
        return False
    return (
        name == "ephemeral-storage"
        or name.startswith(("hugepages-", "attachable-volumes-"))
        or "kubernetes.io/" in name
        or _EXTENDED_RESOURCE.fullmatch(name) is not None
    )


def _amount_text(amount: float) -> str:
    if amount == MAX_FLOAT:
        return "maxFloat"
    return "maxInt" if amount == float(INT64_MAX) else f"{amount:.2f}"
