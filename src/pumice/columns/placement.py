"""Where tasks go: the unit of statements, of the books and of decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pumice.columns.dtypes import F64


class Placement(NamedTuple):
    """Tasks of one sub-job: ``rows[i]`` goes to ``nodes[i]`` or, where they are evicted, leaves it.

    ``devices``: what each holds of its node's devices, where a dialect keeps books of them. ``charge`` (R,): what each
    costs its queue, where that is not its request.
    """

    rows: Sequence[int]
    nodes: Sequence[int]
    devices: tuple[object, ...] | None = None
    charge: F64 | None = None
