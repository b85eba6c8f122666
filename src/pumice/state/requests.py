"""Pods with a BindRequest: they count on the requested node until the binder has bound them or has given up.

Source: KAI ``BindRequestInfo`` and ``PodInfo``.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from pumice.model.bind_request import BindRequest
from pumice.model.devices.gpu import gpu_groups, labels_of_groups
from pumice.model.devices.numa import PREDICTED_ANNOTATION
from pumice.model.pod import Pod


class BindRequests:
    """The live BindRequests. False if there are none."""

    def __init__(self) -> None:
        self._pod_of: dict[str, str] = {}  # by request, while it is live
        self._live: dict[str, BindRequest] = {}  # by pod
        # Pods as the API server has them, if the store has them with the node of a request. Without them a request that
        # fails could not be undone: no event about the pod need follow.
        self._plain: dict[str, Pod] = {}

    def __bool__(self) -> bool:
        return bool(self._live)

    def take(self, request: BindRequest) -> str | None:
        """Take in a new or changed request. Return the key of the pod that it changes, or None."""
        if not request.is_live:
            return self.drop(request.key)
        before = self._live.get(request.pod_key)
        self._pod_of[request.key] = request.pod_key
        self._live[request.pod_key] = request
        moved = before is None or (before.node, before.gpu_groups) != (request.node, request.gpu_groups)
        return request.pod_key if moved else None

    def drop(self, key: str) -> str | None:
        """Remove a request that was deleted or has failed for good. Return the key of the pod that it changes, or
        None."""
        pod = self._pod_of.pop(key, None)
        # A newer request of the same pod may have replaced this one.
        if pod is None or self._live[pod].key != key:
            return None
        # The pod then counts as the API server has it again, and is placed anew if it waits.
        del self._live[pod]
        return pod

    def is_live(self, pod: str) -> bool:
        """Return True if a live request for the pod exists."""
        return pod in self._live

    def counts_as(self, pod: Pod) -> Pod:
        """Return the pod as it counts: with the node and devices of its request, if it has one that applies."""
        request = self._live.get(pod.key)
        # As soon as the pod itself shows what became of it, that is newer than the request.
        if (
            request is None
            or not request.is_about(pod.uid)
            or pod.node_name
            or pod.deletion is not None
            or pod.phase not in ("Pending", "")
        ):
            self._plain.pop(pod.key, None)
            return pod
        self._plain[pod.key] = pod
        # As the binder will write them. The request is newer than an expectation that the pod has already.
        zones = {PREDICTED_ANNOTATION: request.numa_zones} if request.numa_zones else {}
        return replace(
            pod,
            node_name=request.node,
            labels={**pod.labels, **_groups_as_labels(pod, request)},
            annotations={**pod.annotations, **zones} if zones else pod.annotations,
        )

    def as_it_is(self, pod: Pod) -> Pod:
        """Return a pod as the API server has it, from the pod that ``counts_as`` returned."""
        plain = self._plain.get(pod.key)
        return plain if plain is not None and plain.uid == pod.uid else pod

    def gone(self, pods: Iterable[str]) -> None:
        """Forget pods that were deleted."""
        for pod in pods if self._plain else ():
            self._plain.pop(pod, None)


def _groups_as_labels(pod: Pod, request: BindRequest) -> dict[str, str]:
    """Return the labels that the binder will write on the pod for the devices that it shares."""
    return {} if gpu_groups(pod.labels) else labels_of_groups(request.gpu_groups, pod.spec.gpu_share)
