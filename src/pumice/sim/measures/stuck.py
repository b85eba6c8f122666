"""Find jobs that can never run on a cluster, and jobs that hold resources although they will not run.

A job like one that has run can run. Any other is tried alone, on the cluster as it was at the start, under the same
policy. A job that does not run there never will.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from pumice.model.resources import PODS
from pumice.model.status import PodGroupPhase
from pumice.sim.controller import Controller, JobRun
from pumice.sim.measures.node_usage import amounts_of, total_of

#: Nodes and pods that all trials may create together. A trial costs as much as it creates.
TRIED_OBJECTS_MAX = 200_000

#: Returns why a job would wait on an empty cluster, None for a job that runs there.
TryAlone = Callable[[str], str | None]


class Stuck(Struct, frozen=True):
    """A job that will not run.

    ``impossible``: why it would not run even alone, None if it would. ``promised``: what it was admitted with and does
    not hold. ``holds``: what its pods hold while its gang is incomplete. By resource, in units of ``Resource``.
    ``shown``: what people call it, "" for ``job``.
    """

    job: str
    queue: str
    pods: int
    impossible: str | None
    promised: Mapping[str, float]
    holds: Mapping[str, float]
    shown: str = ""


class StuckJobs:
    """Remembers which kinds of jobs have run, and finds what is stuck at the end."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._cluster = controller.cluster
        self._ran: set[object] = set()
        self._largest: dict[object, int] = {}  # equal pods, all of them wanted: where so many run, fewer can
        controller.hooks.started.append(self._started)

    def find(self, alone: TryAlone, *, nothing_moves: bool) -> tuple[Stuck, ...]:
        """Return stuck jobs in order of arrival. ``nothing_moves``: the simulation ended because nothing is left to
        happen, so a job that holds something and does not run holds it forever."""
        waiting = [run for run in self._controller.live.values() if run.ended is None and not run.whole]
        impossible = dict(self._impossible(waiting, alone))
        found = []
        for run in waiting:
            why = impossible.get(run.key)
            if why is None and not nothing_moves:
                continue
            holds, promised = self._held(run), self._promised(run)
            if why is not None or holds or promised:
                found.append(Stuck(run.key, run.queue, run.size, why, promised, holds, run.shown))
        return tuple(found)

    def _impossible(self, waiting: Iterable[JobRun], alone: TryAlone) -> Iterator[tuple[str, str]]:
        """Yield (job, why) for jobs that do not run alone. Only the first of each kind is tried, and only while trials
        are not too expensive. A job that is not tried counts as possible."""
        tried: dict[object, str | None] = {}
        left = TRIED_OBJECTS_MAX
        for run in waiting:
            kind = self._kind(run)
            if kind not in tried:
                cost = len(self._cluster.nodes) + run.size
                if self._has_run(run, kind) or cost > left:
                    continue
                left -= cost
                tried[kind] = alone(run.key)
            why = tried[kind]
            if why is not None:
                yield run.key, why

    def _started(self, run: JobRun) -> None:
        self._ran.add(self._kind(run))
        plain = self._plain(run)
        if plain is not None:
            self._largest[plain] = max(self._largest.get(plain, 0), run.size)

    def _has_run(self, run: JobRun, kind: object) -> bool:
        plain = self._plain(run)
        return kind in self._ran or (plain is not None and run.size <= self._largest.get(plain, 0))

    def _kind(self, run: JobRun) -> object:
        """Return a key that is equal for jobs that can all run if one can."""
        group = self._cluster.groups[run.key]
        topologies = (group.topology, repr(group.sub_groups)) if group.sub_groups else group.topology
        gone = () if run.recreates else tuple(key for key in run.wanted if key not in self._cluster.pods)
        return run.queue, run.kinds, group.min_member, tuple(group.min_task_member.items()), topologies, gone

    def _plain(self, run: JobRun) -> object | None:
        """Return a key for a gang of equal pods without further conditions, None for other jobs."""
        group = self._cluster.groups[run.key]
        if len(run.kinds) != 1 or group.topology is not None or group.sub_groups or group.min_member != run.size:
            return None
        return run.queue, run.kinds[0][0]

    def _held(self, run: JobRun) -> dict[str, float]:
        pods = (self._cluster.pods.get(key) for key in run.wanted)
        return _without_pods(total_of(pod for pod in pods if pod is not None and pod.node_name))

    def _promised(self, run: JobRun) -> dict[str, float]:
        group = self._cluster.groups.get(run.key)
        if group is None or group.min_resources is None or group.status.phase != PodGroupPhase.INQUEUE:
            return {}
        held = self._held(run)
        least = ((name, amount - held.get(name, 0.0)) for name, amount in amounts_of(group.min_resources))
        return _without_pods((name, amount) for name, amount in least if amount > 0)


def _without_pods(amounts: Iterable[tuple[str, float]]) -> dict[str, float]:
    return {name: amount for name, amount in amounts if name != PODS}
