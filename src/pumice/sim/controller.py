"""A small job controller: work that arrives becomes a PodGroup and pods, runs as a gang, and is removed when done.

As with Volcano, a job has no pods until its PodGroup is admitted. Until then it asks only for its minimum. From the
moment at which at least ``minAvailable`` pods run, the job takes its duration, and then all its pods succeed. If
evictions leave fewer running, the job starts from the beginning once it is complete again: no progress is saved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pumice.model.pod import Pod
from pumice.model.status import PodGroupPhase
from pumice.model.workloads.bare_pods import shown_name
from pumice.model.workloads.podgroup import PodGroup
from pumice.sim.cluster import SimCluster
from pumice.sim.engine import EventId, Priority
from pumice.sim.equal_pods import EqualPods, one_of
from pumice.sim.measures.node_usage import Amounts, Kinds, amounts_of, asked_by, counted
from pumice.sim.workloads.work import Work


@dataclass(slots=True, eq=False)
class JobRun:
    """A job from arrival to end. Times are those of the simulation.

    ``started``: when its gang first ran. ``since``: when it last started. ``asks``: requests of all its pods.
    ``kinds``: how many pods there are of each spec. ``lost_s``: how long its gang ran without result. ``lost``: what
    its pods held during that time, amount times seconds by resource.
    """

    key: str
    queue: str
    size: int
    min_available: int
    duration_s: float
    submitted: float
    asks: Amounts = ()
    kinds: Kinds = ()
    started: float | None = None
    since: float = 0.0
    ended: float | None = None
    restarts: int = 0
    lost_s: float = 0.0
    lost: dict[str, float] = field(default_factory=dict)
    recreates: bool = True
    coming: Work | None = None  # whose pods are made when the PodGroup is admitted
    wanted: dict[str, Pod] = field(default_factory=dict)  # pods to keep there, as first created, by key
    running: dict[str, float] = field(default_factory=dict)  # since when, by key
    succeeded: int = 0
    remade: int = 0
    whole: bool = False  # the gang runs now
    end: EventId | None = None

    @property
    def shown(self) -> str:
        """What people call it: its key, or the pod or owner for whose sake its PodGroup was made."""
        return shown_name(self.key, self.wanted.values())


JobHook = Callable[[JobRun], None]


@dataclass(slots=True)
class JobHooks:
    """Functions to call when a job arrives, when its gang runs (again), is broken up, and ends."""

    arrived: list[JobHook] = field(default_factory=list)
    started: list[JobHook] = field(default_factory=list)
    broken: list[JobHook] = field(default_factory=list)
    ended: list[JobHook] = field(default_factory=list)


class Controller:
    """Runs jobs on a simulated cluster.

    ``keep_until_completed``: the PodGroup and succeeded pods of a finished job stay until the scheduler has written the
    phase Completed; otherwise they are removed at once (Volcano's ``ttlSecondsAfterFinished: 0``).
    """

    def __init__(self, cluster: SimCluster, *, keep_until_completed: bool = False) -> None:
        self.cluster = cluster
        self.engine = cluster.engine
        self.keep_until_completed = keep_until_completed
        self.hooks = JobHooks()
        self.start = cluster.engine.now
        self.live: dict[str, JobRun] = {}  # arrived and not ended, by PodGroup key, oldest first
        self.to_come: dict[str, Work] = {}  # not arrived, by PodGroup key
        self.submitted_count = 0
        self.arrived_count = 0
        self.ended_count = 0
        self.problems: list[str] = []
        self._keys: set[str] = set()
        cluster.start_together = self._start_together
        cluster.hooks.started.append(self._pods_started)
        cluster.hooks.finished.append(self._pods_finished)
        cluster.hooks.left.append(self._pods_left)
        cluster.hooks.removed.append(self._pods_removed)
        cluster.hooks.group_written.append(self._group_written)

    # -- work comes ----------------------------------------------------------------------------------------------------

    def submit(self, work: Work) -> None:
        """Schedule the arrival of work.

        Raises: ValueError if work with this namespace and name exists.
        """
        self.submit_all((work,))

    def submit_all(self, works: Iterable[Work]) -> None:
        """Schedule the arrival of all work, or of none if it is invalid.

        Raises: ValueError if two have the same namespace and name.
        """
        coming: dict[str, Work] = {}
        for work in works:
            key = work.key
            if key in self._keys or key in coming:
                raise ValueError(f"job {key} exists already: names must be unique")
            coming[key] = work
        due = ((self.start + work.arrival_s, work) for work in coming.values())
        self.engine.at_all(due, self._arrive, Priority.ARRIVE)
        self._keys.update(coming)
        self.to_come.update(coming)
        self.submitted_count += len(coming)

    def _arrive(self, work: Work) -> None:
        del self.to_come[work.key]
        group, specs = work.outline(self.engine.now)
        kinds = counted(specs)
        run = JobRun(
            key=group.key,
            queue=group.queue,
            size=sum(count for _, count in kinds),
            min_available=max(group.min_member, 1),
            duration_s=work.duration_s,
            submitted=self.engine.now,
            asks=asked_by(kinds),
            kinds=kinds,
            recreates=work.recreates,
            coming=work,
        )
        self.live[run.key] = run
        self.arrived_count += 1
        for hook in self.hooks.arrived:
            hook(run)
        self.cluster.put(group)
        if not work.waits_for_admission or _is_admitted(group):
            self._make_pods(run, work)

    def _make_pods(self, run: JobRun, work: Work) -> None:
        run.coming = None
        made: dict[str, Pod] = {}
        there = self.cluster.pods
        for pod in work.pods_at(self.engine.now):
            key = pod.key
            if key in there or key in made:
                self.problems.append(f"job {run.key}: pod {key} exists already and was not created")
            else:
                made[key] = pod
        run.wanted.update(made)
        self.cluster.add_pods(made)

    # -- pods start and end --------------------------------------------------------------------------------------------

    def _run_of(self, pods: EqualPods) -> tuple[JobRun | None, list[str]]:
        """Return the job of pods, and the keys of those that it still needs; None if it needs none."""
        run = self.live.get(one_of(pods).group_key)
        wanted = [key for key in pods if key in run.wanted] if run is not None else []
        return run if wanted else None, wanted

    def _start_together(self, pods: EqualPods) -> int:
        """Return how many start together: all, but the pod that completes the gang starts alone, because its effects
        come next."""
        run, wanted = self._run_of(pods)
        if run is None or run.whole:
            return len(pods)
        if len(wanted) < len(pods):
            return 1
        before = run.min_available - run.succeeded - len(run.running) - 1
        return max(before, 1)

    def _pods_started(self, pods: EqualPods) -> None:
        run, wanted = self._run_of(pods)
        if run is None:
            return
        run.running.update(dict.fromkeys(wanted, self.engine.now))
        if run.whole or len(run.running) + run.succeeded < run.min_available:
            return
        run.whole = True
        run.since = self.engine.now
        if run.started is None:
            run.started = run.since
        if math.isfinite(run.duration_s):
            run.end = self.engine.after(run.duration_s, self._finish, run)
        for hook in self.hooks.started:
            hook(run)

    def _pods_finished(self, pods: EqualPods) -> None:
        """Count pods that succeeded before the end of their job."""
        run, wanted = self._run_of(pods)
        if run is None:
            return
        run.succeeded += len(wanted)
        if run.succeeded == run.size:
            self._finish(run)

    def _pods_left(self, pods: EqualPods) -> None:
        run, wanted = self._run_of(pods)
        for key in wanted:
            if run is not None and key in run.running:
                self._runs_no_more(run, key, succeeded=pods[key].phase == "Succeeded")

    def _runs_no_more(self, run: JobRun, key: str, *, succeeded: bool) -> None:
        began = run.running.pop(key)
        still = len(run.running) + run.succeeded + succeeded
        if not run.whole or still >= run.min_available or run.ended is not None:
            return
        run.whole = False
        run.restarts += 1
        self._lose(run, {key: began, **run.running})
        if run.end is not None:
            self.engine.cancel(run.end)
            run.end = None
        for hook in self.hooks.broken:
            hook(run)

    def _lose(self, run: JobRun, running: Mapping[str, float]) -> None:
        """Record the work that the gang has lost since it last started. It must be done again."""
        now = self.engine.now
        run.lost_s += now - run.since
        for key, began in running.items():
            for resource, amount in amounts_of(run.wanted[key].spec.request):
                run.lost[resource] = run.lost.get(resource, 0.0) + amount * (now - max(began, run.since))

    def _pods_removed(self, pods: EqualPods) -> None:
        """Create pods again, with new UIDs, that were deleted although the job still needs them."""
        run, wanted = self._run_of(pods)
        if run is None or one_of(pods).phase == "Succeeded" or not run.recreates:
            return
        for key in wanted:
            self._make_again(run, run.wanted[key])

    def _make_again(self, run: JobRun, wanted: Pod) -> None:
        run.remade += 1
        self.cluster.put(wanted.made_again(f"{wanted.uid}~{run.remade}", self.engine.now))

    # -- the end -------------------------------------------------------------------------------------------------------

    def _finish(self, run: JobRun) -> None:
        """End a job. Pods that never started are removed with it."""
        if run.ended is not None:
            return
        run.ended = self.engine.now
        self.ended_count += 1
        if run.end is not None:
            self.engine.cancel(run.end)
        for hook in self.hooks.ended:
            hook(run)
        if not self.keep_until_completed:
            self._clear(run)
            return
        run.recreates = False
        pods = {key: pod for key in run.wanted if (pod := self.cluster.pods.get(key)) is not None}
        self.cluster.finish(pods)
        self.cluster.remove_pods([key for key, pod in pods.items() if pod.phase not in ("Running", "Succeeded")])

    def _group_written(self, group: PodGroup) -> None:
        run = self.live.get(group.key)
        if run is not None and run.coming is not None and _is_admitted(group):
            self.engine.at(self.engine.now, self._admitted, run)
        if run is not None and run.ended is not None and group.status.phase == PodGroupPhase.COMPLETED:
            self.engine.at(self.engine.now, self._clear, run)

    def _admitted(self, run: JobRun) -> None:
        """Create the pods of an admitted PodGroup."""
        if run.coming is not None:
            self._make_pods(run, run.coming)

    def _clear(self, run: JobRun) -> None:
        if self.live.pop(run.key, None) is None:
            return
        self.cluster.remove_pods(run.wanted)
        self.cluster.delete(PodGroup, run.key)
        run.wanted, run.running = {}, {}


def _is_admitted(group: PodGroup) -> bool:
    return group.status.phase not in ("", PodGroupPhase.PENDING)
