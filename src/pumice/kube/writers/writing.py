"""How decisions are written to the API server, and who is told how long that takes."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from pumice.kube.binding.gpu_reservations import ReservationSettings
from pumice.model.decisions import Bind


class Limits(Struct, frozen=True):
    """How much may wait and be under way at once.

    ``binds``, ``evictions``: waiting; more are refused. A gang that began to be taken is taken whole, up to twice as
    many. ``confirm_s``: a decision that the API server accepted and that no watch has confirmed by then is looked up.
    ``hold_s``: how long events and conditions wait for binds to go first, and each eviction for nominations.
    """

    binds: int = 20_000
    bind_workers: int = 64
    shared_bind_workers: int = 16
    evictions: int = 10_000
    evict_workers: int = 4
    statuses: int = 20_000
    status_workers: int = 2
    confirm_s: float = 30.0
    hold_s: float = 1.0


class Requests(Struct, frozen=True):
    """Binds go out as requests to KAI's binder, which tries ``backoff_limit`` times more, None: not once."""

    backoff_limit: int | None = None


class Writing(Struct, frozen=True):
    """How decisions are written.

    ``use_eviction``: ask the eviction API, which keeps disruption budgets, in place of deleting. ``requests``: ask
    KAI's binder in place of binding; what else runs before a bind is its business then. ``reserving``: how devices are
    reserved that pods share, None: such pods are not bound.
    """

    limits: Limits = Limits()
    use_eviction: bool = False
    requests: Requests | None = None
    reserving: ReservationSettings | None = None


def _tell_nobody(*_: object) -> None:
    """Nobody wants to know how long it took."""


class Timers(Struct, frozen=True):
    """Who is told how long writing takes.

    ``timed`` of the stages ``PreBind`` and ``Bind``, with their seconds; ``aged`` of what a bind has come to
    (``Assumed``, ``PreBound``, ``Bound``, ``Failed``), with the seconds since the pod was created, as far as clocks
    agree.
    """

    timed: Callable[[str, float], None] = _tell_nobody
    aged: Callable[[str, Bind, float], None] = _tell_nobody


AS_VOLCANO_DOES = Writing()
UNTIMED = Timers()
