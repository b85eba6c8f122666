"""The loop of a live scheduler on a simulated cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pumice.columns.snapshot import Snapshot
from pumice.framework.cycle.outcome import Outcome
from pumice.framework.plugin.policy_file import Policy
from pumice.model.blockers import Blocker
from pumice.model.decisions import Decision, Refusal
from pumice.reasons.nearest import NearestBlockers
from pumice.runtime.loop import Loop
from pumice.runtime.record.recorder import Recorder
from pumice.sim.cluster import SimCluster
from pumice.sim.measures.wait_codes import WaitCodes
from pumice.sim.world import CycleReport
from pumice.state.store import Store

#: Called with what a cycle begins with: its number (from 1), its time, and the cluster.
Began = Callable[[int, float, Snapshot], object]


class Shell:
    """A scheduler: it runs cycles, remembers why jobs wait (unless ``asks_why`` is False), and can be restarted."""

    def __init__(
        self,
        cluster: SimCluster,
        policy: Policy,
        began: Began | None = None,
        recorder: Recorder | None = None,
        *,
        asks_why: bool = True,
    ) -> None:
        self.cluster = cluster
        self.cycles = 0
        self._asks_why = asks_why
        self._began = began
        self.loop = Loop(_store(policy), policy, cluster)
        self.loop.recorder = recorder
        self.codes = WaitCodes()
        self._submitted: list[Decision] = []
        self._last: Outcome | None = None
        cluster.hooks.answered.append(self._answered)

    def cycle(self, now: float) -> CycleReport:
        self._submitted = []
        self._last = None  # without a reference, the store need not copy it when it changes
        self.cycles += 1
        outcome = self._last = self.loop.step(now, saw=lambda snapshot: self._saw(now, snapshot))
        for notice in outcome.nominations():
            self.cluster.notice(notice)
        if self._asks_why:
            self.codes.observe(now, outcome)
        return CycleReport(self._submitted, outcome.wakes_at)

    def _saw(self, now: float, snapshot: Snapshot) -> None:
        if self._began is not None:
            self._began(self.cycles, now, snapshot)

    def restart(self) -> None:
        """Forget everything but the digest of the decisions so far."""
        before = self.loop
        self.loop = Loop(_store(before.policy), before.policy, self.cluster)
        self.loop.digest, self.loop.cycles, self.loop.recorder = before.digest, before.cycles, before.recorder
        if self.loop.recorder is not None:
            self.loop.recorder.begin_anew()

    def last_outcome(self) -> Outcome | None:
        """Return the outcome of the last cycle, None before the first."""
        return self._last

    def promised(self) -> dict[str, str]:
        """Return pods for which the last cycle reserved a node, with the node."""
        return {} if self._last is None else self._last.pipelined

    def known(self) -> set[str]:
        """Return the keys of pods that the store knows of."""
        tasks = self.loop.store.snapshot().tables.tasks
        return {tasks.pods[row].key for row in np.flatnonzero(tasks.alive).tolist()}

    def nearest(self) -> dict[str, Blocker]:
        """Return by key what was nearest in the way of each job that waited after the last cycle."""
        return {} if self._last is None else NearestBlockers(self._last).by_key()

    def _answered(self, decisions: Sequence[Decision], answers: Sequence[Refusal | None]) -> None:
        self._submitted += decisions


def _store(policy: Policy) -> Store:
    """Return a store for pods of the scheduler of the policy's language."""
    return Store(scheduler_names=(policy.dialect.scheduler,), default_queue=policy.dialect.default_queue)
