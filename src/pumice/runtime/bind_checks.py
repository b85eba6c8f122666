"""Checks of decisions before they are carried out, and of a bind again right before it is sent: what it was decided on
may no longer hold.

Thousands of binds may wait for seconds. Meanwhile nodes are deleted, cordoned or tainted, and pods are deleted. A bind
to such a node is not sent, and neither is the rest of its gang if the gang would be left below its minimum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, Protocol

from pumice.model.decisions import Bind, Decision
from pumice.model.events import Event, Gone, Seen
from pumice.model.node import Node
from pumice.model.pod import ENDED, Pod, Toleration
from pumice.model.workloads.podgroup import PodGroup
from pumice.placing.filters.nodes import BLOCKING, CORDON, tolerates
from pumice.runtime.in_flight import InFlightDecision, InFlightDecisions


class LatestObjects(Protocol):
    """Objects as they were last seen, by key. ``member_lost``: a hook, called with a PodGroup one of whose pods counts
    no longer for its minimum."""

    member_lost: Callable[[str], None]

    @property
    def pods(self) -> Mapping[str, Pod]: ...

    @property
    def groups(self) -> Mapping[str, PodGroup]: ...

    @property
    def nodes(self) -> Mapping[str, Node]: ...

    def placed_of(self, group: str) -> Collection[str]:
        """Return the keys of the pods of a PodGroup that count for its minimum: they are on nodes and stay, or have
        succeeded."""
        ...


def refusal_of_state(pod: Pod | None, decision: Decision) -> str | None:
    """Return why a decision is not about the present pod, or None."""
    if pod is None:
        return f"pod {decision.pod} does not exist"
    if pod.uid != decision.uid:
        return f"pod {decision.pod} was replaced: uid {pod.uid}, not {decision.uid}"
    if pod.deletion is not None:
        return f"pod {decision.pod} is being deleted"
    return None


class _Finding(NamedTuple):
    """Whether a gang would be left below its minimum, and after how many changes that was found."""

    changes: int
    binds: int
    falls: bool


class BindChecks:
    """Callable from any thread. ``begin`` before each cycle, and ``observe`` for each event that is news, after the
    cache and before it ends a bind in flight."""

    def __init__(self, cache: LatestObjects, in_flight: InFlightDecisions) -> None:
        self._cache, self._in_flight = cache, in_flight
        cache.member_lost = self._member_lost
        self._nodes: dict[str, Node] = {}
        self._changes: Counter[str] = Counter()  # by job: what happened to its binds while they waited
        self._lost: Counter[str] = Counter()
        self._found: dict[str, _Finding] = {}
        self._begun: set[str] = set()  # jobs of which a bind was sent
        self._stopped = False

    def stop(self) -> None:
        """Let no further gang begin to be bound: the next leader decides about it."""
        self._stopped = True

    def begin(self) -> None:
        """Note the nodes as the next cycle knows them, and forget jobs without binds in flight."""
        self._nodes = dict(self._cache.nodes)
        for job in [job for job in self._changes if not self._in_flight.binds_of(job)]:
            del self._changes[job]
            self._lost.pop(job, None)
            self._found.pop(job, None)
        self._begun &= self._in_flight.jobs()

    def entry(self, bind: Bind) -> InFlightDecision:
        """Return a bind to be sent, with its node as the cycle that decided it knew it."""
        return InFlightDecision(bind, node=self._nodes.get(bind.node))

    def observe(self, event: Event) -> None:
        """Note what may make binds outdated that wait to be sent."""
        match event:
            case Seen(Node() as node):
                self._changed(node.name)
            case Gone(kind, key) if kind is Node:
                self._changed(key)
            case Seen(Pod() as pod) if pod.deletion is not None or pod.phase in ENDED:
                self._ended(pod.key)
            case Gone(kind, key) if kind is Pod:
                self._ended(key)

    def _changed(self, node: str) -> None:
        for job in self._in_flight.jobs_bound_to(node):
            self._changes[job] += 1

    def _ended(self, pod: str) -> None:
        entry = self._in_flight.of(pod)
        if entry is not None and isinstance(entry.decision, Bind):
            self._changes[entry.decision.job] += 1
            self._lost[entry.decision.job] += 1

    def _member_lost(self, job: str) -> None:
        """Note that a gang has lost a pod that was bound."""
        if self._in_flight.binds_of(job):
            self._changes[job] += 1
            self._lost[job] += 1

    def why_not(self, entry: InFlightDecision) -> str:
        """Return why a bind must not be sent, "" if it may be."""
        decision = entry.decision
        assert isinstance(decision, Bind)
        against = self._against_node(entry)
        if against:
            self._given_back(decision.job)
            return against
        if self._gang_falls(decision.job):
            return f"its gang {decision.job} would be left below its minimum"
        # What is begun is finished, because a part of a gang is worth nothing.
        if self._stopped and decision.job not in self._begun and not self._cache.placed_of(decision.job):
            return "the scheduler is stopping"
        self._begun.add(decision.job)
        return ""

    def _given_back(self, job: str) -> None:
        """Note that a bind of a job leaves the queue unsent."""
        # Once is enough: the others to such nodes do not count for the gang, whether they still wait or not.
        if not self._lost[job]:
            self._changes[job] += 1
            self._lost[job] += 1

    def _against_node(self, entry: InFlightDecision) -> str:
        """Return what happened to the node of a bind, "" for nothing that matters."""
        # Compared with the node as the decision knew it: what was there already, such as a taint that the policy does
        # not ask about, is a matter of the policy.
        name, then = entry.decision.node, entry.node
        now = self._cache.nodes.get(name)
        if now is None:
            return f"node {name} is gone"
        if now is then or then is None:
            return ""
        if now.uid != then.uid:
            return f"node {name} was deleted and created again"
        if now.quarantined and not then.quarantined:
            return f"node {name} cannot be read any more"
        tolerations = self._tolerations(entry)
        if now.unschedulable and not then.unschedulable and not any(tolerates(each, CORDON) for each in tolerations):
            return f"node {name} was cordoned"
        for taint in now.taints:
            new = taint.effect in BLOCKING and taint not in then.taints
            if new and not any(tolerates(each, taint) for each in tolerations):
                return f"node {name} was tainted: {taint.key}:{taint.effect}"  # not ready, for one
        return ""

    def _tolerations(self, entry: InFlightDecision) -> tuple[Toleration, ...]:
        pod = self._cache.pods.get(entry.decision.pod)
        return pod.spec.tolerations if pod is not None else ()

    def _gang_falls(self, job: str) -> bool:
        """Return True if the gang of a bind would be left below its minimum without those that cannot be sent."""
        # Asked again only after something has happened to its binds, because it looks at all of them.
        if not self._changes.get(job):
            return False
        binds, changes = self._in_flight.binds_of(job), self._changes[job]
        found = self._found.get(job)
        if found is None or found.changes != changes or found.binds < len(binds):
            found = self._found[job] = _Finding(changes, len(binds), self._falls(job, binds))
        return found.falls

    def _falls(self, job: str, binds: list[InFlightDecision]) -> bool:
        group = self._cache.groups.get(job)
        remain = [entry.decision.pod for entry in binds if entry.accepted is not None or not self._against_node(entry)]
        if group is None or (len(remain) == len(binds) and not self._lost[job]):
            return False
        # Which of its parts a pod would be missing from is not counted here: the next cycle does that.
        return _has_parts(group) or len({*self._cache.placed_of(job), *remain}) < group.min_member


def _has_parts(group: PodGroup) -> bool:
    """Return True if a gang has minimums for parts of it."""
    return bool(group.min_task_member or group.sub_groups or (group.gang is not None and group.gang.sub_groups))
