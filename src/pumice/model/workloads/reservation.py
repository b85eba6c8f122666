"""Room that is kept for a job that waits."""

from __future__ import annotations

from msgspec import Struct


# By keys and not by rows, since users read it.
class Reservation(Struct, frozen=True):
    """``pods`` of a job can start at ``start`` (seconds since the epoch) if running jobs end as expected.

    ``places``: places for such a pod that are free then. ``spare``: how many of them others may take beyond ``start``.
    ``until``: when the job is expected to end. ``basis``: keys of the jobs whose ends are waited for, the latest last.
    """

    job: str
    pods: int
    start: float
    until: float
    places: int
    spare: int
    basis: tuple[str, ...] = ()
