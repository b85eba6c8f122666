"""All jobs that wait: grouped by the code of what is nearest in their way, and the one change that lets most start.

The codes are those of the cycle itself, and not checked job by job; the change is: it was run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from pumice.answers.codes import Code
from pumice.answers.difference import waiting_in
from pumice.answers.lifts import Lift, lift
from pumice.answers.requests import waiting_amounts
from pumice.answers.world import Draft, Trial, Trials, World, new_name, waits_for_pods
from pumice.columns.jobs import PENDING_PHASE
from pumice.model.devices.gpu import GPU_RESOURCE
from pumice.model.resources import CPU
from pumice.reasons.words import counted

#: Cycles that are run to find the change that frees most, and queues that are looked at.
TRIALS_MAX, _QUEUES_MAX = 16, 4
#: By how much the cluster is made larger in one of the changes.
_MORE_NODES = 0.1


class WaitingGroup(Struct, frozen=True):
    """Jobs that wait for the same kind of reason. ``gpus`` and ``cores``: what their waiting pods ask for. ``example``:
    what is said of the first of them."""

    code: Code
    jobs: tuple[str, ...]
    gpus: float
    cores: float
    example: str


class Relief(Struct, frozen=True):
    """One change, the number of jobs that start only with it, and the GPUs and cores that these ask for."""

    text: str
    jobs: int
    gpus: float
    cores: float


class Overview(Struct, frozen=True):
    """All jobs that wait. ``relief``: the change that lets most start, None where none of those tried lets any."""

    groups: tuple[WaitingGroup, ...]
    relief: Relief | None
    trials: int


def overview(trials: Trials) -> Overview:
    """Return the jobs of a world that wait, the largest group first, and what would help most of them."""
    asks = _asked(trials)
    members: dict[Code, list[tuple[str, str]]] = {}
    for job, code, text in waiting_in(trials.base, trials.world.outside):
        members.setdefault(code, []).append((job, text))
    groups = []
    for code, each in members.items():
        gpus, cores = (sum(asks.get(job, (0.0, 0.0))[i] for job, _ in each) for i in range(2))
        groups.append(WaitingGroup(code, tuple(job for job, _ in each), gpus, cores, each[0][1]))
    groups.sort(key=lambda group: (-group.gpus, -group.cores, -len(group.jobs), group.code))
    reliefs = [_tried(trials, text, draft, asks) for text, draft in _changes(trials, groups)]
    best = max(reliefs, key=lambda relief: (relief.gpus, relief.cores, relief.jobs), default=None)
    return Overview(tuple(groups), best if best is not None and best.jobs else None, len(reliefs))


def _asked(trials: Trials) -> dict[str, tuple[float, float]]:
    """Return the GPUs and the cores that the waiting pods of each job ask for."""
    trial, world = trials.base, trials.world
    tables = trial.outcome.tables
    names, amounts = tables.axis.names, waiting_amounts(tables) / 1000.0
    columns = [names.index(name) if name in names else None for name in (GPU_RESOURCE, CPU)]

    def of(row: int, column: int | None) -> float:
        return 0.0 if column is None else float(amounts[row, column])

    rows = trial.outcome.live_jobs.tolist()
    found = {tables.jobs.uids[row]: (of(row, columns[0]), of(row, columns[1])) for row in rows}
    for job in world.outside:
        asks = [pod.spec.request for pod in world.pods_of.get(job, ()) if not pod.node_name]
        found[job] = sum(each.get(GPU_RESOURCE) for each in asks) / 1000, sum(each.milli_cpu for each in asks) / 1000
    return found


def _tried(trials: Trials, text: str, draft: Draft, asks: dict[str, tuple[float, float]]) -> Relief:
    before, after = (_beginning(trial, trials.world) for trial in (trials.base, trials.run(draft)))
    new = [job for job in after if job not in before]
    # What a change takes from other jobs counts against it.
    gone = [job for job in before if job not in after]
    gpus, cores = (
        sum(asks.get(job, (0.0, 0.0))[i] for job in new) - sum(asks.get(job, (0.0, 0.0))[i] for job in gone)
        for i in range(2)
    )
    return Relief(text, len(new) - len(gone), gpus, cores)


def _beginning(trial: Trial, world: World) -> set[str]:
    """Return the jobs whose pods get a node, and those that are admitted so that their pods are created."""
    jobs = trial.outcome.tables.jobs
    rows = trial.outcome.live_jobs
    admitted = [jobs.uids[row] for row in rows[jobs.phase[rows] != PENDING_PHASE].tolist()]
    return {job for job in admitted if waits_for_pods(world, job)} | trial.placed.keys()


def _changes(trials: Trials, groups: list[WaitingGroup]) -> Iterator[tuple[str, Draft]]:
    """Yield changes that may help jobs of the groups."""
    world, codes = trials.world, {group.code: group for group in groups}
    for code, text in _QUEUE_CHANGES.items():
        if code not in codes:
            continue
        by_queue: dict[str, str] = {}
        for job in codes[code].jobs:
            group = world.groups.get(job)
            by_queue.setdefault(group.queue if group is not None else "", job)
        for queue, job in list(by_queue.items())[:_QUEUES_MAX]:
            yield text(queue), _lifted(trials, job, code)
    if Code.ADMISSION in codes:
        yield (
            "no limit on what is promised (plugin overcommit)",
            _lifted(trials, codes[Code.ADMISSION].jobs[0], Code.ADMISSION),
        )
    if world.nodes and codes.keys() & {Code.ROOM, Code.DOMAIN, Code.TAINT, Code.PORT, Code.SPREAD, Code.AFFINITY}:
        yield _larger(trials)
    closed = [node for node in world.nodes if (node.unschedulable or node.taints) and not node.unparsable]
    if closed and Code.TAINT in codes:
        draft = Draft(world)
        for node in closed:
            draft.put(replace(node, unschedulable=False, taints=()))
        yield f"{counted(len(closed), 'node')} without taints and cordons", draft


def _larger(trials: Trials) -> tuple[str, Draft]:
    world, draft = trials.world, Draft(trials.world)
    like = max(world.nodes, key=lambda node: (node.allocatable.get(GPU_RESOURCE), node.allocatable.milli_cpu))
    count = max(1, round(_MORE_NODES * len(world.nodes)))
    stem = new_name(world, like.name)
    for number in range(count):
        name = f"{stem}-{number}"
        labels = {**like.labels, "kubernetes.io/hostname": name}
        draft.put(replace(like, name=name, uid=name, labels=labels, unschedulable=False, taints=()))
    return f"{counted(count, 'more node')} like {like.name}", draft


def _lifted(trials: Trials, job: str, code: Code) -> Draft:
    draft = Draft(trials.world)
    lift(draft, job, Lift(code))
    return draft


_QUEUE_CHANGES: dict[Code, Callable[[str], str]] = {
    Code.QUEUE_CLOSED: lambda queue: f"queue {queue} open",
    Code.QUEUE_LIMIT: lambda queue: f"no limit for queue {queue} and those above it",
    Code.QUEUE_SHARE: lambda queue: f"queue {queue} deserves all there is",
    Code.GUARANTEE: lambda queue: f"no guarantee of others against queue {queue}",
}
