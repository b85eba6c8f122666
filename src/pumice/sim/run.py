"""A whole simulation: a scene and a policy in, what happened out. The cycle is the one that drives a live cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from pumice.framework.policy import Policy
from pumice.model.queue import PriorityClass
from pumice.runtime.memory import old_objects_left_alone
from pumice.runtime.why import Why
from pumice.sim.cluster import SimCluster
from pumice.sim.controller import Controller
from pumice.sim.engine import Engine
from pumice.sim.event_log import EventLog
from pumice.sim.faults import FaultPlan, Faults
from pumice.sim.history import History
from pumice.sim.language import spoken
from pumice.sim.makers import Makers
from pumice.sim.scene import Scene
from pumice.sim.shake import shaken
from pumice.sim.shell import Began, Shell
from pumice.sim.stuck import Stuck, Stuckness
from pumice.sim.window import ALWAYS, Window
from pumice.sim.work import Moved, Work
from pumice.sim.world import CIRCLES_MAX, Ending, Progress, SimResult, Simulation

#: A job needs so many periods where nothing stands in its way: one cycle admits it, one places its pods, and the first
#: is at most a period away.
PROMPT_PERIODS = 2.0
_SHAKE = 1  # dice of its own: with it, faults fall as they fall without it


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that waits at the end. ``waited_s`` is since it arrived, None where it was still to come. ``hint``: what
    would help, empty where that is not known."""

    job: str
    queue: str
    pods: int
    waited_s: float | None
    why: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """``wait_causes``: seconds that jobs spent waiting, by cause, most first. ``wall_s``: by the caller's clock,
    reading input not counted. ``stuck``: jobs that will not run, and what they hold."""

    result: SimResult
    digest: str
    wall_s: float
    waiting: tuple[Waiting, ...]
    wait_causes: Mapping[str, float]
    faults: Mapping[str, int]
    stuck: tuple[Stuck, ...] = ()

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
    period_s: float = 1.0,
    window: Window = ALWAYS,
    seed: int = 0,
    shake_s: float = 0.0,
    faults: FaultPlan | None = None,
    check_laws: bool = False,
    clock: Callable[[], float] = _no_clock,
    observe: Callable[[Progress], object] | None = None,
    tell: Callable[[Mapping[str, object]], object] | None = None,
    began: Began | None = None,
    circles_max: int = CIRCLES_MAX,
    try_alone: bool = True,
) -> Run:
    """Run a scene to its end, or ``until`` seconds from ``start``. Ctrl-C ends it early with what there is.

    ``period_s``: at most one cycle in so many seconds. ``window``: what figures are about. ``tell`` gets every event as
    a plain mapping, ``began`` what each cycle begins with, ``observe`` the progress after it. ``seed`` rolls the dice
    of ``faults``, and those that move every arrival by up to ``shake_s`` seconds. ``clock`` gives real seconds, for
    ``wall_s`` only: a simulation reads no clock of its own. ``check_laws`` checks the safety laws after every event:
    slow. ``circles_max``: it ends after so many cycles that decide something while no job comes or ends.
    ``try_alone`` False does not run each job that waits at the end on an empty cluster, a simulation each, and finds
    none ``impossible``.
    Raises: LawBroken."""
    if shake_s > 0:
        scene = shaken(scene, shake_s, _dice(seed, _SHAKE))
    scene, left_out = spoken(scene, policy.dialect)
    cluster = SimCluster(Engine(start))
    controller = Controller(cluster)
    if left_out:
        controller.problems.append(left_out)
    shell = Shell(cluster, policy, began)
    suffered = Faults(cluster, faults, _dice(seed), shell.restart) if faults is not None else None
    if tell is not None:
        EventLog(cluster, controller, tell, lambda: shell.cycles)
    stuckness = Stuckness(controller)
    scene.enter(cluster, controller)
    made: Mapping[str, Work] = {}
    if scene.makers:
        priorities = {each.name: each.value for each in scene.objects if isinstance(each, PriorityClass)}
        made = Makers(controller, scene.makers, priorities, until).made
    history = History(cluster, controller, window=window, patience_s=PROMPT_PERIODS * period_s)
    shell.causes.tell = history.note_causes
    laws = shell.laws(controller, history) if check_laws else None
    simulation = Simulation(
        cluster,
        controller,
        shell.cycle,
        period_s=period_s,
        history=history,
        after_event=laws.after_event if laws else None,
        after_cycle=laws.after_cycle if laws else None,
        circles_max=circles_max,
    )
    began_s = clock()
    with old_objects_left_alone():
        result = simulation.run(until, observe)
    shell.causes.close(result.now)
    return Run(
        result=result,
        digest=shell.loop.digest.hex,
        wall_s=clock() - began_s,
        waiting=tuple(_waiting(controller, result, shell.why(), shell.hints())),
        wait_causes=shell.causes.seconds(),
        faults=dict(suffered.counts) if suffered else {},
        stuck=stuckness.find(
            lambda key: _why_not_alone(scene, made, key, policy, result.now, circles_max) if try_alone else None,
            nothing_moves=result.ending == Ending.STUCK,
        ),
    )


def _why_not_alone(
    scene: Scene, made: Mapping[str, Work], key: str, policy: Policy, now: float, circles_max: int
) -> str | None:
    """Why a job does not run even when it is the only one, from now on; None when it does."""
    work = made.get(key) or next(work for work in scene.works if work.key == key)
    cluster = SimCluster(Engine(now))
    controller = Controller(cluster)
    shell = Shell(cluster, policy)
    Scene(scene.objects, (Moved(work, 0.0),)).enter(cluster, controller)
    result = Simulation(cluster, controller, shell.cycle, circles_max=circles_max).run()
    said = next(_waiting(controller, result, shell.why(), {}), None)
    return None if said is None else said.why


def _dice(*seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)  # noqa: TID251 - the seed is the caller's


def _waiting(
    controller: Controller, result: SimResult, why: Mapping[str, Why], hints: Mapping[str, str]
) -> Iterator[Waiting]:
    for key in result.pending:
        run = controller.live[key]
        said = why.get(key)
        text = said.text if said else _outside(controller, run.queue)
        yield Waiting(key, run.queue, run.size, result.now - run.submitted, text, hints.get(key, ""))


def _outside(controller: Controller, queue: str) -> str:
    """Why a job was not even looked at."""
    if queue not in controller.cluster.queues:
        return f"queue {queue} is not there"
    return "no cycle has looked at it yet"
