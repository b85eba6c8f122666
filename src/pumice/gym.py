"""A gymnasium environment: in each cycle an agent says which waiting job goes first.

    import pumice.gym

    env = pumice.gym.JobOrder("examples/demo", until="2h")
    observation, info = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step(0)   # 0 is the oldest job

The simulation runs in a thread of its own, and one of both always waits for the other, so a seed and actions give the
same run, byte for byte. Needs the extra ``gym``.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import numpy.typing as npt

from pumice.api import CPU, F64, JobRows, Session, points
from pumice.framework.plugin.plugin import plugin
from pumice.library.cluster import Cluster, Span, load
from pumice.library.policies import PolicyLike, PolicySource, policy
from pumice.library.run import Run

try:
    import gymnasium
except ImportError as error:
    raise ImportError("pumice.gym needs a package that is not installed: pip install 'pumice[gym]'") from error

#: Columns of an observation: of each job, and in the last row of the cluster.
FEATURES = ("waited_s", "pods", "cores", "gpus", "there")
CLUSTER = ("waiting_jobs", "used_cores_share", "used_gpus_share", "hour", "there")
_HOUR_S = 3600.0
_HIGH = 1e9  # above a time in seconds and an amount of any cluster
_GPU = "nvidia.com/gpu"
Observation = npt.NDArray[np.float32]


class JobOrder(gymnasium.Env[Observation, np.int64]):
    """An episode is a simulation. A step is a cycle with at least one waiting job.

    Observation, shape (``jobs_max`` + 1, 5): a row for each of the oldest waiting jobs (``FEATURES``: seconds waited,
    pods, cores and GPUs that its minimum asks for, 1), zeros where there are fewer, and a last row for the cluster
    (``CLUSTER``: waiting jobs, share of cores and of GPUs in use, hours from the start, 1). Action: the row of the job
    that goes first; a row without a job counts as 0, the oldest. All other jobs follow in the order of the policy.
    Reward: less the hours that all jobs together waited since the last step, so that the return of an episode is less
    the total wait in job hours. ``truncated`` is never set; ``info`` has the time and, at the end, the ``run``.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  # gymnasium declares it so

    def __init__(
        self,
        cluster: Cluster | str | Path,
        base: PolicyLike = "default",
        *,
        jobs_max: int = 16,
        until: Span | None = None,
        shake: Span | None = "60s",
        nodes: str | None = None,
    ) -> None:
        """``base``: the policy for all else. ``shake``: each episode moves arrivals at random, by its seed."""
        self.cluster = cluster if isinstance(cluster, Cluster) else load(cluster)
        self.base, self.jobs_max = base, jobs_max
        self._arguments: dict[str, Any] = {"until": until, "shake": shake, "nodes": nodes, "events": False}
        shape = (jobs_max + 1, len(FEATURES))
        self.observation_space = gymnasium.spaces.Box(0.0, _HIGH, shape, np.float32)
        self.action_space = gymnasium.spaces.Discrete(jobs_max)
        self._episode: _Episode | None = None

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode. Without a seed, one is drawn from the generator of the environment."""
        super().reset(seed=seed)
        self.close()
        drawn = seed if seed is not None else int(self.np_random.integers(2**31))
        self._episode = _Episode(self.cluster, self.base, self.jobs_max, {**self._arguments, "seed": drawn})
        observation, _, _, info = self._episode.next()
        return observation, info

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Let a job go first in this cycle, and go on to the next one with waiting jobs."""
        assert self._episode is not None, "reset comes before step"
        self._episode.answer(int(action))
        observation, reward, is_over, info = self._episode.next()
        return observation, reward, is_over, False, info

    def close(self) -> None:
        """End the episode, if one is under way."""
        if self._episode is not None:
            self._episode.close()
            self._episode = None


