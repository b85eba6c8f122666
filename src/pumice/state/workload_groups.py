"""Make a PodGroup of each pod group of a Workload that pods name, while objects come and go.

Source: ``scheduling.k8s.io/v1alpha1``, where only pods say which replicas of a pod group exist.
"""

from __future__ import annotations

from collections.abc import Iterator

from pumice.model.events import Gone, Seen
from pumice.model.pod import GROUP_NAME_ANNOTATION, NATIVE_GROUP_MARK, Pod
from pumice.model.workloads.podgroup import PodGroup
from pumice.model.workloads.workload import Workload, group_of_workload, workload_ref


class WorkloadGroups:
    """The PodGroups that Workloads of one cluster make. Not thread-safe."""

    def __init__(self) -> None:
        self._workloads: dict[str, Workload] = {}
        self._pods: dict[str, dict[str, dict[str, None]]] = {}  # Workload -> PodGroup -> its pods, in a dict as a set
        self._named_by: dict[str, tuple[str, str]] = {}  # pod -> the Workload and PodGroup that it names
        self._made: dict[str, PodGroup] = {}  # what was passed on

    def pass_on(self, event: Seen | Gone) -> Iterator[Seen | Gone]:
        """Yield what an event of the API means for those who know no Workloads."""
        match event:
            case Seen(Pod() as pod):
                yield from self._pod_seen(pod)
            case Gone(kind, key) if kind is Pod:
                # The pod before its PodGroup, so that no pod is without a group in between.
                yield event
                yield from self._pod_gone(key)
            case Seen(Workload() as workload):
                self._workloads[workload.key] = workload
                yield from self._settle(workload.key)
            # The pods stay: under the name of a PodGroup that does not exist they wait, and say so.
            case Gone(kind, key) if kind is Workload:
                self._workloads.pop(key, None)
                yield from self._settle(key)
            case _:
                yield event

    def _pod_seen(self, pod: Pod) -> Iterator[Seen | Gone]:
        named = _named_by(pod)
        before = self._named_by.get(pod.key)
        # The PodGroup before the pod, as in the API, where a pod without its group waits and says so.
        if named is not None and named != before:
            self._pods.setdefault(named[0], {}).setdefault(named[1], {})[pod.key] = None
            yield from self._settle_group(*named)
        yield Seen(pod)
        # A pod that was created anew may name another Workload.
        if before is not None and named != before:
            yield from self._pod_gone(pod.key)
        if named is not None:
            self._named_by[pod.key] = named

    def _pod_gone(self, key: str) -> Iterator[Seen | Gone]:
        named = self._named_by.pop(key, None)
        if named is None:
            return
        workload, group = named
        groups = self._pods[workload]
        # Nothing is kept of what has gone: tenants create Workloads and pods without end.
        del groups[group][key]
        if not groups[group]:
            del groups[group]
        if not groups:
            del self._pods[workload]
        yield from self._settle_group(workload, group)

    def _settle(self, workload: str) -> Iterator[Seen | Gone]:
        """Yield the PodGroups of a Workload that have changed."""
        for group in sorted(self._pods.get(workload, ())):
            yield from self._settle_group(workload, group)

    def _settle_group(self, workload: str, group: str) -> Iterator[Seen | Gone]:
        """Yield a PodGroup if it has changed."""
        held, ref = self._workloads.get(workload), workload_ref(group.partition("/")[2])
        is_named = group in self._pods.get(workload, ())
        made = group_of_workload(held, ref) if held is not None and ref is not None and is_named else None
        # Most events change no group: a pod that runs is seen many times.
        if made == self._made.get(group):
            return
        if made is None:
            del self._made[group]
            yield Gone(PodGroup, group)
        else:
            self._made[group] = made
            yield Seen(made)


def _named_by(pod: Pod) -> tuple[str, str] | None:
    """Return the keys of the Workload and of the PodGroup that a pod names, or None if it names no Workload."""
    ref = workload_ref(pod.annotations.get(GROUP_NAME_ANNOTATION, "")) if NATIVE_GROUP_MARK in pod.annotations else None
    return (f"{pod.namespace}/{ref.workload}", pod.group_key) if ref is not None else None
