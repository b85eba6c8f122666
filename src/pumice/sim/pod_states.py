"""Pods as decisions find and leave them."""

from __future__ import annotations

from pumice.model.decisions import Bind, device_grant
from pumice.model.devices.pod_devices import with_devices
from pumice.model.pod import Pod, PodCondition


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