class _Episode:
    """A simulation in a thread, which asks for an action and waits for it."""

    def __init__(self, cluster: Cluster, base: PolicyLike, jobs_max: int, arguments: Mapping[str, Any]) -> None:
        self.jobs_max = jobs_max
        self.is_closed = False
        self._start = cluster.inputs.newest
        self._before = self._start
        self._waited = self._counted = 0.0  # seconds since the last step, and before it
        self._said: Queue[tuple[Observation, float, bool, dict[str, Any]] | BaseException] = Queue()
        self._actions: Queue[int] = Queue()
        chosen = _with_agent(base, self)
        self._thread = threading.Thread(target=self._run, args=(cluster, chosen, arguments), daemon=True)
        self._thread.start()

    def next(self) -> tuple[Observation, float, bool, dict[str, Any]]:
        found = self._said.get()
        if isinstance(found, BaseException):
            raise found
        return found

    def answer(self, action: int) -> None:
        self._actions.put(action)

    def close(self) -> None:
        self.is_closed = True
        self._actions.put(0)
        self._thread.join()

    def _run(self, cluster: Cluster, chosen: PolicySource, arguments: Mapping[str, Any]) -> None:
        try:
            run: Run = cluster.simulate(chosen, progress=self._progress, **arguments)
        except BaseException as error:  # the thread that waits for a step raises it
            self._said.put(error)
            return
        history = run.run.history
        ends = ((each.submitted, each.started if each.started is not None else each.ended) for each in history.jobs)
        # The last stretch has no cycle at its end.
        self._waited = sum((history.now if end is None else end) - came for came, end in ends) - self._counted
        nothing = np.zeros((self.jobs_max + 1, len(FEATURES)), dtype=np.float32)
        self._said.put((nothing, self._reward(), True, {"run": run}))

    def _progress(self, _: object) -> None:
        if self.is_closed:
            raise KeyboardInterrupt  # a simulation ends with it as with Ctrl-C

    # -- called by the plugin, in the thread of the simulation ---------------------------------------------------------

    def first(self, ssn: Session) -> int:
        """Return the place of the job that goes first among ``ssn.jobs``, -1 if none waits."""
        jobs, now = ssn.jobs, ssn.now
        creation, groups = jobs.creation, jobs.groups
        waiting = np.flatnonzero(~jobs.ready).tolist()
        # Cycles follow all changes, so what waits now has waited since the last cycle, or since it came.
        self._waited += sum(now - max(self._before, creation[place]) for place in waiting)
        self._before = now
        if not waiting or self.is_closed:
            return -1
        oldest = sorted(waiting, key=lambda place: (creation[place], groups[place].key))
        self._said.put((self._observed(ssn, oldest), self._reward(), False, {"now_s": now - self._start}))
        action = self._actions.get()
        return oldest[action] if action < min(len(oldest), self.jobs_max) else oldest[0]

    def _observed(self, ssn: Session, oldest: list[int]) -> Observation:
        found = np.zeros((self.jobs_max + 1, len(FEATURES)), dtype=np.float32)
        groups = ssn.jobs.groups
        for row, place in enumerate(oldest[: self.jobs_max]):
            group = groups[place]
            asked = group.min_resources
            cores, gpus = (asked.milli_cpu / 1000, asked.get(_GPU) / 1000) if asked is not None else (0.0, 0.0)
            found[row] = (ssn.now - group.creation, group.min_member, cores, gpus, 1.0)
        used = ssn.running.req.sum(axis=0) / np.maximum(ssn.total, 1.0)
        gpu = ssn.resource(_GPU)
        hour = (ssn.now - self._start) / _HOUR_S
        found[-1] = (len(oldest), used[CPU], 0.0 if gpu is None else used[gpu], hour, 1.0)
        return found

    def _reward(self) -> float:
        """Return less the job hours waited since it was last asked."""
        waited, self._waited = self._waited, 0.0
        self._counted += waited
        return -float(waited) / _HOUR_S


def _with_agent(base: PolicyLike, episode: _Episode) -> PolicySource:
    """Return a policy in which the agent orders jobs before all other plugins do."""

    @plugin("agent")
    class Agent:
        """Ask which job goes first as the session opens; a column, since the answer rests on nothing in the cluster."""

        def __init__(self, ssn: Session) -> None:
            order = np.ones(len(ssn.jobs), dtype=np.float64)
            first = episode.first(ssn)
            if first >= 0:
                order[first] = 0.0
            self.order = ssn.column("agent.order", "job", values=ssn.jobs.scatter(order))

        @points.job_order
        def job_order(self, jobs: JobRows) -> F64:
            order: F64 = self.order.array[jobs.rows]
            return order

    parts = [base] if isinstance(base, str | Path) or callable(base) else base
    if isinstance(parts, PolicySource):
        return policy(parts.text, *parts.functions, Agent)
    return policy(*(parts or ["default"]), Agent)
