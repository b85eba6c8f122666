"""Faults by a seeded generator: equal seeds give equal faults at equal times.

Binds and evictions are refused; binds wait before they are sent; events arrive late or twice; nodes disappear and come
back, and are cordoned for a while; pods are deleted; the API server is unavailable for a while; the scheduler is
restarted and remembers nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from pumice.model.decisions import Bind, Evict
from pumice.model.events import Event, Object, Seen, key_of
from pumice.model.node import Node
from pumice.model.pod import Pod
from pumice.sim.cluster import SimCluster
from pumice.sim.engine import Priority

KINDS = ("refused", "late", "node gone", "pod deleted", "pod killed", "redelivered", "restarted")
#: Faults that a plan has only if it names them.
RARE_KINDS = ("evict refused", "API gone", "node cordoned")
#: Objects that are sent again at one time.
REDELIVERED_MAX = 100


class FaultPlan(Struct, frozen=True):
    """How often each fault happens; 0: never. No fault happens after ``quiet_after_s``."""

    quiet_after_s: float
    refused_share: float = 0.0  # of binds
    late_share: float = 0.0  # of events about pods on nodes
    late_max_s: float = 5.0
    node_gone_every_s: float = 0.0
    node_back_after_s: float = 60.0
    pod_deleted_every_s: float = 0.0  # pods that wait
    pod_killed_every_s: float = 0.0  # pods on nodes
    redelivered_every_s: float = 0.0
    restart_every_s: float = 0.0
    evict_refused_share: float = 0.0  # of evictions
    api_gone_every_s: float = 0.0  # nothing can be written, and events are delivered afterwards
    api_back_after_s: float = 10.0
    queued_max_s: float = 0.0  # binds wait for up to so long before they are sent
    node_cordoned_every_s: float = 0.0
    node_cordoned_for_s: float = 60.0


class Faults:
    """Applies a plan to a cluster. ``counts``: number of faults by kind.

    ``restart`` makes the scheduler forget everything; all objects are sent to it again.
    """

    def __init__(
        self,
        cluster: SimCluster,
        plan: FaultPlan,
        rng: np.random.Generator,
        restart: Callable[[], object] | None = None,
    ) -> None:
        self.cluster = cluster
        self.plan = plan
        self.rng = rng
        self.until = cluster.engine.now + plan.quiet_after_s
        self.restart = restart
        self.counts = dict.fromkeys((*KINDS, *RARE_KINDS), 0)
        self._api_back_at = cluster.engine.now
        self._cordoned: set[str] = set()
        cluster.objection = self._objection
        cluster.undelivered.delay = self._delay
        if plan.queued_max_s > 0:
            cluster.queue_binds(self._waits)
        self._plan_next(plan.node_cordoned_every_s, self._node_is_cordoned)
        self._plan_next(plan.node_gone_every_s, self._node_goes)
        self._plan_next(plan.pod_deleted_every_s, self._waiting_pod_goes)
        self._plan_next(plan.pod_killed_every_s, self._placed_pod_goes)
        self._plan_next(plan.redelivered_every_s, self._redeliver)
        self._plan_next(plan.api_gone_every_s, self._api_goes)
        if restart is not None:
            self._plan_next(plan.restart_every_s, self._restarts)

    @property
    def quiet(self) -> bool:
        """Return True if no more faults will happen."""
        return self.cluster.engine.now >= self.until

    def _objection(self, decision: Bind | Evict) -> str | None:
        if self.cluster.engine.now < self._api_back_at:
            return "fault: the API server is unreachable"
        bind = isinstance(decision, Bind)
        share = self.plan.refused_share if bind else self.plan.evict_refused_share
        if self.quiet or not (bind or share) or self.rng.random() >= share:
            return None
        self.counts["refused" if bind else "evict refused"] += 1
        return "fault: the API server is busy"

    def _api_goes(self) -> None:
        self.counts["API gone"] += 1
        self._api_back_at = self.cluster.engine.now + self.plan.api_back_after_s
        self._plan_next(self.plan.api_gone_every_s, self._api_goes)

    def _delay(self, event: Event) -> float:
        if not isinstance(event, Seen) or not isinstance(event.obj, Pod) or not event.obj.node_name:
            return 0.0
        if self.cluster.engine.now < self._api_back_at:
            return self._api_back_at - self.cluster.engine.now
        if self.quiet:
            return 0.0
        if self.rng.random() >= self.plan.late_share:
            return 0.0
        self.counts["late"] += 1
        return float(self.rng.uniform(0.0, self.plan.late_max_s))

    def _waits(self) -> float:
        """Return for how many seconds a bind waits before it is sent."""
        return 0.0 if self.quiet else float(self.rng.uniform(0.0, self.plan.queued_max_s))

    def _plan_next(self, every_s: float, fault: Callable[[], None]) -> None:
        if every_s <= 0:
            return
        time = self.cluster.engine.now + float(self.rng.exponential(every_s))
        if time < self.until:
            self.cluster.engine.at(time, fault, priority=Priority.FAULT)

    def _node_goes(self) -> None:
        nodes = self.cluster.nodes
        if len(nodes) > 1:
            name = list(nodes)[int(self.rng.integers(len(nodes)))]
            node = nodes[name]
            self.counts["node gone"] += 1
            self.cluster.delete(Node, name)
            back = self.plan.node_back_after_s, self._node_comes_back, node, name in self._cordoned
            self.cluster.engine.after(*back, priority=Priority.FAULT)
        self._plan_next(self.plan.node_gone_every_s, self._node_goes)

    def _node_is_cordoned(self) -> None:
        open_ones = [node for node in self.cluster.nodes.values() if not node.unschedulable]
        if open_ones:
            node = open_ones[int(self.rng.integers(len(open_ones)))]
            self.counts["node cordoned"] += 1
            self._cordoned.add(node.name)
            self.cluster.put(replace(node, unschedulable=True))
            self.cluster.engine.after(self.plan.node_cordoned_for_s, self._uncordon, node.name, priority=Priority.FAULT)
        self._plan_next(self.plan.node_cordoned_every_s, self._node_is_cordoned)

    def _uncordon(self, name: str) -> None:
        self._cordoned.discard(name)
        node = self.cluster.nodes.get(name)
        if node is not None:
            self.cluster.put(replace(node, unschedulable=False))

    def _node_comes_back(self, node: Node, was_cordoned: bool) -> None:
        """Add a node as it was. Its cordon may have ended meanwhile."""
        self.cluster.put(replace(node, unschedulable=node.name in self._cordoned) if was_cordoned else node)

    def _waiting_pod_goes(self) -> None:
        self._one_goes("pod deleted", [key for key, pod in self.cluster.pods.items() if not pod.node_name])
        self._plan_next(self.plan.pod_deleted_every_s, self._waiting_pod_goes)

    def _placed_pod_goes(self) -> None:
        self._one_goes("pod killed", [key for key, pod in self.cluster.pods.items() if pod.node_name])
        self._plan_next(self.plan.pod_killed_every_s, self._placed_pod_goes)

    def _one_goes(self, fault: str, keys: list[str]) -> None:
        if keys:
            self.counts[fault] += 1
            self.cluster.remove_pod(keys[int(self.rng.integers(len(keys)))])

    def _redeliver(self) -> None:
        objects: list[Object] = [*self.cluster.nodes.values(), *self.cluster.pods.values()]
        for obj in objects[:REDELIVERED_MAX]:
            self.cluster.undelivered.add(obj, key_of(obj))
        self.counts["redelivered"] += 1
        self._plan_next(self.plan.redelivered_every_s, self._redeliver)

    def _restarts(self) -> None:
        assert self.restart is not None
        self.restart()
        self.cluster.relist()
        self.counts["restarted"] += 1
        self._plan_next(self.plan.restart_every_s, self._restarts)
