"""An amount of resources, as an immutable value.

Units: milli-cores, bytes, whole ``pods``, and thousandths of every other (scalar) resource. Source: Volcano's
``Resource``. Its comparisons are not here, because the core compares arrays.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import force_setattr

from pumice.model.quantity import Quantity, QuantityError, format_quantity, milli_value, whole_value

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"

#: Amounts that differ by less are equal, and a smaller amount is nothing. Source: Volcano minResource.
MIN_RESOURCE = 0.1
#: Scalars that every pod uses, so that they say nothing about what it needs.
IGNORED_SCALARS = frozenset({PODS})

_NO_SCALARS: Mapping[str, float] = MappingProxyType({})

# A domain with a slash. Names without one are native, and only some of these are scheduled by.
_EXTENDED_RESOURCE = re.compile(
    r"(?!requests\.)(?=[^/]{1,244}/[^/]{1,63}\Z)"  # a quota puts "requests." before it; the domain then has 253
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
)


class Resource(Struct, frozen=True):
    """Amounts by resource name. ``==`` is exact, and only there does ``scalars`` None (none named) differ from an empty
    mapping.

    ``max_task_num``: how many pods a node takes. No operation reads it.
    """

    milli_cpu: float = 0.0
    memory: float = 0.0
    scalars: Mapping[str, float] | None = None
    # Kept beside ``pods`` only because Volcano's objects have both; it takes part in ``==``.
    max_task_num: int = 0

    def __post_init__(self) -> None:
        """Freeze ``scalars``, sorted by name."""
        # Sorted, so that amounts that are equal have equal hashes and texts, whatever order the API sent.
        if self.scalars is not None:
            force_setattr(self, "scalars", MappingProxyType(dict(sorted(self.scalars.items()))))

    def __hash__(self) -> int:
        """Hash, although ``scalars`` is a mapping."""
        scalars = None if self.scalars is None else tuple(self.scalars.items())
        return hash((self.milli_cpu, self.memory, scalars, self.max_task_num))

    def __reduce__(self) -> tuple[type[Resource], tuple[float, float, dict[str, float] | None, int]]:
        """Make amounts picklable: a mapping proxy is not."""
        scalars = None if self.scalars is None else dict(self.scalars)
        return Resource, (self.milli_cpu, self.memory, scalars, self.max_task_num)

    # -- to and from Kubernetes

    @classmethod
    def from_list(cls, quantities: Mapping[str, Quantity] | None, ignored: Container[str] = frozenset()) -> Resource:
        """Return the amounts of a Kubernetes resource list, without ``ignored`` names and those that are not scalars.

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
                # After cpu and memory, which cannot be ignored.
                elif name in ignored:
                    continue
                elif name == PODS:
                    pods = whole_value(quantity)
                    scalars[PODS] = float(pods)
                elif is_kept_scalar(name):
                    scalars[name] = float(milli_value(quantity))
            except QuantityError as error:
                raise QuantityError(f"{name}: {error}") from None
        # None for an empty mapping, so that amounts without scalars are equal however they came about.
        return cls(float(milli_cpu), float(memory), scalars or None, pods)

    def to_list(self) -> dict[str, str]:
        """Return the Kubernetes resource list in canonical texts. It always contains cpu and memory."""
        return {name: format_quantity(name, amount) for name, amount in self._items()}

    # -- reading

    def get(self, name: str) -> float:
        """Return the amount of one resource, 0 if it is not named."""
        if name == CPU:
            return self.milli_cpu
        if name == MEMORY:
            return self.memory
        return self._named.get(name, 0.0)

    def is_empty(self) -> bool:
        """Return True if all amounts but ``pods`` are 0."""
        return all(amount < MIN_RESOURCE for name, amount in self._items() if name not in IGNORED_SCALARS)

    # -- arithmetic

    def add(self, other: Resource) -> Resource:
        """Return the sum."""
        # Shared with the result if ``other`` adds nothing: values are never modified.
        scalars = self.scalars
        if other.scalars:
            scalars = dict(self._named)
            for name, amount in other.scalars.items():
                scalars[name] = scalars.get(name, 0.0) + amount
        return self._with(self.milli_cpu + other.milli_cpu, self.memory + other.memory, scalars)

    def multi(self, factor: float) -> Resource:
        """Return every amount times ``factor``, without rounding."""
        scalars = self.scalars
        if scalars is not None:
            scalars = {name: amount * factor for name, amount in scalars.items()}
        return self._with(self.milli_cpu * factor, self.memory * factor, scalars)

    def set_max(self, other: Resource | None) -> Resource:
        """Return the maximum in each dimension. None changes nothing."""
        if other is None:
            return self
        scalars = self.scalars
        if other.scalars:
            scalars = dict(self._named)
            for name, amount in other.scalars.items():
                # A name that only ``other`` has counts as it is, even if it is negative.
                scalars[name] = max(scalars.get(name, amount), amount)
        return self._with(max(self.milli_cpu, other.milli_cpu), max(self.memory, other.memory), scalars)

    def add_scalar(self, name: str, amount: float) -> Resource:
        """Return the amount with this much more of one scalar."""
        return self._with(self.milli_cpu, self.memory, {**self._named, name: self._named.get(name, 0.0) + amount})

    # -- pieces of the above

    @property
    def _named(self) -> Mapping[str, float]:
        """Amounts of scalars, empty for None."""
        return _NO_SCALARS if self.scalars is None else self.scalars

    def _items(self) -> Iterator[tuple[str, float]]:
        """Yield each name with its amount."""
        yield CPU, self.milli_cpu
        yield MEMORY, self.memory
        yield from self._named.items()

    def _with(self, milli_cpu: float, memory: float, scalars: Mapping[str, float] | None) -> Resource:
        """Return other amounts with the same ``max_task_num``."""
        # Through the constructor, which freezes and sorts the scalars.
        return Resource(milli_cpu, memory, scalars, self.max_task_num)


EMPTY = Resource()


def is_extended(name: str) -> bool:
    """Return True for the name of an extended resource: one with a domain that is not Kubernetes' own."""
    return "kubernetes.io/" not in name and _EXTENDED_RESOURCE.fullmatch(name) is not None


@lru_cache(maxsize=1024)
def is_kept_scalar(name: str) -> bool:
    """Return True if a resource other than cpu, memory and pods is scheduled by. Source: Kubernetes' scalar resource
    names."""
    # Object counts of quotas have the form of a resource name but no pod requests them.
    if name.startswith("count/"):
        return False
    return (
        name == "ephemeral-storage"
        or name.startswith(("hugepages-", "attachable-volumes-"))
        or "kubernetes.io/" in name
        or _EXTENDED_RESOURCE.fullmatch(name) is not None
    )
