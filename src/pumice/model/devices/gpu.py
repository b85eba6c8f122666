"""Shares of GPUs: what a pod requests of shared devices, and what a node says of its devices. Source: KAI."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from pumice.model.resources import Resource

GPU_RESOURCE = "nvidia.com/gpu"
GPU_FRACTION_ANNOTATION = "gpu-fraction"
GPU_MEMORY_ANNOTATION = "gpu-memory"
GPU_DEVICES_ANNOTATION = "gpu-fraction-num-devices"
#: Label of a pod with one shared device: the group of pods that share it.
GPU_GROUP_LABEL = "runai-gpu-group"
#: Labels of a pod with several shared devices, one per group: ``runai-gpu-group/<group>``.
GPU_GROUP_PREFIX = f"{GPU_GROUP_LABEL}/"
#: Namespace of KAI's reservation pods, which hold devices that others share, and their annotation with the index of the
#: device.
RESERVATION_NAMESPACE, GPU_INDEX_ANNOTATION = "kai-resource-reservation", "run.ai/reserve_for_gpu_index"
RECEIVED_TYPE_ANNOTATION = "received-resource-type"
MIG_PREFIX = "nvidia.com/mig-"
MIG_STRATEGY_LABEL = "nvidia.com/mig.strategy"
GPU_MEMORY_LABEL = "nvidia.com/gpu.memory"
#: Devices that one pod may share. Bounded, because each is searched for on every node.
SHARED_DEVICES_MAX = 1024
#: GPU memory of a device if the node does not say. Source: KAI node_info.
UNKNOWN_GPU_MEMORY_MIB = 100

_BYTES_FROM = 1 << 20  # a label of so much and more is in bytes
#: MiB; a larger value is not a device's.
GPU_MEMORY_MAX = 1 << 40
_FRACTION = re.compile(r"[0-9]{0,9}(?:\.[0-9]{0,18})?(?:[eE][+-]?[0-9]{1,3})?")
_WHOLE = re.compile(r"[0-9]{1,18}")
_MIG = re.compile(r"nvidia\.com/mig-([0-9]{1,2})g\.[0-9]{1,4}gb.*")

#: Domains of drivers that offer GPUs as devices to claim.
_GPU_DOMAINS = ("nvidia.com", "amd.com", "intel.com")


@lru_cache(maxsize=256)
def is_gpu(name: str) -> bool:
    """Return True if a driver, or a device class named after it, is one of GPUs: ``gpu.nvidia.com``,
    ``nvidia.com/gpu``."""
    domain, _, kind = name.rpartition("/")
    return (kind == "gpu" and domain in _GPU_DOMAINS) or (name.startswith("gpu.") and name[4:] in _GPU_DOMAINS)


class GpuShare(Struct, frozen=True):
    """A share of each of ``devices`` GPUs.

    Either ``fraction`` (of a device, above 0 and at most 1, in hundredths) or ``memory_mib`` is set and the other is 0;
    neither, for a pod that only has MIG instances of the old kind. ``legacy_mig``: an annotation names MIG instances.
    ``problem``: what is wrong with the annotations, "" for nothing. A pod with a problem fits no node, and counts as
    whole devices where it runs.
    """

    fraction: float = 0.0
    memory_mib: int = 0
    devices: int = 1
    legacy_mig: bool = False
    problem: str = ""

    @property
    def milli_gpus(self) -> float:
        """What the fraction amounts to, in thousandths of GPUs; 0 for a share that is given in memory."""
        return 1000.0 * self.fraction * self.devices


def gpu_share(annotations: Mapping[str, str]) -> GpuShare | None:
    """Return the share that annotations ask for, or None if they ask for none. Source: KAI pod_info."""
    fraction, memory = annotations.get(GPU_FRACTION_ANNOTATION), annotations.get(GPU_MEMORY_ANNOTATION)
    devices = annotations.get(GPU_DEVICES_ANNOTATION)
    legacy = _names_mig(annotations)
    if fraction is None and memory is None and devices is None:
        # Such a pod is accounted for where it runs, and placed nowhere.
        return GpuShare(legacy_mig=True) if legacy else None
    return _share_of(fraction, memory, devices, legacy)


def _names_mig(annotations: Mapping[str, str]) -> bool:
    """Return True if a key of annotations names a MIG instance."""
    # Every pod that is read comes through here, and a generator would take twice as long as this loop.
    for key in annotations:  # noqa: SIM110
        if key.startswith(MIG_PREFIX):
            return True
    return False


@lru_cache(maxsize=4096)
def _share_of(fraction: str | None, memory: str | None, devices: str | None, legacy: bool) -> GpuShare:
    """Return the share for the texts of the three annotations. Cached, because pods of a job have equal annotations."""
    count = _whole(devices, SHARED_DEVICES_MAX) if devices is not None else 1
    if count is None:
        wanted = f"a whole number from 1 to {SHARED_DEVICES_MAX}"
        return _wrong(GPU_DEVICES_ANNOTATION, devices, wanted, 1, legacy)
    # KAI refuses both together, since they may contradict each other.
    if fraction is not None and memory is not None:
        return _wrong(GPU_FRACTION_ANNOTATION, fraction, f"no {GPU_MEMORY_ANNOTATION} beside it", count, legacy)
    if fraction is not None:
        part = _fraction(fraction)
        if part is None:
            return _wrong(GPU_FRACTION_ANNOTATION, fraction, "a number from 0.01 to below 1", count, legacy)
        return GpuShare(fraction=part, devices=count, legacy_mig=legacy)
    if memory is None:
        wanted = f"{GPU_FRACTION_ANNOTATION} or {GPU_MEMORY_ANNOTATION} beside it"
        return _wrong(GPU_DEVICES_ANNOTATION, devices, wanted, count, legacy)
    mib = _whole(memory, GPU_MEMORY_MAX)
    if mib is None:
        return _wrong(GPU_MEMORY_ANNOTATION, memory, "a whole number of MiB, 1 or more", count, legacy)
    return GpuShare(memory_mib=mib, devices=count, legacy_mig=legacy)


def _wrong(key: str, found: str | None, wanted: str, devices: int, legacy: bool) -> GpuShare:
    """Return whole devices with a problem: annotation, found, wanted."""
    shown = (found or "")[:40]
    # Escaped, because the text is shown in a terminal and in logs.
    shown = shown if shown.isprintable() else ascii(shown)
    return GpuShare(1.0, 0, devices, legacy, f'annotation {key}: found "{shown}", wanted {wanted}')


def _fraction(text: str) -> float | None:
    """Return a fraction in hundredths, None if it is invalid."""
    # Checked before ``float``, which would accept nan and underscores.
    if len(text) > 40 or not _FRACTION.fullmatch(text) or not any(map(str.isdigit, text)):
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    # A fraction that rounds to 0 would cost the queue nothing, so it is refused. 1 is refused as in KAI: a whole device
    # is requested as ``nvidia.com/gpu``.
    return hundredths(value) if value < 1 and hundredths(value) > 0 else None


def hundredths(amount: float) -> float:
    """Return an amount of GPUs as it is charged, rounded to hundredths. Source: KAI resource_info."""
    return round(amount * 100) / 100


def _whole(text: str | None, most: int) -> int | None:
    """Return a whole number from 1 to ``most``, None for other texts."""
    if text is None or not _WHOLE.fullmatch(text):
        return None
    value = int(text)
    return value if 1 <= value <= most else None


def labels_of_groups(groups: Sequence[str], share: GpuShare | None) -> dict[str, str]:
    """Return the labels of a pod that shares devices with these groups. Source: KAI binder."""
    if not groups:
        return {}
    # One label can hold one group only.
    if share is not None and share.devices > 1:
        return {f"{GPU_GROUP_PREFIX}{group}": group for group in groups}
    return {GPU_GROUP_LABEL: groups[0]}


def without_groups(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels without those of groups of pods that share devices."""
    return {
        key: value for key, value in labels.items() if key != GPU_GROUP_LABEL and not key.startswith(GPU_GROUP_PREFIX)
    }


