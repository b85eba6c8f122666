"""How decisions are written to the API server, and observers of its duration."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from pumice.kube.binding.gpu_reservations import ReservationSettings
from pumice.model.decisions import Bind


class Limits(Struct, frozen=True):
    """Limits of what waits and is under way.

    ``binds``, ``evictions``: waiting; more are refused. A gang of which one pod was accepted is accepted as a whole, up
    to twice as many. ``confirm_s``: a decision that the API server accepted and that no watch has confirmed within this
    time is looked up. ``hold_s``: how long events and conditions wait for binds, and each eviction for nominations.
    ``release_s``: how often reservations of GPUs are looked at; one that has no user twice is deleted. ``stop_s``: at
    the end, how long gangs may still begin to be bound, and then how long statuses and events may take.
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
    release_s: float = 2.0
    stop_s: float = 2.0


class Requests(Struct, frozen=True):
    """Binds are sent as requests to KAI's binder, which makes ``backoff_limit`` more attempts; None: none."""

    backoff_limit: int | None = None


class Writing(Struct, frozen=True):
    """How decisions are written.

    ``use_eviction``: use the eviction API, which respects disruption budgets, instead of deleting. ``requests``: ask
    KAI's binder instead of binding; then other work before a bind is its task. ``reserving``: how shared devices are
    reserved; None: pods that share devices are not bound.
    """

    limits: Limits = Limits()
    use_eviction: bool = False
    requests: Requests | None = None
    reserving: ReservationSettings | None = None


def _ignore(*_: object) -> None:
    """Ignore a duration."""


class Timers(Struct, frozen=True):
    """Functions to call with durations.

    ``timed``: with a stage (``PreBind``, ``Bind``) and its seconds. ``aged``: with a state of a bind (``Assumed``,
    ``PreBound``, ``Bound``, ``Failed``), the bind, and the seconds since the pod was created, as far as clocks agree.
    """

    timed: Callable[[str, float], None] = _ignore
    aged: Callable[[str, Bind, float], None] = _ignore


AS_VOLCANO_DOES = Writing()
UNTIMED = Timers()
