"""``observed`` of generated cases: everything a whole cycle of Volcano did, looked at after its session closed.

What differed between the runs of the reference is named in ``varies`` and left out of the recording; all the rest is
compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pumice.framework.cycle.outcome import Outcome
from pumice.model.decisions import PodNotice
from pumice.model.pod import Pod
from pumice.model.resources import Resource
from pumice.model.status import TaskStatus
from pumice.model.workloads.podgroup import PodGroupStatus
from tests import resource_algebra as algebra
from tests.conformance.runner.case import Raw
from tests.conformance.runner.differences import Differences
from tests.conformance.runner.result import NotYet
from tests.conformance.runner.session import Recorder

_ORIGIN = "Origin reason"
_VARYING = {"conditions": "podGroupConditions", "podCondition": "podConditions"}


class Observation:
    """One closed cycle in the words of the recordings."""

    def __init__(self, outcome: Outcome, recorder: Recorder) -> None:
        pods = {pod.key: pod for pod in outcome.tables.tasks.pods if pod is not None}
        self.notices = [notice for notice in outcome.notices() if is_news(pods[notice.pod], notice)]
        self.groups = dict(_groups(outcome))
        evicts = recorder.evicts
        self.fields: dict[str, Any] = {
            "binds": recorder.binds,
            "evicts": [evict.pod for evict in evicts],
            "evictReasons": sorted({evict.reason for evict in evicts}),
            "pipelined": outcome.pipelined,
            "podGroupPhases": {key: status.phase for key, status in self.groups.items()},
            "pending": _pending(outcome),
            "podGroupConditions": {key: _conditions(status) for key, status in self.groups.items()},
            "podConditions": {n.pod: f"{n.reason}: {n.message}" for n in self.notices},
            "nominated": _nominated(self.notices, pods),
            "queueAllocated": {name: algebra.describe(allocated) for name, allocated in outcome.queues.items()},
            "counts": _counts(outcome, recorder),
        }


def compare_observed(seen: Observation, observed: Raw, deterministic: str) -> Differences:
    """Every field of the recording. Raises: NotYet for one that is not known here."""
    unknown = observed.keys() - seen.fields.keys() - {"varies"}
    if unknown:
        raise NotYet(", ".join(f"observation {key}" for key in sorted(unknown)))
    varying = _varying(observed.get("varies") or ())
    found = Differences()
    for key, have in seen.fields.items():
        if key not in observed:
            continue
        want = _readable(key, observed[key])
        if isinstance(have, dict):
            have = {name: value for name, value in have.items() if (key, name) not in varying}
            if deterministic == "placement":
                have, want = _without_origin(have), _without_origin(want)
            found.mapping(key, want, have)
        else:
            found.multiset(key, want, have)
    return found


def is_news(pod: Pod, notice: PodNotice) -> bool:
    """Whether the notice says anything that the pod does not say already. Source: Volcano, pod condition updates."""
    present = next((c for c in pod.conditions if c.type == "PodScheduled"), None)
    same = present is not None and (present.status, present.reason, present.message) == (
        "False",
        notice.reason,
        notice.message,
    )
    return not same or (notice.nominated_node not in ("", pod.nominated_node))


def _nominated(notices: Iterable[PodNotice], pods: Mapping[str, Pod]) -> dict[str, str]:
    """The nodes that written statuses of pods name: a write that nominates none leaves what was there."""
    named = {notice.pod: notice.nominated_node or pods[notice.pod].nominated_node for notice in notices}
    return {key: node for key, node in named.items() if node}


def _groups(outcome: Outcome) -> Iterable[tuple[str, PodGroupStatus]]:
    """The status of every PodGroup of the session, as it is when everything was written."""
    written = {update.job: update.status for update in outcome.groups}
    for row in outcome.live_jobs.tolist():
        group = outcome.tables.jobs.groups[row]
        yield group.key, written.get(group.key, group.status)


def _conditions(status: PodGroupStatus) -> list[dict[str, str]]:
    return [{"type": c.type, "status": c.status, "reason": c.reason, "message": c.message} for c in status.conditions]


def _pending(outcome: Outcome) -> list[str]:
    tasks = outcome.tables.tasks
    rows = [r for job in outcome.live_jobs.tolist() for r in outcome.tables.jobs.tasks[job].tolist()]
    return [tasks.pods[r].key for r in rows if tasks.status[r] == TaskStatus.PENDING]


def _counts(outcome: Outcome, recorder: Recorder) -> dict[str, dict[str, int]]:
    tables = outcome.tables
    job_of = {pod.key: pod.group_key for pod in tables.tasks.pods if pod is not None}
    queue_of = {group.key: group.queue for group in tables.jobs.groups if group is not None}
    evicted = [evict.job for evict in recorder.evicts]
    return {
        "bindsPerJob": dict(Counter(job_of[pod] for pod in recorder.binds)),
        "evictsPerJob": dict(Counter(evicted)),
        "evictsPerQueue": dict(Counter(queue_of[job] for job in evicted)),
        "pipelinedPerJob": dict(Counter(job_of[pod] for pod in outcome.pipelined)),
    }


def _varying(names: Iterable[str]) -> set[tuple[str, str]]:
    """``conditions of ns/job`` -> (field, key)."""
    parts = [name.partition(" of ") for name in names]
    return {(_VARYING[what], key) for what, of, key in parts if of and what in _VARYING}


def _readable(key: str, recorded: Any) -> Any:
    """What is recorded, in the shape of ``Observation.fields``."""
    if key == "queueAllocated":
        return {name: algebra.describe(Resource.from_list(amounts or {})) for name, amounts in recorded.items()}
    return recorded


def _without_origin(values: Mapping[str, Any]) -> dict[str, Any]:
    """Texts up to the origin reason, which Volcano takes from any task of a map."""

    def cut(value: Any) -> Any:
        match value:
            case str():
                return value.partition(_ORIGIN)[0]
            case list():
                return [cut(each) for each in value]
            case dict():
                return {name: cut(each) for name, each in value.items()}
        return value

    return {name: cut(value) for name, value in values.items()}
