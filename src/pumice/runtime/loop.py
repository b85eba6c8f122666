"""The loop around the cycle: events go into the store, decisions go to the cluster.

One ``step`` is one cycle. The caller decides when: a simulation when its virtual clock says so, a live scheduler when
something has changed and a schedule period has passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pumice.columns.snapshot import Snapshot
from pumice.cycle import run_cycle
from pumice.framework.cycle.observer import Observer
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.cycle.ports import NO_PROGRAMS, Outside
from pumice.framework.memo import Memo
from pumice.framework.plugin.policy_file import Policy
from pumice.model.decisions import Decision, Refusal
from pumice.model.events import Object, Seen
from pumice.runtime.digest import Digest
from pumice.runtime.ports import Cluster
from pumice.runtime.record.recorder import Recorder
from pumice.runtime.telemetry.plugin_faults import FaultLog
from pumice.state.store import Store


def _ignore(seen: object) -> None:
    """Observe nothing."""


@dataclass(slots=True)
class ClusterPlanner:
    """Carries out decisions on a cluster as they are committed, and keeps those that were accepted. ``refused``: the
    others, by their number among all."""

    cluster: Cluster
    taken: list[Decision] = field(default_factory=list)
    refused: dict[int, Refusal] = field(default_factory=dict)

    def submit(self, decisions: Sequence[Decision]) -> Mapping[int, Refusal]:
        refusals = self.cluster.submit(decisions)
        before = len(self.taken) + len(self.refused)
        self.refused |= {before + place: refusal for place, refusal in refusals.items()}
        if refusals:
            decisions = [decision for place, decision in enumerate(decisions) if place not in refusals]
        self.taken += decisions
        return refusals


@dataclass(slots=True)
class ListPlanner:
    """Accepts every decision and does nothing with it: for one cycle on a snapshot."""

    taken: list[Decision] = field(default_factory=list)

    def submit(self, decisions: Sequence[Decision]) -> Mapping[int, Refusal]:
        self.taken += decisions
        return {}


class Loop:
    """A store, a policy and a cluster. ``decisions``: those of the last step. ``cycles``: number of steps. ``memo``:
    what later steps need not compute again. ``faults``: faults of plugins. ``outside``: returns the port to external
    programs for a cycle. ``publishes``: figures are wanted from every cycle. ``recorder``: keeps all that cycles are
    given, so that they can be run again."""

    def __init__(self, store: Store, policy: Policy, cluster: Cluster, *, publishes: bool = False) -> None:
        self.store = store
        self.policy = policy
        self.cluster = cluster
        self.publishes = publishes
        self.digest = Digest()
        self.cycles = 0
        self.decisions: list[Decision] = []
        self.memo = Memo()
        self.faults = FaultLog()
        self.outside: Callable[[], Outside] = lambda: NO_PROGRAMS
        self.recorder: Recorder | None = None

    def begin_anew(self, store: Store, cluster: Cluster) -> None:
        """Continue with another store and cluster, and keep nothing of the old ones. Counts and digest continue."""
        self.store, self.cluster, self.decisions, self.memo = store, cluster, [], Memo()
        if self.recorder is not None:
            self.recorder.begin_anew()

    def fill_anew(self, store: Store, objects: Iterable[Object]) -> None:
        """Continue with another store, of the same cluster, and give it these objects."""
        found = list(objects)
        for obj in found:
            store.apply(Seen(obj))
        self.store = store
        if self.recorder is not None:
            self.recorder.begin_anew(found)

    def use_policy(self, policy: Policy, text: str) -> None:
        """Decide by this policy from now on. ``text``: of its file, without passwords."""
        self.policy = policy
        if self.recorder is not None:
            self.recorder.use_conf(text, lenient=bool(policy.warnings))

    def take_in(self) -> int:
        """Apply the events since the last call. Return their number."""
        news = self.cluster.drain()
        if self.recorder is not None:
            self.recorder.take(news)
        self.store.apply_all(news)
        self.store.take_in()
        return len(news)

    def step(self, now: float, observe: Observer = _ignore, saw: Callable[[Snapshot], object] = _ignore) -> Outcome:
        """Run one cycle at ``now`` (seconds since the epoch) and carry out its decisions. ``saw``: called with its
        snapshot."""
        self.store.keep_usage(self.policy.usage_windows)
        self.take_in()
        planner = ClusterPlanner(self.cluster)
        snapshot, outside, recorder = self.store.snapshot(now), self.outside(), self.recorder
        saw(snapshot)
        if recorder is not None:
            recorder.begin_cycle(now, snapshot, self.store, self.cycles + 1)
            outside = recorder.noting(outside)
        outcome = run_cycle(snapshot, self.policy, now, planner, observe, self.memo, outside, publishes=self.publishes)
        self.cycles += 1
        self.faults.take(outcome.faults)
        self.decisions = planner.taken
        decided = self.digest.add(now, planner.taken)
        self._write(outcome)
        self.store.assume(planner.taken, outcome.tables)  # before any event reports their results
        if recorder is not None:
            recorder.end_cycle(now, self.cycles, planner.taken, planner.refused, decided)
        return outcome

    def _write(self, outcome: Outcome) -> None:
        """Give the cluster changed statuses, and the store what it should remember."""
        self.store.remember(outcome.writes)
        for removal in outcome.gates:
            self.cluster.remove_gate(removal)
        for update in outcome.groups:
            self.cluster.write_group(update)
        for name, allocated in outcome.queues.items():
            self.cluster.write_queue(name, allocated, outcome.writes.usages.get(name))