def gpu_groups(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return the groups of pods with which a pod shares its devices, sorted."""
    found = {key[len(GPU_GROUP_PREFIX) :] for key in labels if key.startswith(GPU_GROUP_PREFIX)}
    one = labels.get(GPU_GROUP_LABEL)
    return tuple(sorted(found | ({one} if one else set())))


def node_gpu_memory(labels: Mapping[str, str]) -> int:
    """Return MiB of each device of a node, a multiple of 100, or 0 if unknown. Source: KAI node_info."""
    mib = device_memory(labels)
    # Rounded down as in KAI, so that fractions of equal cards amount to equal memory.
    return mib - mib % 100


def device_memory(labels: Mapping[str, str]) -> int:
    """Return MiB of each device of a node, to the unit, or 0 if unknown."""
    text = labels.get(GPU_MEMORY_LABEL, "")
    value = int(text) if _WHOLE.fullmatch(text) else 0
    # Some versions of the device plugin write bytes instead of MiB.
    return value >> 20 if value >= _BYTES_FROM else value


def gpu_portion(share: GpuShare, gpu_memory_mib: int) -> str:
    """Return the part of each device that a share has, in KAI's form. ``gpu_memory_mib``: of a device of its node."""
    portion = share.fraction or (share.memory_mib / gpu_memory_mib if gpu_memory_mib else 0.0)
    return f"{portion:.2f}"


@lru_cache(maxsize=256)
def mig_gpus(resource: str) -> int:
    """Return how many GPUs a MIG instance counts in a quota (``mig-Ng.Mgb``: N), 0 for other resources."""
    match = _MIG.fullmatch(resource)
    return int(match[1]) if match else 0


def asks_for_gpus(request: Resource, share: GpuShare | None) -> bool:
    """Return True if a pod asks for GPUs: for whole ones, for a share of some, or for MIG instances."""
    return share is not None or any(
        amount > 0 and (name == GPU_RESOURCE or mig_gpus(name)) for name, amount in (request.scalars or {}).items()
    )
