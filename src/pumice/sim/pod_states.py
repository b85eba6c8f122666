"""Pods as decisions find and leave them."""

from __future__ import annotations

from pumice.model.decisions import Bind, Decision, device_grant
from pumice.model.devices.pod_devices import with_devices
from pumice.model.pod import Pod, PodCondition


def refusal_of_state(pod: Pod | None, decision: Decision) -> str | None:
    """Return why a decision is not about the present pod, or None."""
    if pod is None:
        return f"pod {decision.pod} does not exist"
    if pod.uid != decision.uid:
        return f"pod {decision.pod} was replaced: uid {pod.uid}, not {decision.uid}"
    if pod.deletion is not None:
        return f"pod {decision.pod} is being deleted"
    return None


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
