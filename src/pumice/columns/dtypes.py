"""Array types and the resource axis.

Shape letters used in every docstring: N nodes, T tasks, J jobs, S sub-jobs, Q queues, C task classes, R resources, H
hypernodes.
"""

from __future__ import annotations

from collections.abc import Iterable
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


def read_only(array: AnyArray) -> AnyArray:
    """The same data; a write to it is an error."""
    view = array.view()
    view.setflags(write=False)
    return view


#: One epsilon for every resource comparison: ``a <= b`` means ``a - b < EPS``. Source: Volcano ``minResource``.
EPS = MIN_RESOURCE

CPU, MEMORY = 0, 1


class ResourceAxis:
    """The names along R: cpu, memory, every other scalar sorted by name, ``pods`` last.

    ``pods`` comes last so that a message which names one short resource names a real one first.
    """

    __slots__ = ("column", "names", "pods")

    def __init__(self, scalars: Iterable[str] = ()) -> None:
        others = sorted({name for name in scalars if name not in ("cpu", "memory", "pods")})
        self.names: tuple[str, ...] = ("cpu", "memory", *others, "pods")
        self.column = {name: i for i, name in enumerate(self.names)}
        self.pods = len(self.names) - 1

    def __len__(self) -> int:
        return len(self.names)

    def covers(self, resource: Resource) -> bool:
        """Whether every scalar of the resource has a column."""
        return all(name in self.column for name in resource.scalars or ())

    def vector(self, resource: Resource | None) -> F64:
        """The resource as a row; absent dimensions (and None) are 0. Shape (R,)."""
        row = np.zeros(len(self.names))
        if resource is not None:
            row[CPU], row[MEMORY] = resource.milli_cpu, resource.memory
            for name, value in (resource.scalars or {}).items():
                row[self.column[name]] = value
        return row

    def resource(self, row: F64) -> Resource:
        """A row back as a value; zero scalars are left out."""
        values = row.tolist()
        scalars = {n: values[i] for i, n in enumerate(self.names) if i > MEMORY and values[i]}
        return Resource(values[CPU], values[MEMORY], scalars)


def compared(need: F64) -> Bool:
    """The dimensions a comparison looks at: cpu and memory always, a scalar only when it is asked for. Shape (R,)."""
    mask = need > 0
    mask[CPU] = mask[MEMORY] = True
    return mask


def fits(need: F64, room: F64) -> Bool:
    """Whether ``need`` is at most ``room``. Shapes (R,) and (rows, R) -> (rows,). Source: Volcano ``LessEqual`` with
    Zero."""
    short = need - room >= EPS
    short &= compared(need)
    return np.asarray(~short.any(axis=-1))
