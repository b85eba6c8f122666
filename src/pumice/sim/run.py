"""Run a simulation: from a scene and a policy to its result. The cycle is the one that drives a live cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from pumice.answers.codes import code_of
from pumice.framework.plugin.policy_file import Policy
from pumice.model.blockers import ACTION, QUEUE, Missing, NotAdmitted
from pumice.model.manifest.defaults.priorities import Priorities
from pumice.model.queue import PriorityClass
from pumice.placing.small_gangs import with_second_tries
from pumice.reasons.hints import blockers_outside, other_scheduler
from pumice.reasons.sentences import sentence
from pumice.runtime.memory import old_objects_left_alone, without_collector
from pumice.sim.cluster import SimCluster
from pumice.sim.controller import Controller
from pumice.sim.engine import Engine
from pumice.sim.event_log import EventLog
from pumice.sim.measures.history import History
from pumice.sim.measures.stuck import Stuck, StuckJobs
from pumice.sim.namespace_status import NamespaceStatus
from pumice.sim.scenes.scene import Scene
from pumice.sim.settings import NO_OBSERVERS, PLAIN, Observers, SimSettings
from pumice.sim.shell import Shell
from pumice.sim.workloads.language import in_language
from pumice.sim.workloads.shake import shaken
from pumice.sim.workloads.work import Work, arriving
from pumice.sim.world import Ending, SimResult, Simulation

if TYPE_CHECKING:
    from pumice.sim.faults import Faults
    from pumice.sim.laws.safety import Laws

#: Periods that an undisturbed job needs: one cycle admits it, one places its pods, and the first is at most a period
#: away.
PROMPT_PERIODS = 2.0
#: Why a job of Volcano waits under a policy that admits none.
_ADMITTED_BY_NONE = NotAdmitted((Missing(ACTION, "enqueue"),))
_SHAKE = 1  # a separate generator, so that shaking does not change the faults


class Waiting(Struct, frozen=True):
    """A job that waits at the end. ``waited_s``: since its arrival, None if it has not arrived. ``code``, ``why``: what
    is nearest in its way, "" and that no cycle has considered it if none has. ``shown``: what people call it, "" for
    ``job``."""

    job: str
    queue: str
    pods: int
    waited_s: float | None
    code: str
    why: str
    shown: str = ""


class Run(Struct, frozen=True):
    """The result of a simulation. ``wait_codes``: seconds that jobs waited, by code of the reason, the largest first.
    ``wall_s``: by the caller's clock, without reading input. ``stuck``: jobs that will not run, and what they hold."""

    result: SimResult
    digest: str
    wall_s: float
    waiting: tuple[Waiting, ...]
    wait_codes: Mapping[str, float]
    faults: Mapping[str, int]
    stuck: tuple[Stuck, ...] = ()

    @property
    def history(self) -> History:
        return self.result.history


def simulate(scene: Scene, policy: Policy, settings: SimSettings = PLAIN, observers: Observers = NO_OBSERVERS) -> Run:
    """Run a scene to its end, or as long as the settings say. Ctrl-C ends it early with the results so far.

    Raises: LawBroken.
    """
    if settings.shake_s > 0:
        scene = shaken(scene, settings.shake_s, _dice(settings.seed, _SHAKE))
    scene, left_out = in_language(scene, policy.dialect)
    cluster = SimCluster(Engine(settings.start))
    controller = Controller(cluster)
    if left_out:
        controller.problems.append(left_out)
    shell = Shell(cluster, policy, observers.began, observers.recorder, asks_why=settings.asks_why)
    suffered = _faults(cluster, shell, settings)
    if observers.event is not None:
        EventLog(cluster, controller, observers.event, lambda: shell.cycles)
    stuck_jobs = StuckJobs(controller)
    with without_collector():
        scene.enter(cluster, controller)
    NamespaceStatus(cluster)
    made: Mapping[str, Work] = {}
    if scene.makers:
        priorities = Priorities(each for each in scene.objects if isinstance(each, PriorityClass))
        from pumice.sim.scenes.makers import Makers  # with the controllers of a cluster

        made = Makers(controller, scene.makers, priorities, settings.until).made
    history = History(cluster, controller, window=settings.window, prompt_s=PROMPT_PERIODS * settings.period_s)
    shell.codes.note = history.note_codes
    laws = _laws(shell, controller, history, settings) if settings.check_laws else None
    simulation = Simulation(
        cluster,
        controller,
        shell.cycle,
        period_s=settings.period_s,
        history=history,
        after_event=laws.after_event if laws else None,
        after_cycle=laws.after_cycle if laws else None,
        circles_max=settings.circles_max,
        awaited=settings.awaited,
    )
    began_s = observers.clock()
    with old_objects_left_alone():
        result = simulation.run(settings.until, observers.progress)
    shell.codes.close(result.now)
    return Run(
        result=result,
        digest=shell.loop.digest.hex,
        wall_s=observers.clock() - began_s,
        waiting=tuple(_waiting(controller, result, shell)),
        wait_codes=shell.codes.seconds(),
        faults=dict(suffered.counts) if suffered else {},
        stuck=stuck_jobs.find(
            lambda key: _why_not_alone(scene, made, key, policy, result.now, settings),
            nothing_moves=result.ending == Ending.STUCK,
        ),
    )


