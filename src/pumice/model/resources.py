"""An amount of resources, as one immutable value.

Units: milli-cores, bytes, whole ``pods`` and thousandths of every other (scalar) resource.
Source: Volcano's ``Resource``. Its comparisons are not here: the core compares arrays.
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

#: Amounts that differ by less are equal, and amounts below it are nothing.
MIN_RESOURCE = 0.1
#: Scalars that every pod uses and that therefore say nothing about what it needs.
IGNORED_SCALARS = frozenset({PODS})

_NO_SCALARS: Mapping[str, float] = MappingProxyType({})

_EXTENDED_RESOURCE = re.compile(
    r"(?!requests\.)(?=[^/]{1,244}/[^/]{1,63}\Z)"  # a quota puts "requests." before it; the domain then has 253
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
)


class Resource(Struct, frozen=True):
    """Amounts by resource name. ``scalars`` None (none were ever named) differs from an empty mapping in ``==`` alone.

    ``max_task_num`` is how many pods a node takes; it is carried along and takes part in no operation.
    ``==`` is exact.
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

    # -- reading

    def get(self, name: str) -> float:
        """The amount of one resource, 0 where it is not named."""
        if name == CPU:
            return self.milli_cpu
        if name == MEMORY:
            return self.memory
        return self._named.get(name, 0.0)

    def is_empty(self) -> bool:
        """Whether there is nothing of anything but ``pods``."""
        return all(amount < MIN_RESOURCE for name, amount in self._items() if name not in IGNORED_SCALARS)

    # -- arithmetic

    def add(self, other: Resource) -> Resource:
        """Both together."""
        scalars = self.scalars
        if other.scalars:
            scalars = dict(self._named)
            for name, amount in other.scalars.items():
                scalars[name] = scalars.get(name, 0.0) + amount
        return self._with(self.milli_cpu + other.milli_cpu, self.memory + other.memory, scalars)

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

    def add_scalar(self, name: str, amount: float) -> Resource:
        """The same and this much more of one scalar."""
        return self._with(self.milli_cpu, self.memory, {**self._named, name: self._named.get(name, 0.0) + amount})

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


EMPTY = Resource()


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
