"""Pods and jobs after one cycle."""

from __future__ import annotations

from pumice.library.column import count, text
from pumice.model.decisions import Evict
from pumice.model.pod import ENDED, Pod
from pumice.model.workloads.podgroup import PodGroup
from pumice.runtime.one_cycle import Answer

CYCLE_POD_COLUMNS = (
    text("pod", "namespace/name"),
    text("job", "its PodGroup; missing if it names none"),
    text("state", "bound by this cycle, pipelined (to a node that others are leaving), evicted, waiting, or placed"),
    text("node", "its node; missing while it waits"),
    text("why", "why it waits, or was evicted"),
)
CYCLE_JOB_COLUMNS = (
    text("job", "PodGroup, namespace/name"),
    text("queue", "its queue"),
    count("minimum", "pods", "how many of its pods must be placed together"),
    count("pods", "pods", "pods that exist and have not ended"),
    count("bound", "pods", "pods bound by this cycle"),
    count("pipelined", "pods", "pods with a reserved node"),
    count("evicted", "pods", "pods evicted by this cycle"),
    count("waiting", "pods", "pods without a node"),
    text("phase", "phase of the PodGroup after the cycle"),
    text("hint", "what would help it; missing if that is not known"),
)

DECISION_COLUMNS = (
    text("pod", "namespace/name"),
    text("decision", "bind, evict, or reserve (a node that others are leaving)"),
    text("node", "where it is bound, evicted or reserved"),
    text("job", "its PodGroup; missing if it names none"),
    text("why", "why it is evicted; missing for others"),
)


def decision_rows(answer: Answer) -> list[tuple[object, ...]]:
    """Return a row for each decision in order, and then for each reservation."""
    decided = [
        (each.pod, "evict", each.node, each.job or None, each.reason)
        if isinstance(each, Evict)
        else (each.pod, "bind", each.node, each.job or None, None)
        for each in answer.decisions
    ]
    jobs = {pod.key: pod.group_key or None for pod in answer.objects if isinstance(pod, Pod)}
    reserved = [(pod, "reserve", node, jobs.get(pod), None) for pod, node in answer.pipelined.items()]
    return [*decided, *reserved]


def cycle_pod_rows(answer: Answer) -> list[tuple[object, ...]]:
    """Return a row for each pod that has not ended, in order of the input."""
    binds, evicts = answer.binds, {each.pod: each for each in answer.evicts}
    return [
        (pod.key, pod.group_key or None, *_state(pod, answer, binds, evicts))
        for pod in answer.objects
        if isinstance(pod, Pod) and pod.phase not in ENDED
    ]


def _state(
    pod: Pod, answer: Answer, binds: dict[str, str], evicts: dict[str, Evict]
) -> tuple[str, str | None, str | None]:
    if pod.key in binds:
        return "bound", binds[pod.key], None
    if pod.key in answer.pipelined:
        return "pipelined", answer.pipelined[pod.key], None
    if pod.key in evicts:
        return "evicted", evicts[pod.key].node, evicts[pod.key].reason
    if pod.node_name:
        return "placed", pod.node_name, None
    return "waiting", None, answer.unscheduled.get(pod.key)


def cycle_job_rows(answer: Answer, pods: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Return a row for each PodGroup. ``pods``: the rows of ``cycle_pod_rows``."""
    states: dict[object, dict[object, int]] = {}
    for _, job, state, *_ in pods:
        of_job = states.setdefault(job, {})
        of_job[state] = of_job.get(state, 0) + 1
    hints = answer.hints
    rows: list[tuple[object, ...]] = []
    for group in answer.objects:
        if isinstance(group, PodGroup):
            counts = states.get(group.key, {})
            of_states = (counts.get(state, 0) for state in ("bound", "pipelined", "evicted", "waiting"))
            phase = answer.statuses[group.key].phase
            exist = sum(counts.values())
            rows.append((group.key, group.queue, group.min_member, exist, *of_states, phase, hints.get(group.key)))
    return rows
