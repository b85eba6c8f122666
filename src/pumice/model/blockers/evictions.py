"""Blockers about evictions: who cannot be evicted for a job, and what a job waits for after an eviction."""

from __future__ import annotations

from typing import ClassVar

from pumice.model.blockers.base import Blocker
from pumice.model.blockers.changes import Amount, Change, Correct, NotKnown, Wait


# KAI's search says only whether it tried a job. A finer reason would have to be made up.
class NoCase(Blocker, frozen=True):
    """An action does not try the job at all: evicting for it is not allowed, or could not help."""

    code: ClassVar[str] = "NoCase"
    no_lift: ClassVar[str] = "the rules of the action exclude the job"


# Unlike ``Protected``, it names no rule: KAI simulates sets of victims and keeps only that none of them worked.
class NoVictims(Blocker, frozen=True):
    """No set of running jobs whose eviction is allowed makes room for the job."""

    code: ClassVar[str] = "NoVictims"
    no_lift: ClassVar[str] = "a search has to find other victims"


# Counts by plugin, since a cluster has thousands of candidates and few rules that protect them.
class Protected(Blocker, frozen=True):
    """Not enough running pods can be evicted. ``victims`` are those that were asked about on ``nodes``, of which
    ``free_to_go`` may go; ``by``: how many each plugin spares, and of which kind these are. ``enough_on``: nodes that
    would have room enough if they went. ``queue``: whose pods, empty for those of other queues."""

    code: ClassVar[str] = "Protected"
    queue: str
    nodes: int
    victims: int
    free_to_go: int = 0
    by: tuple[tuple[str, int, str], ...] = ()
    enough_on: int = 0

    @property
    def lift(self) -> tuple[Change, ...]:
        return (NotKnown("the rules of the plugins say which pods they protect"),)


# For gangs, whose victims are chosen in sets over a domain. Counts by plugin would mean little here.
class TooFewVictims(Blocker, frozen=True):
    """What gangs in a ``domain`` can give up does not place the job: of the ``candidates`` that were looked at
    ``tasks`` in ``bundles`` may go. ``enough``: they would free enough, and still the gang finds no place."""

    code: ClassVar[str] = "TooFewVictims"
    no_lift: ClassVar[str] = "a search has to find other victims"
    domain: str
    candidates: int
    tasks: int = 0
    bundles: int = 0
    enough: bool = False


# It holds whichever pods leave, so no search for victims is made.
class TooSmall(Blocker, frozen=True):
    """If all running pods left that the action may look at, the ``domain`` would still not hold the job; no node would,
    if that is empty."""

    code: ClassVar[str] = "TooSmall"
    no_lift: ClassVar[str] = "no eviction makes room enough"
    domain: str = ""


# Said before any victim is looked at: an eviction frees room, and changes no label or taint.
class OutOfReach(Blocker, frozen=True):
    """Filters leave none of so many ``nodes`` to the job, whatever is evicted there."""

    code: ClassVar[str] = "OutOfReach"
    no_lift: ClassVar[str] = "filters of several plugins refuse the nodes"
    nodes: int


# The choice of the user, so that a reader does not look for a fault in the policy.
class NeverPreempts(Blocker, frozen=True):
    """The preemptionPolicy of its pods is Never."""

    code: ClassVar[str] = "NeverPreempts"

    @property
    def lift(self) -> tuple[Change, ...]:
        return (Correct("preemptionPolicy"),)


class RoomIsFree(Blocker, frozen=True):
    """There is room without an eviction, so that nothing is evicted: another action has to place the job."""

    code: ClassVar[str] = "RoomIsFree"

    @property
    def lift(self) -> tuple[Change, ...]:
        return (Wait(),)


# Holds another blocker, because the search ends at the first pod for which it finds nothing.
class CannotEvict(Blocker, frozen=True):
    """An action (``what``) found no way to make room. ``promised`` of the ``waiting`` pods could be given a node, for
    the next one ``because``; None where it was tried before and nothing has changed."""

    code: ClassVar[str] = "CannotEvict"
    what: str
    promised: int
    waiting: int
    because: Blocker | None

    @property
    def lift(self) -> tuple[Change, ...]:
        return self.because.lift if self.because is not None else (NotKnown("it was tried before"),)


# The decision is taken, and only the end of the leaving pods is waited for.
class Reserved(Blocker, frozen=True):
    """``nodes`` are reserved for the job, which starts when the pods that are ``leaving`` are gone. ``job``: the key of
    the job, empty in a finding about one pod. ``by``: keys of the jobs that leave. They free ``freed`` of what it
    ``needs`` there."""

    code: ClassVar[str] = "Reserved"
    job: str
    nodes: tuple[str, ...]
    leaving: bool = False
    by: tuple[str, ...] = ()
    needs: Amount | None = None
    freed: float = 0.0

    @property
    def lift(self) -> tuple[Change, ...]:
        return (Wait(),)


# A kind of its own beside ``Reserved``: here the room is another job's, and no eviction was needed for it.
class RoomReserved(Blocker, frozen=True):
    """Room is reserved for another job (``holder``, its key), which is expected to start at ``start``, in seconds since
    the epoch. With what the job asks for, and for so long, it would delay that."""

    code: ClassVar[str] = "RoomReserved"
    holder: str
    start: float

    @property
    def lift(self) -> tuple[Change, ...]:
        return (Wait(),)


# The time and not the remaining seconds, so that the value stays equal from cycle to cycle.
class Delayed(Blocker, frozen=True):
    """Nothing is evicted for the job before ``until``, in seconds since the epoch, because its ``delay``, in seconds,
    has not passed."""

    code: ClassVar[str] = "Delayed"
    until: float
    delay: float

    @property
    def lift(self) -> tuple[Change, ...]:
        return (Wait(),)
