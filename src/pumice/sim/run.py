"""A whole simulation: a scene and a policy in, what happened out. The cycle is the one that drives a live cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from pumice.columns.snapshot import Snapshot
from pumice.framework.outcome import Outcome
from pumice.framework.policy import Policy
from pumice.model.decisions import Decision, Refusal
from pumice.runtime.loop import Loop
from pumice.runtime.memory import old_objects_left_alone
from pumice.runtime.why import Why, why_jobs_wait
from pumice.sim.cluster import SimCluster
from pumice.sim.controller import Controller
from pumice.sim.engine import Engine
from pumice.sim.event_log import EventLog
from pumice.sim.faults import FaultPlan, Faults
from pumice.sim.history import History
from pumice.sim.laws import Laws
from pumice.sim.scene import Scene
from pumice.sim.shares import ShareWatch
from pumice.sim.wait_causes import WaitCauses
from pumice.sim.world import CycleReport, Progress, SimResult, Simulation
from pumice.state.store import Store

#: Told what a cycle begins with: its number, from 1 on, its moment, and the cluster.
Began = Callable[[int, float, Snapshot], object]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that waits at the end. ``waited_s`` is since it arrived, None where it was still to come."""

    job: str
    queue: str
    pods: int
    waited_s: float | None
    why: str


@dataclass(frozen=True, slots=True)
class Run:
    """``wait_causes``: seconds that jobs spent waiting, by cause, most first. ``wall_s``: by the caller's clock,
    reading input not counted."""

    result: SimResult
    digest: str
    wall_s: float
    waiting: tuple[Waiting, ...]
    wait_causes: Mapping[str, float]
    faults: Mapping[str, int]

    @property
    def history(self) -> History:
        return self.result.history


def _no_clock() -> float:
    """Nobody wants to know how long it took."""
    return 0.0


def simulate(
    scene: Scene,
    policy: Policy,
    *,
    start: float = 0.0,
    until: float | None = None,
    seed: int = 0,
    faults: FaultPlan | None = None,
    check_laws: bool = False,
    clock: Callable[[], float] = _no_clock,
    observe: Callable[[Progress], object] | None = None,
    tell: Callable[[Mapping[str, object]], object] | None = None,
    began: Began | None = None,
) -> Run:
    """Run a scene to its end, or ``until`` seconds from ``start``. Ctrl-C ends it early with what there is.

    ``tell`` gets every event as a plain mapping, ``began`` what each cycle begins with, ``observe`` the progress after
    it. ``seed`` rolls the dice of ``faults``. ``clock`` gives real seconds, for ``wall_s`` only: a simulation reads no
    clock of its own.
    ``check_laws`` checks the safety laws after every event: slow. Raises: LawBroken.
    """
    cluster = SimCluster(Engine(start))
    controller = Controller(cluster)
    shell = _Shell(cluster, policy, began)
    suffered = Faults(cluster, faults, _dice(seed), shell.restart) if faults is not None else None
    if tell is not None:
        EventLog(cluster, controller, tell, lambda: shell.cycles)
    scene.enter(cluster, controller)
    history = History(cluster, controller)
    laws = shell.laws(controller, history) if check_laws else None
    simulation = Simulation(
        cluster,
        controller,
        shell.cycle,
        history=history,
        after_event=laws.after_event if laws else None,
        after_cycle=laws.after_cycle if laws else None,
    )
    began_s = clock()
    with old_objects_left_alone():
        result = simulation.run(until, observe)
    shell.causes.close(result.now)
    return Run(
        result=result,
        digest=shell.loop.digest.hex,
        wall_s=clock() - began_s,
        waiting=tuple(_waiting(controller, result, shell.why())),
        wait_causes=shell.causes.seconds(),
        faults=dict(suffered.counts) if suffered else {},
    )


def _dice(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)  # noqa: TID251 - the seed is the caller's


class _Shell:
    """The loop of a live scheduler, on a simulated cluster, with ears for the history."""

    def __init__(self, cluster: SimCluster, policy: Policy, began: Began | None) -> None:
        self.cluster = cluster
        self.cycles = 0
        self._began = began
        self.loop = Loop(Store(), policy, cluster)
        self.causes = WaitCauses()
        self._shares = ShareWatch()
        self._submitted: list[Decision] = []
        self._last: Outcome | None = None
        cluster.hooks.answered.append(self._answered)

    def cycle(self, now: float) -> CycleReport:
        self._submitted = []
        self.cycles += 1
        outcome = self._last = self.loop.step(now, saw=lambda snapshot: self._saw(now, snapshot))
        self.causes.observe(now, outcome)
        report = CycleReport(self._submitted, self._shares.changed(outcome), outcome.wakes_at)
        self.loop.take_in()
        return report

    def _saw(self, now: float, snapshot: Snapshot) -> None:
        if self._began is not None:
            self._began(self.cycles, now, snapshot)

    def restart(self) -> None:
        """Forget everything but what was decided so far."""
        digest = self.loop.digest
        self.loop = Loop(Store(), self.loop.policy, self.cluster)
        self.loop.digest = digest

    def laws(self, controller: Controller, history: History) -> Laws:
        """The laws that hold under this policy."""
        plugins = {option.spec.name for option in self.loop.policy.options}
        return Laws(
            self.cluster,
            controller,
            usage=history.usage,
            known=self._known,
            topology="network-topology-aware" in plugins,
            queue_limits="proportion" in plugins,
        )

    def _known(self) -> set[str]:
        """Keys of the pods that the store knows of."""
        tasks = self.loop.store.snapshot().tables.tasks
        return {tasks.pods[row].key for row in np.flatnonzero(tasks.alive).tolist()}

    def why(self) -> dict[str, Why]:
        """Why jobs waited after the last cycle."""
        return {} if self._last is None else why_jobs_wait(self._last)

    def _answered(self, decision: Decision, refusal: Refusal | None) -> None:
        self._submitted.append(decision)


def _waiting(controller: Controller, result: SimResult, why: Mapping[str, Why]) -> Iterator[Waiting]:
    for key in result.pending:
        run = controller.live[key]
        said = why.get(key)
        text = said.text if said else _outside(controller, run.queue)
        yield Waiting(key, run.queue, run.size, result.now - run.submitted, text)


def _outside(controller: Controller, queue: str) -> str:
    """Why a job was not even looked at."""
    if queue not in controller.cluster.queues:
        return f"queue {queue} is not there"
    return "no cycle has looked at it yet"
