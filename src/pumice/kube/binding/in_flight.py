"""Decisions in flight: accepted, and not yet seen to have happened on the API server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pumice.kube.informers.informer_cache import ENDED
from pumice.model.decisions import Bind, Decision
from pumice.model.pod import Pod


@dataclass(slots=True, eq=False)
class InFlightDecision:
    """One decision. ``prepared`` counts the hooks before binding that ran; ``why`` is what went wrong last.

    ``landed`` is when the API server accepted it, None before; ``said``: that its outcome cannot be looked up is told.
    """

    decision: Decision
    prepared: int = 0
    why: str = ""
    landed: float | None = None
    said: bool = False

    @property
    def key(self) -> str:
        """For lanes: a pod may have a bind and an eviction under way, one after the other."""
        return f"{type(self.decision).__name__} {self.decision.uid}"


class InFlightDecisions:
    """May be asked from any thread. At most one decision a pod: a later one takes the place of an earlier one.

    A flight ends when the pod is heard of as the decision made it, or as something that overtakes the decision, or when
    it is given up. What happened to a flight that has ended changes nothing any more.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._by_pod: dict[str, InFlightDecision] = {}

    def __len__(self) -> int:
        return len(self._by_pod)

    def of(self, pod: str) -> InFlightDecision | None:
        """The decision about this pod that is on its way."""
        return self._by_pod.get(pod)

    def add(self, flight: InFlightDecision) -> None:
        self._by_pod[flight.decision.pod] = flight

    def flies(self, flight: InFlightDecision) -> bool:
        return self._by_pod.get(flight.decision.pod) is flight

    def land(self, flight: InFlightDecision) -> None:
        """The API server has accepted it."""
        flight.landed = self._clock()

    def end(self, flight: InFlightDecision) -> bool:
        """Whether it was still on its way."""
        if not self.flies(flight):
            return False
        del self._by_pod[flight.decision.pod]
        return True

    def heard(self, pod: Pod) -> bool:
        """A pod was heard of. Returns whether it only confirms a decision."""
        flight = self._by_pod.get(pod.key)
        if flight is None or (flight.decision.uid == pod.uid and not has_come_true(flight.decision, pod)):
            return False
        del self._by_pod[pod.key]
        as_wanted = isinstance(flight.decision, Bind) == (pod.deletion is None) and flight.decision.uid == pod.uid
        return as_wanted and flight.decision.node == pod.node_name and pod.phase not in ENDED

    def gone(self, pod: str) -> None:
        """A pod is not there any more."""
        self._by_pod.pop(pod, None)

    def overdue(self, seconds: float) -> list[InFlightDecision]:
        """Flights that landed so long ago and were not confirmed."""
        before = self._clock() - seconds
        flights = list(self._by_pod.values())  # at once: another thread may add one
        return [flight for flight in flights if flight.landed is not None and flight.landed <= before]


def has_come_true(decision: Decision, pod: Pod) -> bool:
    """Whether the pod is as the decision wanted it, or has gone on in a way that the decision can change no more."""
    if pod.deletion is not None or pod.phase in ENDED:
        return True
    return isinstance(decision, Bind) and pod.node_name != ""
