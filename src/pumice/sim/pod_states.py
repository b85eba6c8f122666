"""Pods as decisions find and leave them."""

from __future__ import annotations

from pumice.model.decisions import Bind, device_grant
from pumice.model.devices.pod_devices import with_devices
from pumice.model.pod import ENDED, Pod, PodCondition
from pumice.runtime.bind_checks import refusal_of_state


def refusal_of_bind(pod: Pod | None, bind: Bind) -> str | None:
    """Return why the present pod cannot be bound, whatever its node is, or None."""
    why = refusal_of_state(pod, bind)
    if why is not None or pod is None:
        return why
    if pod.node_name:
        return f"pod {bind.pod} is already on node {pod.node_name}"
    return f"pod {bind.pod} has {pod.phase.lower()}" if pod.phase in ENDED else None


def says_the_same(conditions: tuple[PodCondition, ...], said: PodCondition) -> bool:
    """Return True if a condition is among others, whenever it was written."""
    return any(
        c.type == said.type and c.status == said.status and c.reason == said.reason and c.message == said.message
        for c in conditions
    )


def with_grant(pod: Pod, bind: Bind) -> Pod:
    """Return a pod as it is bound: with the annotations of its shared devices, and with the labels of its GPU
    groups."""
    given = device_grant(bind)
    return pod if given is None else with_devices(pod, given)
