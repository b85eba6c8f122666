"""Pods that somebody has asked a binder to bind: until it has, or has given up, they count on their node as if they
were bound. Source: KAI bindrequest_info, pod_info."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from pumice.model.bind_request import BindRequest
from pumice.model.devices.gpu import gpu_groups, labels_of_groups
from pumice.model.pod import Pod


class BindRequests:
    """``of`` is true for no pod while there are no live requests; ``take`` and ``drop`` say whose pod changed."""

    def __init__(self) -> None:
        self._pod_of: dict[str, str] = {}  # by request, while it is live
        self._live: dict[str, BindRequest] = {}  # by pod
        self._plain: dict[str, Pod] = {}  # pods as the API server has them, where they count as something else

    def __bool__(self) -> bool:
        return bool(self._live)

    def take(self, request: BindRequest) -> str | None:
        """A request came or changed. Returns the key of the pod that counts otherwise from now on; None: none does."""
        if not request.is_live:
            return self.drop(request.key)
        before = self._live.get(request.pod_key)
        self._pod_of[request.key] = request.pod_key
        self._live[request.pod_key] = request
        moved = before is None or (before.node, before.gpu_groups) != (request.node, request.gpu_groups)
        return request.pod_key if moved else None

    def drop(self, key: str) -> str | None:
        """A request went, or there will be no further try. Returns what ``take`` does."""
        pod = self._pod_of.pop(key, None)
        if pod is None or self._live[pod].key != key:
            return None
        del self._live[pod]
        return pod

    def is_live(self, pod: str) -> bool:
        """Whether somebody is asked to bind the pod."""
        return pod in self._live

    def counts_as(self, pod: Pod) -> Pod:
        """What a pod, as the API server has it, counts as."""
        request = self._live.get(pod.key)
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
        return replace(pod, node_name=request.node, labels={**pod.labels, **_groups_as_labels(pod, request)})

    def as_it_is(self, pod: Pod) -> Pod:
        """The way back."""
        plain = self._plain.get(pod.key)
        return plain if plain is not None and plain.uid == pod.uid else pod

    def gone(self, pods: Iterable[str]) -> None:
        """Pods are not there any more."""
        for pod in pods if self._plain else ():
            self._plain.pop(pod, None)


def _groups_as_labels(pod: Pod, request: BindRequest) -> dict[str, str]:
    """What the binder will write on the pod about the devices that it shares."""
    return {} if gpu_groups(pod.labels) else labels_of_groups(request.gpu_groups, pod.spec.gpu_share)
