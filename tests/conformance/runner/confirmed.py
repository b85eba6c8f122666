"""Kind ``confirmedCycles``: cycles between which the cluster does what was decided.

Bound pods run, evicted ones are gone, PodGroup statuses and pod status writes are stored.
"""

from __future__ import annotations

from msgspec.structs import replace

from pumice.cycle import run_cycle
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.plugin.registry import Registry
from pumice.model.decisions import PodNotice
from pumice.model.events import Gone, Seen
from pumice.model.pod import Pod, PodCondition
from pumice.model.status import TaskStatus
from tests.conformance.runner.case import Case
from tests.conformance.runner.differences import Differences
from tests.conformance.runner.observed import Observation, compare_observed
from tests.conformance.runner.policies import policy_of_case
from tests.conformance.runner.result import Unusable
from tests.conformance.runner.session import Recorder
from tests.conformance.runner.world import World


def run_confirmed(case: Case, registry: Registry) -> Differences:
    """Every cycle compared with its recording."""
    policy = policy_of_case(case, registry)
    world = World(case)
    recorded = case.raw.get("observedCycles")
    if not isinstance(recorded, list) or len(recorded) != case.raw.get("cycles"):
        raise Unusable("wanted one entry of observedCycles a cycle")
    found = Differences()
    harness = _Harness(world)
    for number, observed in enumerate(recorded, start=1):
        recorder = Recorder()
        outcome = run_cycle(world.store.snapshot(), policy, case.now, recorder)
        seen = Observation(outcome, recorder)
        for line in compare_observed(seen, observed, str(case.raw.get("deterministic"))).lines:
            found.lines.append(f"cycle {number}: {line}")
        harness.carry_out(outcome, recorder, seen)
    return found


class _Harness:
    """The cluster between two cycles.

    Volcano sets ``spec.nodeName`` on the pod object that it shares with its cache when it allocates, and never takes it
    back (spec 02 §10); the harness that recorded the cases stores the pod of a status write as a whole. So a pod whose
    allocation was discarded and whose condition was then written comes back bound. That is of the recording, not of a
    scheduler, and is replayed here.
    """

    def __init__(self, world: World) -> None:
        self.store = world.store
        self.left_behind: dict[str, str] = {}  # pod -> node that an allocation left in its spec

    def carry_out(self, outcome: Outcome, recorder: Recorder, seen: Observation) -> None:
        tables = outcome.tables
        pods = {pod.key: pod for pod in tables.tasks.pods if pod is not None}
        self.store.remember(outcome.writes)
        self._note_allocations(outcome)
        for evict in recorder.evicts:
            self.store.apply(Gone(Pod, evict.pod))
        for name, node in recorder.binds.items():
            running = replace(pods[name], node_name=node, phase="Running", conditions=(), nominated_node="")
            self.store.apply(Seen(running))
        for notice in seen.notices:
            self.store.apply(Seen(self._written(pods[notice.pod], notice)))
        for group in tables.jobs.groups:
            if group is not None and group.key in seen.groups:
                self.store.apply(Seen(replace(group, status=seen.groups[group.key])))

    def _note_allocations(self, outcome: Outcome) -> None:
        """Where each pod was allocated last in this cycle, whether that was undone or kept."""
        tables = outcome.tables
        tasks, names = tables.tasks, tables.nodes.facts.names
        for job in outcome.live_jobs.tolist():
            last_trial = outcome.trace.undone_of(job)
            if last_trial is None:
                continue
            for at in (last_trial.status == TaskStatus.ALLOCATED).nonzero()[0].tolist():
                self.left_behind[tasks.pods[tables.jobs.tasks[job][at]].key] = names[last_trial.node[at]]
        for row in (tasks.status == TaskStatus.ALLOCATED).nonzero()[0].tolist():
            self.left_behind[tasks.pods[row].key] = names[tasks.node[row]]

    def _written(self, pod: Pod, notice: PodNotice) -> Pod:
        """The pod as the harness stores it after its status was written."""
        condition = PodCondition("PodScheduled", "False", notice.reason, notice.message)
        others = tuple(c for c in pod.conditions if c.type != "PodScheduled")
        return replace(
            pod,
            conditions=(*others, condition),
            nominated_node=notice.nominated_node or pod.nominated_node,
            node_name=pod.node_name or self.left_behind.get(pod.key, ""),
        )
