"""Laws of evictions, checked on the state of the API server.

S5 evictions have a plan: a cycle that evicts for a task reserves a node for it, and the task fits there once the
victims have left. S6 no eviction leaves a gang below its minimum, unless the whole gang is evicted. S7 no pod is
evicted that is marked as not preemptable. S18 no pod is evicted for what fits into idle room (``idle_room``). S14
nothing is evicted for pods that had room: a place was decided for each, and the cluster refused the bind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pumice.model.decisions import Decision, Evict, Refusal
from pumice.model.pod import ENDED, PREEMPTABLE_KEY, Pod, is_true
from pumice.model.resources import MIN_RESOURCE, PODS
from pumice.sim.cluster import SimCluster
from pumice.sim.laws.idle_room import needless_evictions
from pumice.sim.measures.node_usage import amounts_of
from pumice.volcano import points

#: Reasons of evictions that make room for single tasks, and for whole jobs too. Evictions by shuffle do not.
FOR_TASKS = ("preempt", "reclaim")
FOR_JOBS = (*FOR_TASKS, "gangpreempt", "gangreclaim")
#: Points at which plugins vote on victims for a task.
VOTES = (points.preemptable, points.reclaimable)


class EvictionLaws:
    """Watches a cluster. ``promised``: pods for which the last cycle reserved a node. ``keeps_gangs``: the gang plugin
    votes on every victim. ``idle_first``: idle room is given out before any pod is evicted. ``check``, after each
    cycle, returns the first broken law in words."""

    def __init__(
        self,
        cluster: SimCluster,
        promised: Callable[[], Mapping[str, str]],
        *,
        keeps_gangs: bool = True,
        idle_first: bool = False,
    ) -> None:
        self.cluster = cluster
        self.promised = promised
        self.keeps_gangs = keeps_gangs
        self.idle_first = idle_first
        self._evicted: list[Evict] = []
        self._stays: set[str] = set()  # nodes on which an eviction was refused
        self._had_room: set[str] = set()  # pods whose bind was refused
        self._before: dict[str, Pod] = {}  # victims as they were, by key
        cluster.hooks.removed.append(self._removed)
        cluster.hooks.answered.append(self._answered)

    def _removed(self, pods: Mapping[str, Pod]) -> None:
        """Remember pods that were evicted without a grace period. Called before ``_answered``."""
        self._before.update(pods)

    def _answered(self, decisions: Sequence[Decision], answers: Sequence[Refusal | None]) -> None:
        for decision, refusal in zip(decisions, answers, strict=True):
            if isinstance(decision, Evict):
                if refusal is not None:
                    self._stays.add(decision.node)
                else:
                    self._evicted.append(decision)
            elif refusal is not None:
                self._had_room.add(decision.pod)

    def evicted_now(self) -> dict[str, Pod]:
        """Return the last state of pods that were evicted since the last check and are gone, by key."""
        return {each.pod: self._before[each.pod] for each in self._evicted if each.pod in self._before}

    def check(self) -> str:
        """Return what was broken since the last call, "" for nothing."""
        evicted, stays, before, had_room = self._evicted, self._stays, self._before, self._had_room
        self._evicted, self._stays, self._before, self._had_room = [], set(), {}, set()
        promised = {key: node for key, node in self.promised().items() if key in self.cluster.pods}
        for decision in evicted:
            pod = before.get(decision.pod)
            if decision.reason in FOR_JOBS and pod is not None and not _may_go(pod):
                return f"S7: {decision.pod} was evicted ({decision.reason}) although it is not preemptable"
        if not promised and any(decision.reason in FOR_JOBS for decision in evicted):
            names = ", ".join(decision.pod for decision in evicted)
            return f"S5: {names} were evicted, and no pod was promised a node"
        # A victim that is moved is promised a node too, and is not what it was evicted for.
        beneficiaries = promised.keys() - {decision.pod for decision in evicted}
        if evicted and beneficiaries and beneficiaries <= had_room:
            names = ", ".join(decision.pod for decision in evicted)
            return f"S14: {names} were evicted for {', '.join(sorted(beneficiaries))}, for which there was room"
        if self.idle_first and not (stays or had_room):
            needless = needless_evictions(self.cluster, promised, evicted, before)
            if needless:
                return needless
        return self._does_not_fit(promised, stays) or (self._gangs_below(evicted) if self.keeps_gangs else "")

    def _does_not_fit(self, promised: Mapping[str, str], stays: set[str]) -> str:
        """Return a node without room for its reservations once all leaving pods are gone, in words, or ""."""
        for name in sorted(set(promised.values()) - stays):
            node = self.cluster.nodes.get(name)
            if node is None:
                continue
            there = [self.cluster.pods[key] for key in self.cluster.pods_on.get(name, ())]
            there = [pod for pod in there if pod.deletion is None]
            there += [self.cluster.pods[key] for key, on in promised.items() if on == name]
            taken: dict[str, float] = {}
            for pod in {pod.key: pod for pod in there}.values():
                for resource, amount in amounts_of(pod.spec.request):
                    taken[resource] = taken.get(resource, 0.0) + amount
            for resource, amount in taken.items():
                room = self.cluster.room_on(node, resource)
                unlimited = resource == PODS and PODS not in (node.allocatable.scalars or {})
                if amount > room + MIN_RESOURCE and not unlimited:
                    who = ", ".join(key for key, on in promised.items() if on == name)
                    return f"S5: node {name} is promised to {who} and will have {resource} {amount:g} of {room:g} taken"
        return ""

    def _gangs_below(self, evicted: Sequence[Evict]) -> str:
        """Return a gang below its minimum after evictions by preempt or reclaim alone, in words, or ""."""
        reasons: dict[str, set[str]] = {}
        for decision in evicted:
            reasons.setdefault(decision.job, set()).add(decision.reason)
        held = self.cluster.undelivered.held_pods()
        gone = {decision.uid for decision in evicted}
        for job, why in reasons.items():
            group = self.cluster.groups.get(job)
            if group is None or not why <= set(FOR_TASKS):
                continue
            left = [
                pod
                for pod in (self.cluster.decided_pods() | held).values()
                if pod.group_key == job and pod.uid not in gone
            ]
            count = sum(_counts(pod) for pod in left)
            if count < group.min_member:
                return f"S6: gang {job} has {count} of minMember {group.min_member} after {', '.join(sorted(why))}"
        return ""


def _may_go(pod: Pod) -> bool:
    """Return True if a pod may be evicted for another one. Source: Volcano."""
    said = pod.annotations.get(PREEMPTABLE_KEY, pod.labels.get(PREEMPTABLE_KEY))
    return said is None or is_true(said)


def _counts(pod: Pod) -> bool:
    """Return True if a pod counts for its gang's minimum: it is on a node and stays, has succeeded, or requests
    nothing."""
    if pod.phase == "Succeeded" or pod.spec.request.is_empty():
        return True
    return bool(pod.node_name) and pod.phase not in ENDED and pod.deletion is None
