"""What one cycle decided, as text: a block a job, what was not placed first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pumice.answers.codes import code_of
from pumice.cli.console import Column, Console, Table
from pumice.cli.output import console
from pumice.model.node import Node
from pumice.model.plain_words import first_names
from pumice.model.pod import Pod
from pumice.model.workloads.bare_pods import shown_name
from pumice.model.workloads.podgroup import PodGroup
from pumice.reasons.words import counted
from pumice.runtime.printing import escaped
from pumice.runtime.telemetry.plugin_faults import by_culprit

if TYPE_CHECKING:
    from pumice.model.events import Object
    from pumice.runtime.one_cycle import Answer

BLOCKS_SHOWN = 100
NAMES_SHOWN = 8
_WOULD_FIT = re.compile(r"Pod \S+ can possibly be assigned to (\S+), (once .*)", re.DOTALL)


@dataclass(slots=True)
class _Job:
    """The pods of one PodGroup after a cycle, by what was decided about them; keys in order of input. ``shown``: the
    name of the job for users."""

    key: str
    group: PodGroup | None
    shown: str
    pods: list[str] = field(default_factory=list)
    bound: dict[str, str] = field(default_factory=dict)
    pipelined: dict[str, str] = field(default_factory=dict)
    evicted: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)
    devices: dict[str, str] = field(default_factory=dict)


def print_answer(
    answer: Answer, objects: Sequence[Object], conf: str, *, jobs: Sequence[str] = (), queues: Sequence[str] = ()
) -> None:
    """Print the answer. ``jobs``, ``queues``: print only these, all if none is named."""
    out = console()
    everyone, hints = _jobs(answer, objects), answer.hints
    nodes = sum(isinstance(obj, Node) for obj in objects)
    counts = (
        f"{len(answer.binds):,} bound, {len(answer.pipelined):,} pipelined, {len(answer.evicts):,} evicted, "
        f"{len(answer.unscheduled):,} not scheduled"
    )
    out.print(f"{counted(nodes, 'node')}, {counted(len(everyone), 'job')}: {counts}")
    out.print(f"policy {escaped(conf)}", style="dim")
    # A job whose pods all have a node, be it one that others leave, has no reason to wait that a user could act on.
    unplaced = {job.key for job in everyone if job.waiting}
    waiting = Counter(code_of(found[0]).value for key, found in answer.blockers.items() if key in unplaced)
    if waiting:
        reasons = ", ".join(f"{count:,} {code}" for code, count in waiting.most_common())
        out.print(f"jobs that wait by reason: {reasons}")
    for _, text in by_culprit(answer.outcome.faults):
        out.print(f"a plugin failed: {text}", style="red")
    shown = [job for job in everyone if _is_wanted(job, jobs, queues)]
    touched = [job for job in shown if job.waiting or job.pipelined or job.evicted or job.bound]
    touched.sort(key=lambda job: not job.waiting)
    for job in touched[:BLOCKS_SHOWN]:
        _block(out, job, answer, hints.get(job.key, ""))
    if len(touched) > BLOCKS_SHOWN:
        out.print(f"\nand {counted(len(touched) - BLOCKS_SHOWN, 'more job')}; --json lists all")
    idle = len(shown) - len(touched)
    if idle:
        out.print(f"\n{counted(idle, 'job')} with no pod to place")
    out.print(f"\ndigest {answer.digest}")


def _is_wanted(job: _Job, jobs: Sequence[str], queues: Sequence[str]) -> bool:
    names = {each for key in (job.key, job.shown) for each in (key, key.partition("/")[2])}
    by_name = not jobs or not names.isdisjoint(jobs)
    return by_name and (not queues or (job.group is not None and job.group.queue in queues))


def _jobs(answer: Answer, objects: Sequence[Object]) -> list[_Job]:
    jobs = {obj.key: _Job(obj.key, obj, obj.key) for obj in objects if isinstance(obj, PodGroup)}
    binds, devices = answer.binds, answer.devices
    evicted = {evict.pod: f"{evict.node}: {evict.reason}" for evict in answer.evicts}
    for pod in objects:
        if not isinstance(pod, Pod):
            continue
        key = pod.group_key or f"{pod.namespace}/(no PodGroup)"
        job = jobs.setdefault(key, _Job(key, None, key))
        job.pods.append(pod.key)
        job.shown = shown_name(key, [pod]) if len(job.pods) == 1 else job.shown
        tables = (
            (job.bound, binds),
            (job.pipelined, answer.pipelined),
            (job.evicted, evicted),
            (job.waiting, answer.unscheduled),
        )
        for table, source in tables:
            if pod.key in source:
                table[pod.name] = source[pod.key]
        named = {"gpu_groups": "shared GPU "}
        given = [f"{named.get(of, '')}{each}" for of, several in devices.get(pod.key, {}).items() for each in several]
        if given:
            job.devices[pod.name] = first_names(given, NAMES_SHOWN)
    return list(jobs.values())


def _block(out: Console, job: _Job, answer: Answer, hint: str) -> None:
    head = [(escaped(job.shown), "bold")]
    if job.group is not None:
        phase = _phase(job, job.group, answer)
        # What cannot be read counts as the largest number, which is in no file.
        least = "unreadable" if any("minMember" in each for each in job.group.unparsable) else job.group.min_member
        facts = f"queue {job.group.queue}, {counted(len(job.pods), 'pod')}, minMember {least}, {phase}"
        head.append((f"  {escaped(facts)}", "dim"))
    out.print()
    out.print_parts(*head)
    lines = Table(Column(wraps=False), Column(right=True, wraps=False), Column(), gap=1)
    for what, style, placed in (("bound", "green", job.bound), ("pipelined", "yellow", job.pipelined)):
        if placed:
            lines.add((what, style), f"{len(placed):,}", escaped(_by_node(placed)))
    for given, pods in _by_reason(job.devices):
        lines.add(("devices", "green"), f"{len(pods):,}", escaped(f"{first_names(pods, NAMES_SHOWN)}: {given}"))
    for pod, where in job.evicted.items():
        lines.add(("evicted", "red"), "1", escaped(f"{pod} from {where}"))
    for why, pods in _by_reason(job.waiting):
        lines.add(("waiting", "red"), f"{len(pods):,}", escaped(f"{first_names(pods, NAMES_SHOWN)}: {why}"))
    if hint and (job.waiting or job.pipelined):
        lines.add(("hint", "cyan"), "", escaped(hint))
    for condition in answer.statuses[job.key].conditions if job.group is not None else ():
        if condition.type == "Unschedulable" and condition.status == "True" and job.waiting:
            said = f"{condition.type}, {condition.reason}: {condition.message}"
            lines.add(("condition", "dim"), "", (escaped(said), "dim"))
    out.print_table(lines)


def _phase(job: _Job, group: PodGroup, answer: Answer) -> str:
    """Return the phase of a PodGroup. Groups of KAI have none, so for them a summary of what was decided about their
    pods."""
    if group.gang is None or not job.bound:
        return answer.statuses[job.key].phase
    return "Partly bound" if job.waiting or job.pipelined else "Bound"


def _by_node(placed: Mapping[str, str]) -> str:
    """Return pods with their nodes if they are few, else nodes with numbers of pods."""
    if len(placed) <= NAMES_SHOWN:
        return ", ".join(f"{pod} → {node}" for pod, node in placed.items())
    nodes = Counter(placed.values())
    shown = ", ".join(f"{node} ×{count}" for node, count in list(nodes.items())[:NAMES_SHOWN])
    return shown + (f" and {len(nodes) - NAMES_SHOWN} more nodes" if len(nodes) > NAMES_SHOWN else "")


def _by_reason(waiting: Mapping[str, str]) -> Iterable[tuple[str, list[str]]]:
    """Return pods that wait, by reason. Pods that wait for the rest of their gang have the node that they would get."""
    found: dict[str, list[str]] = {}
    for pod, why in waiting.items():
        if fits := _WOULD_FIT.fullmatch(why):
            found.setdefault(f"would fit, {fits[2]}", []).append(f"{pod} → {fits[1]}")
        else:
            found.setdefault(why, []).append(pod)
    return found.items()
