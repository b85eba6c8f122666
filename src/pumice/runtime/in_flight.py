"""Decisions in flight: accepted, and not yet confirmed by the API server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from pumice.model.decisions import Bind, Decision
from pumice.model.node import Node
from pumice.model.pod import ENDED, Pod


@dataclass(slots=True, eq=False)
class InFlightDecision:
    """A decision in flight. ``prepared``: number of hooks before the binding that ran. ``why``: the last error.

    ``accepted``: when the API server accepted it, None before. ``is_reported``: the log has that its outcome cannot be
    looked up. ``node``: the node of a bind, as the deciding cycle knew it; None: not known.
    """

    decision: Decision
    prepared: int = 0
    why: str = ""
    accepted: float | None = None
    is_reported: bool = False
    node: Node | None = None

    @property
    def key(self) -> str:
        """Key in work queues. A pod may have a bind and an eviction in flight, one after the other."""
        return f"{type(self.decision).__name__} {self.decision.uid}"


class InFlightDecisions:
    """Decisions in flight, readable from any thread. At most one per pod: a later one replaces an earlier one.

    A decision leaves when an event shows the pod as decided, or in a state that overtakes the decision, or when it is
    given up. After that, nothing that happens to it has an effect.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._by_pod: dict[str, InFlightDecision] = {}
        self._by_job: dict[str, dict[str, InFlightDecision]] = {}  # binds only
        self._by_node: dict[str, dict[str, InFlightDecision]] = {}  # binds only
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._by_pod)

    def of(self, pod: str) -> InFlightDecision | None:
        """Return the decision about this pod that is in flight, or None."""
        return self._by_pod.get(pod)

    def binds(self) -> list[Bind]:
        """Return all binds in flight."""
        entries = list(self._by_pod.values())  # at once: another thread may add one
        return [entry.decision for entry in entries if isinstance(entry.decision, Bind)]

    def binds_of(self, job: str) -> list[InFlightDecision]:
        """Return the binds of a job that are in flight."""
        with self._lock:
            return list(self._by_job.get(job, {}).values())

    def jobs(self) -> set[str]:
        """Return the jobs of binds in flight."""
        with self._lock:
            return set(self._by_job)

    def jobs_bound_to(self, node: str) -> list[str]:
        """Return the jobs of binds in flight to a node."""
        with self._lock:
            return list(dict.fromkeys(entry.decision.job for entry in self._by_node.get(node, {}).values()))

    def add(self, entry: InFlightDecision) -> None:
        decision = entry.decision
        self._drop(decision.pod)
        with self._lock:
            self._by_pod[decision.pod] = entry
            if isinstance(decision, Bind):
                self._by_job.setdefault(decision.job, {})[decision.pod] = entry
                self._by_node.setdefault(decision.node, {})[decision.pod] = entry

    def _drop(self, pod: str) -> None:
        """Remove what is in flight about a pod from all indexes."""
        with self._lock:
            entry = self._by_pod.pop(pod, None)
            if entry is None or not isinstance(entry.decision, Bind):
                return
            for index, key in ((self._by_job, entry.decision.job), (self._by_node, entry.decision.node)):
                binds = index[key]
                del binds[pod]
                if not binds:
                    del index[key]

    def has(self, entry: InFlightDecision) -> bool:
        return self._by_pod.get(entry.decision.pod) is entry

    def accept(self, entry: InFlightDecision) -> None:
        """Note that the API server has accepted the decision."""
        entry.accepted = self._clock()

    def end(self, entry: InFlightDecision) -> bool:
        """Remove a decision. Return True if it was in flight."""
        if not self.has(entry):
            return False
        self._drop(entry.decision.pod)
        return True

    def observe(self, pod: Pod) -> bool:
        """Note an event about a pod. Return True if it only confirms a decision."""
        entry = self._by_pod.get(pod.key)
        if entry is None or (entry.decision.uid == pod.uid and not has_come_true(entry.decision, pod)):
            return False
        self._drop(pod.key)
        as_wanted = isinstance(entry.decision, Bind) == (pod.deletion is None) and entry.decision.uid == pod.uid
        return as_wanted and entry.decision.node == pod.node_name and pod.phase not in ENDED

    def gone(self, pod: str) -> None:
        """Note that a pod no longer exists."""
        self._drop(pod)

    def overdue(self, seconds: float) -> list[InFlightDecision]:
        """Return decisions that were accepted at least this long ago and are not confirmed."""
        before = self._clock() - seconds
        in_flight = list(self._by_pod.values())  # at once: another thread may add one
        return [entry for entry in in_flight if entry.accepted is not None and entry.accepted <= before]


def has_come_true(decision: Decision, pod: Pod) -> bool:
    """Return True if the pod is as decided, or in a state that the decision can no longer change."""
    if pod.deletion is not None or pod.phase in ENDED:
        return True
    return isinstance(decision, Bind) and pod.node_name != ""
