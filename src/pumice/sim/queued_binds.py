"""Binds that wait before they are sent, as in a live scheduler that has thousands of them, and are checked again then.

A bind that no longer holds is given back, as is one that the API server refuses: the scheduler hears ``Undone``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from msgspec.structs import replace

from pumice.model.decisions import Bind, Refusal
from pumice.model.events import Event
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.bind_checks import BindChecks
from pumice.runtime.in_flight import InFlightDecision, InFlightDecisions
from pumice.sim.engine import Engine, Priority


class QueuedBinds:
    """``pods``, ``groups``, ``nodes``: the state of the API server, which is heard at once. ``delay``: returns for how
    many seconds a bind waits. ``send``: binds a pod, or returns why the API server refuses it. ``give_back``: called
    with a bind that was not carried out."""

    def __init__(
        self,
        engine: Engine,
        pods: Mapping[str, Pod],
        groups: Mapping[str, PodGroup],
        nodes: Mapping[str, Node],
        *,
        delay: Callable[[], float],
        send: Callable[[Bind], Refusal | None],
        give_back: Callable[[Bind], None],
    ) -> None:
        self.pods, self.groups, self.nodes = pods, groups, nodes
        self.member_lost: Callable[[str], None] = lambda _: None
        self._engine, self._delay, self._send, self._give_back = engine, delay, send, give_back
        self.forget()

    def forget(self) -> None:
        """Drop all binds that wait: the scheduler that decided them is gone."""
        self._in_flight = InFlightDecisions(lambda: self._engine.now)
        self._checks = BindChecks(self, self._in_flight)

    def begin(self) -> None:
        """Note that a cycle begins."""
        self._checks.begin()

    def accept(self, bind: Bind) -> None:
        """Take a bind in, to be sent later."""
        entry = self._checks.entry(bind)
        self._in_flight.add(entry)
        self._engine.after(self._delay(), self._due, entry, priority=Priority.START)

    def observe(self, event: Event) -> None:
        """Note what may make binds outdated, after it has happened."""
        self._checks.observe(event)

    def pod_gone(self, pod: Pod) -> None:
        """Note that a pod is gone, after ``observe``."""
        self._in_flight.gone(pod.key)
        if pod.node_name:
            self.member_lost(pod.group_key)

    def placed_of(self, group: str) -> Collection[str]:
        """Return the keys of the pods of a PodGroup that count for its minimum: they are on nodes and stay, or have
        succeeded."""
        members = (pod for pod in self.pods.values() if pod.group_key == group and pod.node_name)
        return [pod.key for pod in members if pod.phase == "Succeeded" or (not pod.deletion and pod.phase != "Failed")]

    def of(self, pod: str) -> Bind | None:
        """Return the bind of a pod that waits, or None."""
        entry = self._in_flight.of(pod)
        return entry.decision if entry is not None and isinstance(entry.decision, Bind) else None

    def bound(self) -> dict[str, Pod]:
        """Return the pods whose binds wait, as they will be, by key."""
        binds = self._in_flight.binds()
        return {bind.pod: replace(self.pods[bind.pod], node_name=bind.node) for bind in binds if bind.pod in self.pods}

    def _due(self, entry: InFlightDecision) -> None:
        """Send a bind that has waited, unless it is outdated."""
        bind = entry.decision
        if not self._in_flight.has(entry) or not isinstance(bind, Bind):
            return
        outdated = self._checks.why_not(entry)
        refusal = Refusal(outdated) if outdated else self._send(bind)
        self._in_flight.end(entry)
        if refusal is not None:
            self._give_back(bind)
