"""Problems between the objects of a cluster: references to nothing, circles, numbers that are impossible.

Nothing is removed: an object with an invalid reference stays and is reported. Objects with the same problem are
reported together.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TypeVar

from pumice.algorithms.patterns import PatternError, compile_pattern
from pumice.columns.topology.hypernodes import link
from pumice.model.disruption import PodDisruptionBudget
from pumice.model.manifest import Value
from pumice.model.manifest.jobs import group_name_of, is_bare
from pumice.model.node import Node
from pumice.model.plain_words import first_names
from pumice.model.pod import NATIVE_GROUP_MARK, Pod
from pumice.model.quantity import DurationError, parse_duration
from pumice.model.queue import DEFAULT_QUEUE, PriorityClass, Queue
from pumice.model.resources import EMPTY, Resource
from pumice.model.topology import HyperNode, Topology
from pumice.model.workloads.estimate import estimate_problems
from pumice.model.workloads.job import VolcanoJob
from pumice.model.workloads.podgroup import SLA_ANNOTATIONS, PodGroup
from pumice.model.workloads.workload import workload_ref
from pumice.runtime.problems.kai import device_problems, gang_problems, share_problems, sharing_problems
from pumice.runtime.problems.problem import Problem, Severity
from pumice.runtime.problems.queues import budget_problems, queue_problems

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

ROOT_QUEUE = "root"
#: KAI's pod-grouper writes this class, whose value is the default. Files often have no PriorityClasses.
_KAI_DEFAULT_CLASS = "train"
_CYCLES_MAX = 20
_MEMORY_MIN = 1024.0
_GUESSES_MAX = 50
_GUESSED_AMONG_MAX = 2000


def validate_cluster(
    objects: Iterable[Value], scheduler_names: tuple[str, ...] = ("volcano",), *, cluster: Sequence[Value] = ()
) -> tuple[tuple[Value, ...], tuple[Problem, ...]]:
    """Return the objects, with the queues ``default`` and ``root`` if they are needed and missing, and the problems
    between them. ``cluster``: objects that exist, which they may name or replace; what is wrong with these already is
    not reported."""
    everything, notes = _with_queues(tuple(objects), cluster)
    if not cluster:
        return everything, (*notes, *_Cluster(everything, scheduler_names).problems())
    given = {_id_of(obj) for obj in everything}
    merged = (*everything, *(obj for obj in cluster if _id_of(obj) not in given))
    before = set(_Cluster(tuple(cluster), scheduler_names).problems())
    found = _Cluster(merged, scheduler_names).problems()
    return everything, (*notes, *(problem for problem in found if problem not in before))


def _id_of(obj: Value) -> tuple[type[Value], str, str]:
    return type(obj), getattr(obj, "namespace", ""), obj.name


def _with_queues(objects: tuple[Value, ...], cluster: Sequence[Value]) -> tuple[tuple[Value, ...], tuple[Problem, ...]]:
    """Add the default queue for jobs that are in it, and the root for queues with a parent. Source: Volcano creates
    both at start-up, with weight 1, the default one reclaimable."""
    queues = [obj for obj in (*objects, *cluster) if isinstance(obj, Queue)]
    wanted = []
    if any(isinstance(obj, PodGroup | VolcanoJob) and obj.queue == DEFAULT_QUEUE for obj in objects):
        wanted.append(Queue(DEFAULT_QUEUE))
    # Queues of KAI may have a parent too, and no root.
    own = [obj for obj in objects if isinstance(obj, Queue)]
    if any(queue.parent and queue.sharing is None for queue in own):
        wanted.append(Queue(ROOT_QUEUE, reclaimable=False))
    there = {queue.name for queue in queues}
    added = [queue for queue in wanted if queue.name not in there]
    what = "does not exist and was added with weight 1, as Volcano does"
    return (*objects, *added), tuple(Problem(f"Queue {queue.name}", what, Severity.NOTE) for queue in added)


class _Cluster:
    def __init__(self, objects: tuple[Value, ...], scheduler_names: tuple[str, ...]) -> None:
        self.scheduler_names = scheduler_names
        self.pods = _only(Pod, objects)
        self.groups = _only(PodGroup, objects)
        self.queues = _only(Queue, objects)
        self.nodes = _only(Node, objects)
        self.hypernodes = _only(HyperNode, objects)
        self.classes = _only(PriorityClass, objects)
        self.jobs = _only(VolcanoJob, objects)
        self.topologies = _only(Topology, objects)
        self.budgets = _only(PodDisruptionBudget, objects)
        self.guess = _Guesses()

    def problems(self) -> Iterator[Problem]:
        yield from self._uids()
        yield from self._pods()
        yield from self._groups()
        yield from self._queues()
        yield from self._nodes()
        yield from self._amounts()
        yield from self._hypernodes()
        yield from budget_problems(self.budgets)
        yield from sharing_problems(self.queues)
        yield from gang_problems(self.groups, self.pods, self.topologies, self.guess)
        yield from share_problems(self.pods, self.nodes)
        yield from device_problems(self.pods, self.nodes)

    def _uids(self) -> Iterator[Problem]:
        for kind, objects in (("Pod", self.pods), ("PodGroup", self.groups)):
            by_uid = _grouped((obj.uid, obj.key) for obj in objects)
            for uid, keys in by_uid.items():
                if len(keys) > 1:
                    yield Problem(_named(kind, keys), f"have the same uid {uid}")

    def _pods(self) -> Iterator[Problem]:
        known = {group.key for group in self.groups} | {f"{j.namespace}/{group_name_of(j)}" for j in self.jobs}
        lost = _grouped((pod.group_key, pod.key) for pod in self.pods if pod.group_key and pod.group_key not in known)
        for group, pods in lost.items():
            namespace = group.partition("/")[0] + "/"
            near: Iterable[str] = (key for key in known if key.startswith(namespace))
            missing = f"PodGroup {group}"
            if (ref := workload_ref(group.removeprefix(namespace))) is not None:
                missing, near = f"{ref.shown} of Workload {namespace}{ref.workload}", ()
            yield Problem(_named("Pod", pods), f"{missing} does not exist{self.guess(group, near)}")
        both = _grouped(
            (ignored_group(pod, name), pod.key) for pod in self.pods if (name := pod.annotations.get(NATIVE_GROUP_MARK))
        )
        for what, pods in both.items():
            yield Problem(_named("Pod", pods), what, Severity.WARNING)
        bare = [pod.key for pod in self.pods if is_bare(pod, self.scheduler_names)]
        if bare:
            yield Problem(_named("Pod", bare), "has no PodGroup and is not scheduled", Severity.WARNING)
        for what, pods in _grouped((what, pod.key) for pod in self.pods for what in estimate_problems(pod)).items():
            yield Problem(_named("Pod", pods), what, Severity.WARNING)
        nodes = {node.name for node in self.nodes}
        bound = [pod for pod in self.pods if pod.node_name]
        homeless = _grouped((pod.node_name, pod.key) for pod in bound if pod.node_name not in nodes)
        for node, pods in homeless.items():
            yield Problem(_named("Pod", pods), f"Node {node} does not exist{self.guess(node, nodes)}", Severity.WARNING)

    def _groups(self) -> Iterator[Problem]:
        queues = {queue.name for queue in self.queues} | {ROOT_QUEUE}
        asking = [(g.queue, f"PodGroup {g.key}") for g in self.groups] + [(j.queue, f"Job {j.key}") for j in self.jobs]
        lost = _grouped((queue, who) for queue, who in asking if queue not in queues)
        for queue, keys in lost.items():
            yield Problem(_named("", keys), f"Queue {queue} does not exist{self.guess(queue, queues)}")
        yield from self._priority_classes()
        counts = Counter(pod.group_key for pod in self.pods)
        for group in self.groups:
            has_sub_groups = group.gang is not None and group.gang.sub_groups
            if group.min_member > counts[group.key] and not group.unparsable and not has_sub_groups:
                field = "minMember" if group.native is None else "spec.schedulingPolicy.gang.minCount"
                if group.native is not None and not group.native.has_object:
                    field = "gang.minCount"
                what = f"{field} is {group.min_member}, but it has {counts[group.key]} pods"
                yield Problem(f"PodGroup {group.key}", what, Severity.WARNING)
            yield from self._waiting_times(group)
            for what in estimate_problems(group):
                yield Problem(f"PodGroup {group.key}", what, Severity.WARNING)

    def _waiting_times(self, group: PodGroup) -> Iterator[Problem]:
        for key in SLA_ANNOTATIONS:
            text = group.annotations.get(key)
            if text is not None and not _is_waiting_time(text):
                what = f"annotation {key}: found {text[:80]!r}, wanted a duration above 0 such as 30m (ignored)"
                yield Problem(f"PodGroup {group.key}", what, Severity.WARNING)

    def _priority_classes(self) -> Iterator[Problem]:
        classes = {each.name for each in self.classes}
        named = [("PodGroup", g.key, g.priority_class_name) for g in self.groups if classes or not _is_made_by_kai(g)]
        named += [("Job", j.key, j.priority_class_name) for j in self.jobs]
        lost = _grouped((name, f"{kind} {key}") for kind, key, name in named if name and name not in classes)
        for name, keys in lost.items():
            what = f"PriorityClass {name} does not exist, so the default is used{self.guess(name, classes)}"
            yield Problem(_named("", keys), what, Severity.WARNING)
        defaults = [each.name for each in self.classes if each.global_default]
        if len(defaults) > 1:
            yield Problem(_named("PriorityClass", defaults), "are all the global default", Severity.WARNING)

    def _queues(self) -> Iterator[Problem]:
        names = {queue.name for queue in self.queues} | {ROOT_QUEUE}
        children = [queue for queue in self.queues if queue.parent]
        lost = _grouped((queue.parent, queue.name) for queue in children if queue.parent not in names)
        for parent, orphans in lost.items():
            yield Problem(_named("Queue", orphans), f"parent {parent} does not exist{self.guess(parent, names)}")
        cycles = _cycles({queue.name: (queue.parent,) for queue in children})
        for cycle in cycles:
            yield Problem(f"Queue {cycle[0]}", f"parents form a cycle: {' -> '.join(cycle)}")
        if not cycles:
            total = reduce(Resource.add, (node.allocatable for node in self.nodes), EMPTY)
            used = {group.queue for group in self.groups} | {job.queue for job in self.jobs}
            yield from queue_problems(self.queues, total, used)

    def _nodes(self) -> Iterator[Problem]:
        empty = [node.name for node in self.nodes if node.allocatable.is_empty() and node.oversubscription.is_empty()]
        if empty:
            yield Problem(_named("Node", empty), "allocatable is zero: no pod can run there", Severity.WARNING)

    def _amounts(self) -> Iterator[Problem]:
        """Yield pods and tasks of jobs that request less than a kilobyte of memory: another suffix was meant."""
        asked = [("Pod", pod.key, pod.spec) for pod in self.pods]
        asked += [("Job", job.key, task.template.spec) for job in self.jobs for task in job.tasks]
        small = [(kind, each.request.memory, key) for kind, key, each in asked if 0 < each.request.memory < _MEMORY_MIN]
        for (kind, memory), keys in _grouped(((kind, memory), key) for kind, memory, key in small).items():
            what = f"requests {memory:.0f} bytes of memory; the suffix m means thousandths, Mi megabytes"
            yield Problem(_named(kind, keys), what, Severity.WARNING)

    def _hypernodes(self) -> Iterator[Problem]:
        members = {
            hypernode.name: tuple(m.exact for m in hypernode.members if m.type == "HyperNode" and m.exact)
            for hypernode in self.hypernodes
        }
        for cycle in _cycles(members):
            yield Problem(f"HyperNode {cycle[0]}", f"members form a cycle: {' -> '.join(cycle)}")
        for error in link(self.hypernodes).errors:
            if not error.startswith("cyclic"):
                yield Problem("HyperNode", error)
        yield from self._tier_names()
        tiers = {hypernode.name: hypernode.tier for hypernode in self.hypernodes}
        nodes = {node.name for node in self.nodes}
        for hypernode in self.hypernodes:
            for what in self._members(hypernode, tiers, nodes):
                yield Problem(f"HyperNode {hypernode.name}", what, Severity.WARNING)

    def _tier_names(self) -> Iterator[Problem]:
        by_name = _grouped((h.tier_name, h.tier) for h in self.hypernodes if h.tier_name)
        for name, found in by_name.items():
            if len(set(found)) > 1:
                several = ", ".join(map(str, sorted(set(found))))
                yield Problem(f"HyperNode tierName {name}", f"is used for several tiers: {several}", Severity.WARNING)

    def _members(self, hypernode: HyperNode, tiers: Mapping[str, int], nodes: Collection[str]) -> Iterator[str]:
        missing = []
        for member in hypernode.members:
            if member.regex is not None:
                try:
                    compile_pattern(member.regex)
                except PatternError as error:
                    yield f"pattern {member.regex[:80]!r} matches nothing: {error}"
            if member.type == "Node":
                if member.exact and member.exact not in nodes:
                    missing.append(member.exact)
            elif not member.exact:
                yield "a member of type HyperNode needs exactMatch; this member is ignored"
            elif member.exact not in tiers:
                yield f"member HyperNode {member.exact} does not exist{self.guess(member.exact, tiers)}"
            elif tiers[member.exact] >= hypernode.tier:
                its = tiers[member.exact]
                yield f"is of tier {hypernode.tier}, its member {member.exact} of tier {its}, which is not lower"
        if missing:
            yield f"members that are not nodes: {first_names(missing)}"


# -- small things


def ignored_group(pod: Pod, name: str) -> str:
    """Return what is wrong with a pod that names another group, this one, beside the one that counts."""
    ref = workload_ref(name)
    if ref is not None:
        ignored = f"{ref.workload}, {ref.shown}"
        return f"spec.schedulingGroup and spec.workloadRef are both given; spec.workloadRef ({ignored}) is ignored"
    field = "schedulingGroup" if workload_ref(pod.group_key.partition("/")[2]) is None else "workloadRef"
    return f"spec.{field} and an annotation name different groups; the annotation ({name}) is ignored"


def _is_waiting_time(text: str) -> bool:
    try:
        return parse_duration(text) > 0
    except DurationError:
        return False


def _only(kind: type[T], objects: Iterable[object]) -> list[T]:
    return [obj for obj in objects if isinstance(obj, kind)]


def _is_made_by_kai(group: PodGroup) -> bool:
    return group.gang is not None and group.priority_class_name == _KAI_DEFAULT_CLASS


def _grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def _named(kind: str, keys: Sequence[str]) -> str:
    return f"{kind} {first_names(keys)}".strip()


class _Guesses:
    """Returns ``; did you mean x?`` if something similar is known. Similarity is slow to compute, so only the first few
    problems get it."""

    def __init__(self) -> None:
        self.left = _GUESSES_MAX

    def __call__(self, name: str, known: Iterable[str]) -> str:
        if not self.left:
            return ""
        self.left -= 1
        close = difflib.get_close_matches(name, sorted(known)[:_GUESSED_AMONG_MAX], n=1)
        return f"; did you mean {close[0]}?" if close else ""


def _cycles(edges: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """Return circles in a directed graph, each from its first name by alphabet back to it; at most a few."""
    found: dict[tuple[str, ...], None] = {}
    done: set[str] = set()
    for start in sorted(edges):
        path: list[str] = []
        depth_of: dict[str, int] = {}
        waiting = [(start, 0)]
        while waiting and len(found) < _CYCLES_MAX:
            name, depth = waiting.pop()
            for left in path[depth:]:
                done.add(left)
                del depth_of[left]
            del path[depth:]
            if name in depth_of:
                found[_turned(path[depth_of[name] :])] = None
            elif name not in done:
                depth_of[name] = depth
                path.append(name)
                waiting += [(after, depth + 1) for after in reversed(edges.get(name, ()))]
        done.update(path)
    return list(found)


def _turned(circle: list[str]) -> tuple[str, ...]:
    place = circle.index(min(circle))
    return (*circle[place:], *circle[:place], circle[place])
