"""Array types, the resource axis, and the comparison of amounts.

Letters for shapes in all docstrings: N nodes, T tasks, J jobs, S sub-jobs, Q queues, C task classes, R resources,
H hypernodes.
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
    """Return True if any element is true."""
    # ``mask.any()`` goes through Python code of NumPy and takes three times as long over a few hundred rows.
    return bool(np.count_nonzero(mask))


def read_only(array: AnyArray) -> AnyArray:
    """Return a view of the same memory to which a write is an error."""
    view = array.view()
    view.setflags(write=False)
    return view


#: One epsilon for every resource comparison: ``a <= b`` means ``a - b < EPS``. Source: Volcano ``minResource``.
EPS = MIN_RESOURCE

CPU, MEMORY = 0, 1


#: The most resources that get a column each, besides cpu, memory and pods. A name costs memory in every row of every
#: table with an axis R, so objects with thousands of made-up names must not be able to exhaust it.
NAMES_MAX = 256
UNOFFERED = "what no node offers"


class ResourceAxis:
    """The names along R: cpu, memory, the other offered resources sorted by name, and ``pods`` last.

    ``offered`` are the resources that nodes have or queues name, at most NAMES_MAX of them. All other resources that
    pods request share the column ``unoffered`` (-1: there is no such column). No node has any of it, so a pod that
    requests it fits nowhere.
    """

    __slots__ = ("column", "names", "offered", "pods", "unoffered")

    def __init__(self, offered: Iterable[str] = (), *, unoffered: bool = False) -> None:
        # Sorted, so that the axis depends on what is offered and not on the order in which objects arrived.
        self.offered = tuple(sorted(set(offered) - {"cpu", "memory", "pods"})[:NAMES_MAX])
        # ``pods`` is last so that a message that names only the first resource in short supply names a real one.
        self.names: tuple[str, ...] = ("cpu", "memory", *self.offered, *((UNOFFERED,) if unoffered else ()), "pods")
        self.column = {name: i for i, name in enumerate(self.names)}
        self.pods = len(self.names) - 1
        self.unoffered = self.pods - 1 if unoffered else -1

    def __len__(self) -> int:
        return len(self.names)

    def offers(self, resource: Resource) -> bool:
        """Return True if every resource that the amount names has a column of its own."""
        return resource.scalars is None or resource.scalars.keys() <= self.column.keys()

    def covers(self, resource: Resource) -> bool:
        """Return True if every resource that the amount names is counted, be it in the shared column."""
        return self.unoffered >= 0 or self.offers(resource)

    def vector(self, resource: Resource | None) -> F64:
        """Return a requested amount as a row. Absent resources (and None) are 0. Shape (R,).

        Raises: KeyError for a resource that is not covered.
        """
        return np.array(self._request_row(resource), dtype=np.float64)

    def vectors(self, resources: Sequence[Resource]) -> F64:
        """Return requested amounts as rows (see ``vector``). Shape (resources, R).

        Raises: KeyError for a resource that is not covered.
        """
        # The reshape gives no resources the shape (0, R) instead of (0,).
        return np.array(list(map(self._request_row, resources)), dtype=np.float64).reshape(-1, len(self.names))

    def offer(self, resource: Resource | None) -> F64:
        """Return an offered amount as a row. Resources without a column of their own are dropped. Shape (R,)."""
        return np.array(self._offer_row(resource), dtype=np.float64)

    def offers_of(self, resources: Sequence[Resource]) -> F64:
        """Return offered amounts as rows (see ``offer``). Shape (resources, R)."""
        return np.array(list(map(self._offer_row, resources)), dtype=np.float64).reshape(-1, len(self.names))

    # Rows are built as lists: assigning single numbers to elements of an array is several times slower.

    def _request_row(self, resource: Resource | None) -> list[float]:
        row = self._offer_row(resource)
        if resource is not None and not self.offers(resource):
            others = {name: value for name, value in (resource.scalars or {}).items() if name not in self.column}
            if self.unoffered < 0:
                raise KeyError(next(iter(others)))
            row[self.unoffered] = sum(others.values())
        return row

    def _offer_row(self, resource: Resource | None) -> list[float]:
        row = [0.0] * len(self.names)
        if resource is not None:
            row[CPU], row[MEMORY] = resource.milli_cpu, resource.memory
            for name, value in (resource.scalars or {}).items():
                if name in self.column:
                    row[self.column[name]] = value
        return row

    def named(self, resource: Resource | None) -> Bool:
        """Return which resources an amount names, including those with amount 0. Shape (R,)."""
        scalars = (resource.scalars if resource is not None else None) or {}
        found = np.array([name in scalars for name in self.names])
        found[[CPU, MEMORY]] = True  # fields of every ``Resource``, so always named
        return found

    def resource(self, row: F64) -> Resource:
        """Return a row as a value. Scalars that are zero, and the column ``unoffered``, are left out."""
        # ``unoffered`` adds up different resources, so its amount is not an amount of any of them.
        values = row.tolist()
        scalars = {n: values[i] for i, n in enumerate(self.names) if i > MEMORY and values[i] and i != self.unoffered}
        return Resource(values[CPU], values[MEMORY], scalars)

    def name(self, column: int, asked: Resource) -> str:
        """Return the name of a column for a message about ``asked``.

        For the column ``unoffered`` that is the first name, in order, of a resource that ``asked`` requests from it.
        """
        if column != self.unoffered:
            return self.names[column]
        return min(name for name, value in (asked.scalars or {}).items() if value and name not in self.column)


def compared(need: F64) -> Bool:
    """Return which resources a comparison looks at. Shape (…, R).

    Source: Volcano ``LessEqual``: cpu and memory always, a scalar only if it is requested.
    """
    mask = need > 0
    mask[..., [CPU, MEMORY]] = True
    return mask


def fits(need: F64, room: F64) -> Bool:
    """Return True where ``need`` is at most ``room``. Shapes (R,) and (rows, R) -> (rows,).

    Source: Volcano ``LessEqual`` with ``Zero`` for absent resources.
    """
    short = need - room >= EPS
    # A node may owe more of a scalar than it has (after it shrank); a task that requests none of it still fits.
    short &= compared(need)
    return np.asarray(~short.any(axis=-1))
