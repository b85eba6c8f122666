"""Tasks with their nodes: what statements, ledgers and decisions are about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pumice.columns.dtypes import F64


class Placement(NamedTuple):
    """Tasks of one sub-job: ``rows[i]`` is placed on ``nodes[i]`` or, for an eviction, leaves it.

    ``devices`` has what each task holds of its node's devices, if the policy language assigns devices. ``charge`` (R,)
    is what each task counts in its queue, if that differs from its request.
    """

    rows: Sequence[int]
    nodes: Sequence[int]
    devices: tuple[object, ...] | None = None
    charge: F64 | None = None
