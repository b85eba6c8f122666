"""Policies with deviceshare, and what pods are given under them."""

from __future__ import annotations

from typing import Any

from pumice.model.decisions import DEVICES, Bind
from pumice.model.devices import shared_devices as words
from pumice.model.devices.shared_devices import DeviceGrant
from pumice.model.pod import Pod
from pumice.testing.build import Ran, pod
from pumice.testing.devices import vgpu

ON = {"deviceshare.VGPUEnable": True}


def conf(plugins: str = "gang", actions: str = "allocate", **arguments: Any) -> str:
    given = {**(ON if not arguments else {}), **{f"deviceshare.{name}": value for name, value in arguments.items()}}
    named = ", ".join(f"{{name: {each}}}" for each in plugins.split())
    option = {"name": "deviceshare", "arguments": given}
    return f"actions: {actions}\ntiers: [{{plugins: [{named}, {option!r}]}}]".replace("True", "true")


def cards_of(ran: Ran) -> dict[str, str]:
    """The cards that pods were bound to, by pod."""
    binds = [each for each in ran.decisions if isinstance(each, Bind)]
    return {each.pod.partition("/")[2]: said(each)[words.ASSIGNED_IDS_ANNOTATION] for each in binds}


def why(ran: Ran, name: str) -> str:
    """The message on a pod that waits."""
    return next(notice.message for notice in ran.outcome.notices() if notice.pod == f"ns/{name}")


def said(bind: Bind) -> dict[str, str]:
    grant = bind.context[DEVICES]
    assert isinstance(grant, DeviceGrant)
    return dict(grant.annotations)


def has(name: str, where: str, given: str, **more: Any) -> Pod:
    """A pod on its node that says what it has."""
    return pod(name, on=where, annotations={words.ASSIGNED_IDS_ANNOTATION: given}, devices=vgpu(1), **more)
