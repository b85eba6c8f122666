"""A pod as it will be bound: with what its shared devices add to it."""

from __future__ import annotations

from msgspec.structs import replace

from pumice.model.devices.gpu import labels_of_groups, without_groups
from pumice.model.devices.shared_devices import DeviceGrant
from pumice.model.pod import Pod


def with_devices(pod: Pod, given: DeviceGrant) -> Pod:
    """Return a pod with the annotations of its cards and with the labels of its groups of GPUs, and no older labels of
    groups."""
    labels = {**without_groups(pod.labels), **labels_of_groups(given.gpu_groups, pod.spec.gpu_share)}
    return replace(
        pod,
        annotations={**pod.annotations, **dict(given.annotations)},
        # Labels of groups are replaced only by new ones: a pod that gets cards alone keeps its own.
        labels=labels if given.gpu_groups else pod.labels,
    )
