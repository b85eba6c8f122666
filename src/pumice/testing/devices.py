"""Build claims of devices, devices to claim, and shared cards in a few words."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from pumice.model.devices import shared_devices
from pumice.model.devices.claims import (
    Device,
    DeviceAttribute,
    DeviceOption,
    DeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from pumice.model.devices.shared_devices import REGISTER_ANNOTATION, VGPU_CORES, VGPU_MEMORY, VGPU_NUMBER, DeviceAsk
from pumice.model.node import Node
from pumice.model.pod import NodeSelectorTerm
from pumice.testing.build import node as plain_node
from pumice.testing.build import resource


def asked(*selectors: str, **counts: int) -> tuple[DeviceRequest, ...]:
    """Return a request per class for a number of devices with ``selectors``. ``gpu_com`` means ``gpu.com``."""
    return tuple(
        DeviceRequest(f"r{i}", (DeviceOption(name.replace("_", "."), count, selectors=selectors),))
        for i, (name, count) in enumerate(counts.items())
    )


def claim(name: str, *selectors: str, namespace: str = "ns", **counts: int) -> ResourceClaim:
    """Return a claim for numbers of devices by class."""
    return ResourceClaim(namespace, name, asked(*selectors, **counts))


def claim_template(name: str, *selectors: str, namespace: str = "ns", **counts: int) -> ResourceClaimTemplate:
    """Return a template for claims of each pod that names it."""
    return ResourceClaimTemplate(namespace, name, asked(*selectors, **counts))


def offered(
    node: str,
    count: int = 0,
    *,
    driver: str = "gpu.com",
    each: tuple[dict[str, Any], ...] = (),
    nodes: tuple[NodeSelectorTerm, ...] = (),
    **more: Any,
) -> ResourceSlice:
    """Return a number of devices on a node, or one with each of these attributes; without a node, on those that
    ``nodes`` selects, or on all."""
    devices = tuple(
        Device(str(i), tuple(_attribute(name, value) for name, value in sorted(attributes.items())))
        for i, attributes in enumerate(each or ({},) * count)
    )
    return ResourceSlice(f"{node or 'net'}-{driver}", driver, node or "net", node, nodes, devices, **more)


def _attribute(name: str, value: Any) -> DeviceAttribute:
    kind = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "string"
    return DeviceAttribute(name, kind, ("true" if value else "") if kind == "bool" else str(value))


def shared_gpus(name: str, count: int = 1, memory: int = 16_384, *, mode: str = "hami-core", **more: Any) -> Node:
    """Return a node with GPUs that pods share as vGPUs, named ``<name>-0``, …; ``more``: as for ``build.node``."""
    listed = "".join(f"{name}-{i},10,{memory},NVIDIA-A30,true,{mode}:" for i in range(count))
    offered = {VGPU_NUMBER: 10 * count, VGPU_CORES: 100 * count, VGPU_MEMORY: memory * count}
    amount = resource(8, "32Gi", pods=110, **offered)
    annotations = {REGISTER_ANNOTATION: listed, **more.pop("annotations", {})}
    return replace(plain_node(name, annotations=annotations, **more), allocatable=amount, capacity=amount)


def vgpu(memory: int = 0, number: int = 1, cores: int = 0, **annotations: str) -> DeviceAsk:
    """Return what a pod of one container asks of vGPUs: MiB of each card. ``annotations``: values by names of constants
    in ``model.devices.shared_devices``, in lower case and without ``_annotation``."""
    named = {VGPU_NUMBER: number, VGPU_MEMORY: memory, VGPU_CORES: cores}
    limits = tuple(sorted((name, amount) for name, amount in named.items() if amount))
    said = {getattr(shared_devices, f"{name.upper()}_ANNOTATION"): value for name, value in annotations.items()}
    return DeviceAsk((limits,), (), tuple(sorted(said.items())))