def _faults(cluster: SimCluster, shell: Shell, settings: SimSettings) -> Faults | None:
    """Return the faults of the settings, or None."""
    if settings.faults is None:
        return None
    from pumice.sim.faults import Faults

    return Faults(cluster, settings.faults, _dice(settings.seed), shell.restart)


def _laws(shell: Shell, controller: Controller, history: History, settings: SimSettings) -> Laws:
    """Return the laws that hold under the shell's policy."""
    from pumice.sim.laws.by_policy import laws_of

    return laws_of(shell, controller, history, estimates_hold=settings.estimates_hold)


def _why_not_alone(
    scene: Scene, made: Mapping[str, Work], key: str, policy: Policy, now: float, settings: SimSettings
) -> str | None:
    """Return why a job does not run even if it is the only one, or None if it does, or is not tried."""
    if not settings.try_alone:
        return None
    work = made.get(key) or next(work for work in scene.works if work.key == key)
    why, searching = _why_waiting_alone(scene, work, policy, now, settings), with_second_tries(policy)
    if why is None or searching is None or len({pod.spec for pod in work.expand(0.0)[1]}) < 2:
        return why
    # Pod by pod a gang of different pods may find no place although it fits.
    fits = _why_waiting_alone(scene, work, searching, now, settings) is None
    return f"{why.rstrip('.')}; it would run with secondTries of allocate" if fits else why


def _why_waiting_alone(scene: Scene, work: Work, policy: Policy, now: float, settings: SimSettings) -> str | None:
    """Return why a job waits if it is the only one, or None if it does not."""
    cluster = SimCluster(Engine(now))
    controller = Controller(cluster)
    shell = Shell(cluster, policy)
    Scene(scene.objects, (arriving(work, 0.0),)).enter(cluster, controller)
    result = Simulation(cluster, controller, shell.cycle, circles_max=settings.circles_max).run()
    waiting = next(_waiting(controller, result, shell), None)
    return None if waiting is None else waiting.why


def _dice(*seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)  # noqa: TID251 - the seed is the caller's


def _waiting(controller: Controller, result: SimResult, shell: Shell) -> Iterator[Waiting]:
    if not result.pending:
        return
    cluster, nearest, names = controller.cluster, shell.nearest(), (shell.loop.policy.dialect.scheduler,)
    outside = blockers_outside((*cluster.groups.values(), *cluster.queues.values(), *cluster.pods.values()), names)
    for key in result.pending:
        run = controller.live[key]
        blocker = outside.get(key) or nearest.get(key)
        if blocker == _ADMITTED_BY_NONE and run.coming is not None:
            # Its pods are not there yet; if they were, they would be those of another scheduler.
            blocker = next(filter(None, (other_scheduler(pod, names) for pod in run.coming.expand(0.0)[1])), blocker)
        if blocker is None and run.queue not in cluster.queues:
            blocker = Missing(QUEUE, run.queue)
        code, why = ("", "no cycle has considered it yet") if blocker is None else (code_of(blocker), sentence(blocker))
        yield Waiting(key, run.queue, run.size, result.now - run.submitted, str(code), why, run.shown)
