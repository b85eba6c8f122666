"""Defaults of pods and of pod templates."""

from __future__ import annotations

from typing import Any, Final

from pumice.model.manifest.defaults.requests import requests_and_limits
from pumice.model.manifest.reading.fields import Obj

_SPEC: Final[dict[str, Any]] = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}


def fill_pod(spec: Obj) -> None:
    """Fill in the defaults of a pod's or template's spec, in place. Its containers must be checked."""
    for container in (*spec["containers"], *(spec.get("initContainers") or ())):
        fill_container(container)
    for key, value in _SPEC.items():
        spec.setdefault(key, value)
    spec.setdefault("securityContext", {})


def fill_container(container: Obj) -> None:
    resources = container.setdefault("resources", {})
    if isinstance(resources, dict) and isinstance(resources.get("limits"), dict):
        resources["requests"] = requests_and_limits(resources)
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    tag = str(container["image"]).rpartition("/")[2].partition(":")[2]
    container.setdefault("imagePullPolicy", "IfNotPresent" if tag and tag != "latest" else "Always")
