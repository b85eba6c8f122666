"""PodGroups that a controller makes for pods without one: how they are named, and what people call them."""

from __future__ import annotations

from collections.abc import Iterable

from pumice.model.pod import Pod

_PREFIX = "podgroup-"


def bare_group_name(pod: Pod) -> str:
    """Return the name of the PodGroup that is made for a pod without one. Pods of one controlling owner share it.

    Source: Volcano's PodGroup controller.
    """
    # A key of a file may contain a slash.
    return f"{_PREFIX}{(pod.owner[2] if pod.owner else '') or pod.uid}".replace("/", "-")


def is_bare(key: str) -> bool:
    """Return True if the PodGroup of this key may have been made for pods without one."""
    return f"/{_PREFIX}" in key


def shown_name(key: str, pods: Iterable[Pod]) -> str:
    """Return what people call a job, as ``namespace/name``: the key of its PodGroup, or if that was made for pods
    without one, the name of their owner or of the pod. ``pods``: those of the job."""
    # Users may begin names so too; then no pod below has an owner or uid of that name.
    if not is_bare(key):
        return key
    namespace, _, name = key.partition("/")
    # The name that is made is a uid, which says nothing to people.
    for pod in pods:
        if bare_group_name(pod) == name:
            return f"{namespace}/{pod.owner[1] if pod.owner else pod.name}"
    return key
