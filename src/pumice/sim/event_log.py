"""Everything that happens in a simulation, as plain mappings, for ``--events``.

``t``: seconds from the start. ``cycle``, for what a cycle did: its number, as ``--save-cycle`` accepts it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pumice.model.decisions import Bind, Decision, Evict, Refusal
from pumice.model.node import Node
from pumice.model.status import PodGroupPhase
from pumice.model.workloads.podgroup import PodGroup
from pumice.sim.cluster import SimCluster
from pumice.sim.controller import Controller, JobRun
from pumice.sim.equal_pods import EqualPods, one_of

TakeEvent = Callable[[Mapping[str, object]], object]

_UNSCHEDULABLE = "Unschedulable"


class EventLog:
    """Emits events: arrival, admitted, unschedulable, bind, evict, refused, running, started, gone (a pod left its node
    before its time), broken, succeeded, done, node-up, node-down. ``cycle`` returns the number of the present or last
    cycle."""

    def __init__(self, cluster: SimCluster, controller: Controller, emit: TakeEvent, cycle: Callable[[], int]) -> None:
        self._engine = cluster.engine
        self._live = controller.live
        self._start = cluster.engine.now
        self._emit, self._cycle = emit, cycle
        self._admitted: set[str] = set()
        self._messages: dict[str, str] = {}
        cluster.hooks.answered.append(self._answered)
        cluster.hooks.started.append(self._pods_started)
        cluster.hooks.finished.append(self._pods_finished)
        cluster.hooks.left.append(self._pods_left)
        cluster.hooks.group_written.append(self._group_written)
        cluster.hooks.node_changed.append(self._node_changed)
        controller.hooks.arrived.append(self._arrived)
        controller.hooks.started.append(self._job_started)
        controller.hooks.broken.append(self._job_broken)
        controller.hooks.ended.append(self._job_ended)

    def _event(self, event: str, **what: object) -> None:
        self._emit({"t": round(self._engine.now - self._start, 6), "event": event, **what})

    def _done_by_cycle(self, event: str, **what: object) -> None:
        self._event(event, cycle=self._cycle(), **what)

    def _arrived(self, run: JobRun) -> None:
        self._event("arrival", job=run.key, queue=run.queue, pods=run.size, min=run.min_available)

    def _group_written(self, group: PodGroup) -> None:
        if group.status.phase != PodGroupPhase.PENDING and group.key not in self._admitted:
            self._admitted.add(group.key)
            self._done_by_cycle("admitted", job=group.key, queue=group.queue)
        condition = next((c for c in group.status.conditions if c.type == _UNSCHEDULABLE and c.status == "True"), None)
        if condition is not None and self._messages.get(group.key) != condition.message:
            self._messages[group.key] = condition.message
            self._done_by_cycle("unschedulable", job=group.key, reason=condition.reason, message=condition.message)

    def _answered(self, decisions: Sequence[Decision], answers: Sequence[Refusal | None]) -> None:
        for decision, refusal in zip(decisions, answers, strict=True):
            self._answer(decision, refusal)

    def _answer(self, decision: Decision, refusal: Refusal | None) -> None:
        about: dict[str, object] = {"pod": decision.pod, "job": decision.job, "node": decision.node}
        if isinstance(decision, Evict):
            about["reason"] = decision.reason
        kind = "bind" if isinstance(decision, Bind) else "evict"
        if refusal is None:
            self._done_by_cycle(kind, **about)
        else:
            self._done_by_cycle("refused", what=kind, **about, refusal=refusal.reason)

    def _pods_started(self, pods: EqualPods) -> None:
        self._each("running", pods)

    def _pods_finished(self, pods: EqualPods) -> None:
        self._each("succeeded", pods)

    def _pods_left(self, pods: EqualPods) -> None:
        pod = one_of(pods)
        run = self._live.get(pod.group_key)
        if run is not None and run.ended is None and pod.phase != "Succeeded":
            self._each("gone", pods)

    def _each(self, event: str, pods: EqualPods) -> None:
        job = one_of(pods).group_key
        for key, pod in pods.items():
            self._event(event, pod=key, job=job, node=pod.node_name)

    def _job_started(self, run: JobRun) -> None:
        self._event("started", job=run.key, queue=run.queue, waited_s=round(self._engine.now - run.submitted, 6))

    def _job_broken(self, run: JobRun) -> None:
        self._event("broken", job=run.key, queue=run.queue, restarts=run.restarts)

    def _job_ended(self, run: JobRun) -> None:
        self._admitted.discard(run.key)
        self._messages.pop(run.key, None)
        self._event("done", job=run.key, queue=run.queue, took_s=round(self._engine.now - run.submitted, 6))

    def _node_changed(self, before: Node | None, after: Node | None) -> None:
        if before is None and after is not None:
            self._event("node-up", node=after.name)
        elif before is not None and after is None:
            self._event("node-down", node=before.name)
