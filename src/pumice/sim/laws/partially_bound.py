"""S11, S12: a gang that was partially bound when its scheduler stopped is completed as soon as there is room.

Checked on the state of the API server, and only if the rest of the gang would certainly have room: plain, equal pods
that only nodes could reject. (docs/decisions/0018)
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from pumice.model.decisions import Bind
from pumice.model.node import Node
from pumice.model.pod import ENDED, Pod
from pumice.model.resources import PODS
from pumice.model.workloads.podgroup import PodGroup
from pumice.sim.cluster import SimCluster
from pumice.sim.measures.node_usage import amounts_of

#: Cycles in which a partially bound gang may see room and not be completed. In one of them, binds of its pods may have
#: been refused.
CYCLES_MAX = 3


class PartiallyBoundGang(NamedTuple):
    """A gang below its minimum that holds nodes. ``missing`` pods like ``pod`` would complete it."""

    group: PodGroup
    pod: Pod
    missing: int


class PartiallyBoundLaws:
    """``in_doubt``: True if the scheduler may not know the present state of a pod. ``queues_limit``: the policy has
    plugins that may make a job wait because of what its queue holds."""

    def __init__(self, cluster: SimCluster, in_doubt: Callable[[str], bool], *, queues_limit: bool) -> None:
        self._cluster, self._in_doubt, self._queues_limit = cluster, in_doubt, queues_limit
        self._seen: Counter[str] = Counter()

    def broken(self, asked: Mapping[str, Bind]) -> Iterator[str]:
        """Yield the laws that a cycle broke, given the binds that it asked for, by pod."""
        members: dict[str, list[Pod]] = defaultdict(list)
        for pod in self._cluster.decided_pods().values():
            members[pod.group_key].append(pod)
        free = self._free(asked.values())
        found = (self._partial(key, pods, asked) for key, pods in sorted(members.items()))
        partials = [partial for partial in found if partial is not None]
        fresh = self._begun(members, asked)
        for partial in partials:
            yield from self._before_equals(partial, fresh, free, asked)
        if not self._queues_limit:
            yield from self._whole_in_time(partials, free)

    def _partial(self, key: str, pods: list[Pod], asked: Mapping[str, Bind]) -> PartiallyBoundGang | None:
        """Return the gang if it is partially bound and got nothing in this cycle, or None if it is not, or anything is
        in doubt."""
        group = self._cluster.groups.get(key)
        if group is None or group.topology or group.sub_groups or group.min_task_member or group.unparsable:
            return None
        if group.status.phase == "Pending" or any(pod.key in asked or self._in_doubt(pod.key) for pod in pods):
            return None
        held = [pod for pod in pods if pod.node_name and pod.phase not in ENDED and pod.deletion is None]
        waits = [pod for pod in pods if not pod.node_name and pod.deletion is None and pod.phase == "Pending"]
        missing = group.min_member - len(held) - sum(pod.phase == "Succeeded" for pod in pods)
        if not held or not 0 < missing <= len(waits) or not all(map(_is_plain, waits)):
            return None
        return PartiallyBoundGang(group, waits[0], missing) if len({pod.spec for pod in waits}) == 1 else None

    def _begun(self, members: Mapping[str, list[Pod]], asked: Mapping[str, Bind]) -> list[tuple[PodGroup, list[Pod]]]:
        """Return gangs that held nothing and got nodes in this cycle, with these pods."""
        found: dict[str, list[Pod]] = defaultdict(list)
        for pod in (self._cluster.pods.get(key) for key in asked):
            if pod is not None and pod.group_key in self._cluster.groups:
                found[pod.group_key].append(pod)
        return [
            (self._cluster.groups[key], pods)
            for key, pods in sorted(found.items())
            if not any(p.node_name and p.key not in asked and p.phase not in ENDED for p in members[key])
        ]

    def _before_equals(
        self,
        partial: PartiallyBoundGang,
        fresh: Iterable[tuple[PodGroup, list[Pod]]],
        free: Mapping[str, dict[str, float]],
        asked: Mapping[str, Bind],
    ) -> Iterator[str]:
        """S11: no gang of its queue and priority that held nothing gets room in which the partially bound one would be
        complete."""
        for group, pods in fresh:
            if (group.queue, group.priority_class_name) != (partial.group.queue, partial.group.priority_class_name):
                continue
            if not _takes_as_much(pods, partial):
                continue  # the queue's limit may admit one gang and not the other
            room = {name: dict(amounts) for name, amounts in free.items()}
            for pod in pods:
                for name, amount in amounts_of(pod.spec.request):
                    node = room.get(asked[pod.key].node, {})
                    node[name] = node.get(name, 0.0) + amount
            if self._would_fit(partial, room):
                lacks = f"which holds nodes and lacks {partial.missing}"
                yield f"S11: gang {group.key} got room before {partial.group.key}, {lacks}"

    def _whole_in_time(
        self, partials: Iterable[PartiallyBoundGang], free: Mapping[str, dict[str, float]]
    ) -> Iterator[str]:
        """S12: if there is room for the rest, the gang is completed within some cycles."""
        waits = Counter({partial.group.key: 1 for partial in partials if self._would_fit(partial, free)})
        self._seen = Counter({key: self._seen[key] + 1 for key in waits})
        for key, cycles in sorted(self._seen.items()):
            if cycles > CYCLES_MAX:
                yield f"S12: gang {key} holds nodes and is not whole after {cycles} cycles in which there was room"

    def _free(self, asked: Iterable[Bind]) -> dict[str, dict[str, float]]:
        """Return what is left on each node after the binds of this cycle, which may not be carried out yet."""
        where = {bind.pod: bind.node for bind in asked}
        found = {
            name: dict(amounts_of(node.allocatable)) for name, node in self._cluster.nodes.items() if _is_open(node)
        }
        for pod in self._cluster.decided_pods().values():
            node = pod.node_name or where.get(pod.key, "")
            if node in found and pod.phase not in ENDED:
                for name, amount in amounts_of(pod.spec.request):
                    found[node][name] = found[node].get(name, 0.0) - amount
        return found

    def _would_fit(self, partial: PartiallyBoundGang, free: Mapping[str, dict[str, float]]) -> bool:
        request = [(name, amount) for name, amount in amounts_of(partial.pod.spec.request) if name != PODS]
        if not request:
            return False
        count = 0
        for name, left in free.items():
            pods = self._cluster.nodes[name].allocatable.max_task_num
            slots = left.get(PODS, math.inf) if pods else math.inf
            count += int(max(0.0, min(slots, *(left.get(key, 0.0) // amount for key, amount in request))))
        return count >= partial.missing


def _is_open(node: Node) -> bool:
    return not node.unschedulable and not node.taints and not node.unparsable


def _is_plain(pod: Pod) -> bool:
    """Return True if only the room on nodes decides where a pod can run."""
    return pod.spec.asks_for_room_alone and not (pod.gates or pod.unparsable or pod.nominated_node)


def _takes_as_much(pods: list[Pod], partial: PartiallyBoundGang) -> bool:
    """Return True if pods got at least what the partially bound gang lacks, in every resource."""
    taken: Counter[str] = Counter()
    for pod in pods:
        for name, amount in amounts_of(pod.spec.request):
            taken[name] += amount  # type: ignore[assignment]
    return all(taken[name] >= partial.missing * amount for name, amount in amounts_of(partial.pod.spec.request))
