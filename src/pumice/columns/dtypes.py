"""Array types and the resource axis.

Shape letters used in every docstring: N nodes, T tasks, J jobs, S sub-jobs, Q queues, C task classes, R resources, H
hypernodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pumice.model.resources import MIN_RESOURCE, Resource

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
I8 = npt.NDArray[np.int8]
Bool = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]


def some(mask: Bool) -> bool:
    """Whether any of them is true: what ``any`` says, which takes three times as long, being Python, over the rows of
    a few hundred jobs."""
    return bool(np.count_nonzero(mask))


def read_only(array: AnyArray) -> AnyArray:
    """The same data; a write to it is an error."""
    view = array.view()
    view.setflags(write=False)
    return view


#: One epsilon for every resource comparison: ``a <= b`` means ``a - b < EPS``. Source: Volcano ``minResource``.
EPS = MIN_RESOURCE

CPU, MEMORY = 0, 1


#: Resources with a column of their own, besides cpu, memory and pods: what a node names costs memory on every row.
NAMES_MAX = 256
UNOFFERED = "what no node offers"


class ResourceAxis:
    """The names along R: cpu, memory, every other resource that is offered sorted by name, ``pods`` last.

    ``offered``: what nodes have or queues speak of, at most NAMES_MAX of it. Whatever else is asked for shares one
    column, of index ``unoffered`` (-1: there is none): no node has any of it, so who asks for it fits nowhere, and a
    name that only a pod knows costs nothing.

    ``pods`` comes last so that a message which names one short resource names a real one first.
    """

    __slots__ = ("column", "names", "offered", "pods", "unoffered")

    def __init__(self, offered: Iterable[str] = (), *, unoffered: bool = False) -> None:
        self.offered = tuple(sorted(set(offered) - {"cpu", "memory", "pods"})[:NAMES_MAX])
        self.names: tuple[str, ...] = ("cpu", "memory", *self.offered, *((UNOFFERED,) if unoffered else ()), "pods")
        self.column = {name: i for i, name in enumerate(self.names)}
        self.pods = len(self.names) - 1
        self.unoffered = self.pods - 1 if unoffered else -1

    def __len__(self) -> int:
        return len(self.names)

    def offers(self, resource: Resource) -> bool:
        """Whether everything that the resource names has a column of its own."""
        return resource.scalars is None or resource.scalars.keys() <= self.column.keys()

    def covers(self, resource: Resource) -> bool:
        """Whether everything that the resource names is counted."""
        return self.unoffered >= 0 or self.offers(resource)

    def vector(self, resource: Resource | None) -> F64:
        """What is asked for, as a row; absent dimensions (and None) are 0. Shape (R,).

        Raises: KeyError for a resource that is not covered.
        """
        return np.array(self._asked(resource), dtype=np.float64)

    def vectors(self, resources: Sequence[Resource]) -> F64:
        """The same of several. Shape (resources, R)."""
        return np.array(list(map(self._asked, resources)), dtype=np.float64).reshape(-1, len(self.names))

    def offer(self, resource: Resource | None) -> F64:
        """What is there, as a row: of columns of their own only. Shape (R,)."""
        return np.array(self._offered(resource), dtype=np.float64)

    def _asked(self, resource: Resource | None) -> list[float]:
        """As ``vector``: a list, for single numbers are put into an array slowly."""
        row = self._offered(resource)
        if resource is not None and not self.offers(resource):
            others = {name: value for name, value in (resource.scalars or {}).items() if name not in self.column}
            if self.unoffered < 0:
                raise KeyError(next(iter(others)))
            row[self.unoffered] = sum(others.values())
        return row

    def _offered(self, resource: Resource | None) -> list[float]:
        """As ``offer``, likewise."""
        row = [0.0] * len(self.names)
        if resource is not None:
            row[CPU], row[MEMORY] = resource.milli_cpu, resource.memory
            for name, value in (resource.scalars or {}).items():
                if name in self.column:
                    row[self.column[name]] = value
        return row

    def named(self, resource: Resource | None) -> Bool:
        """Which dimensions an amount speaks of, be it with 0; of cpu and memory every amount does. Shape (R,)."""
        scalars = (resource.scalars if resource is not None else None) or {}
        found = np.array([name in scalars for name in self.names])
        found[[CPU, MEMORY]] = True
        return found

    def resource(self, row: F64) -> Resource:
        """A row back as a value; what is zero, and what nobody offers, is left out."""
        values = row.tolist()
        scalars = {n: values[i] for i, n in enumerate(self.names) if i > MEMORY and values[i] and i != self.unoffered}
        return Resource(values[CPU], values[MEMORY], scalars)

    def name(self, column: int, asked: Resource) -> str:
        """What a column is called where it matters to an object: of what nobody offers, the first name it asks for."""
        if column != self.unoffered:
            return self.names[column]
        return min(name for name, value in (asked.scalars or {}).items() if value and name not in self.column)


def compared(need: F64) -> Bool:
    """The dimensions a comparison looks at: cpu and memory always, a scalar only when it is asked for. Shape (…, R)."""
    mask = need > 0
    mask[..., [CPU, MEMORY]] = True
    return mask


def fits(need: F64, room: F64) -> Bool:
    """Whether ``need`` is at most ``room``. Shapes (R,) and (rows, R) -> (rows,). Source: Volcano ``LessEqual`` with
    Zero."""
    short = need - room >= EPS
    short &= compared(need)
    return np.asarray(~short.any(axis=-1))
