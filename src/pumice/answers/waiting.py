"""How long a job waits if nothing is changed: until enough of the running jobs have ended, by their estimates."""

from __future__ import annotations

from msgspec import Struct

from pumice.answers.steps.nodes import end_job
from pumice.answers.ways import least_count
from pumice.answers.world import Draft, Trials, World, starts
from pumice.model.pod import Pod
from pumice.model.workloads.estimate import expected_end_s, job_estimate_s

#: Cycles that are run for the answer at most.
TRIALS_MAX = 24


class Wait(Struct, frozen=True):
    """When a job starts if nothing is changed and no job comes. ``seconds``: from now, None where that is not known.
    ``ends``: the jobs that have ended by then, in the order of their ends. ``running``: how many jobs run, and how many
    of them are ``without_estimate``, so that nothing says when they end."""

    seconds: float | None
    ends: tuple[str, ...]
    running: int
    without_estimate: int


def wait_of(trials: Trials, job: str) -> Wait:
    """Return how long a job waits, found by cycles without the jobs that end first."""
    running, ends = _running(trials.world, job), []
    for key, pods in running.items():
        estimate_s = job_estimate_s(trials.world.groups.get(key), pods)
        if estimate_s:
            began = min(pod.start_time or pod.creation or trials.world.now for pod in pods)
            ends.append((expected_end_s(began, estimate_s, trials.world.now), key))
    ends.sort()
    unknown = Wait(None, (), len(running), len(running) - len(ends))

    def starts_after(count: int) -> bool:
        if trials.is_cut:
            return False
        draft = Draft(trials.world)
        for _, key in ends[:count]:
            end_job(draft, key)
        return starts(trials.run(draft), trials.world, job)

    if not ends or not starts_after(len(ends)):
        return unknown
    count = least_count(len(ends), starts_after)
    return Wait(
        ends[count - 1][0] - trials.world.now,
        tuple(key for _, key in ends[:count]),
        len(running),
        len(running) - len(ends),
    )


def _running(world: World, job: str) -> dict[str, list[Pod]]:
    """Return the pods with a node of each job but one."""
    found = {key: [pod for pod in pods if pod.node_name] for key, pods in world.pods_of.items() if key != job}
    return {key: pods for key, pods in found.items() if pods}
