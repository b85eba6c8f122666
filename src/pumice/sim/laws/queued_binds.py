"""S17: a bind that has waited is sent only if it still holds: its node is there and was neither cordoned nor tainted
since it was decided, and its gang can still be whole.

Checked at each bind that is sent, by a plain count, on the state of the API server. Binds that are sent at once cannot
break it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pumice.model.decisions import Bind, Decision, Refusal
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.sim.cluster import SimCluster
from pumice.sim.equal_pods import EqualPods


class QueuedBindLaws:
    """Watches a cluster. ``check`` returns the first law that was broken since it was last called, in words."""

    def __init__(self, cluster: SimCluster) -> None:
        self._cluster = cluster
        self._decided: dict[str, tuple[Bind, Node]] = {}  # by UID of the pod: its node as it was then
        self._refused: set[str] = set()  # UIDs of pods whose binds the API server refused: they are decided again
        self._broken = ""
        cluster.hooks.send_refused.append(lambda bind: self._refused.add(bind.uid))
        cluster.hooks.answered.append(self._answered)
        cluster.hooks.bound.append(self._bound)

    def check(self) -> str:
        broken, self._broken = self._broken, ""
        return broken

    def _answered(self, decisions: Sequence[Decision], answers: Sequence[Refusal | None]) -> None:
        if self._cluster.queued is None:
            return
        for decision, refusal in zip(decisions, answers, strict=True):
            if isinstance(decision, Bind) and refusal is None:
                self._decided[decision.uid] = decision, self._cluster.nodes[decision.node]
                self._refused.discard(decision.uid)

    def _bound(self, pods: EqualPods) -> None:
        for pod in pods.values() if self._cluster.queued is not None else ():
            decided = self._decided.pop(pod.uid, None)
            if decided is None or self._broken:
                continue
            bind, then = decided
            outdated = self._outdated(pod, bind.node, then)
            if outdated:
                self._broken = f"S17: {pod.key} was bound to {bind.node}, which {outdated}"
            else:
                self._broken = self._gang_falls(pod)

    def _outdated(self, pod: Pod, name: str, then: Node) -> str:
        """Return what has happened to the node of a bind, "" for nothing that matters."""
        now = self._cluster.nodes.get(name)
        if now is None or now.uid != then.uid:
            return "is gone"
        closed = (now.unschedulable and not then.unschedulable) or set(now.taints) - set(then.taints)
        return "was cordoned or tainted" if closed and not pod.spec.tolerations else ""

    def _gang_falls(self, bound: Pod) -> str:
        """Return that the gang of a pod cannot be whole, in words, or ""."""
        group = self._cluster.groups.get(bound.group_key)
        if group is None:
            return ""
        left = sum(pod.group_key == group.key and self._counts(pod) for pod in self._cluster.pods.values())
        if left >= group.min_member:
            return ""
        return f"S17: {bound.key} was bound, and {left} of minMember {group.min_member} of {group.key} can still run"

    def _counts(self, pod: Pod) -> bool:
        """Return True if a pod is on a node and stays, has succeeded, asks for nothing, or may still be bound: to the
        node that was decided, or to any if the API server refused that, because it is decided again."""
        if pod.node_name:
            return pod.phase == "Succeeded" or (pod.phase != "Failed" and pod.deletion is None)
        if pod.phase == "Succeeded" or pod.spec.request.is_empty():
            return True
        decided = self._decided.get(pod.uid)
        if decided is None:
            return False
        return pod.uid in self._refused or not self._outdated(pod, decided[0].node, decided[1])
