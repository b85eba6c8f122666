"""Claims of devices, and devices to claim, in a few words."""

from __future__ import annotations

from typing import Any

from pumice.model.claims import (
    Device,
    DeviceAttribute,
    DeviceOption,
    DeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from pumice.model.pod import NodeSelectorTerm


def asked(*selectors: str, **counts: int) -> tuple[DeviceRequest, ...]:
    """A request for each class: so many devices, as ``selectors`` want them. ``gpu_com`` stands for ``gpu.com``."""
    return tuple(
        DeviceRequest(f"r{i}", (DeviceOption(name.replace("_", "."), count, selectors=selectors),))
        for i, (name, count) in enumerate(counts.items())
    )


def claim(name: str, *selectors: str, namespace: str = "ns", **counts: int) -> ResourceClaim:
    """A claim of so many devices by class."""
    return ResourceClaim(namespace, name, asked(*selectors, **counts))


def claim_template(name: str, *selectors: str, namespace: str = "ns", **counts: int) -> ResourceClaimTemplate:
    """The same for each pod that names it."""
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
    """So many devices on a node, or one with each of these attributes; without a node, on those that ``nodes`` select,
    or on all."""
    devices = tuple(
        Device(str(i), tuple(_attribute(name, value) for name, value in sorted(attributes.items())))
        for i, attributes in enumerate(each or ({},) * count)
    )
    return ResourceSlice(f"{node or 'net'}-{driver}", driver, node or "net", node, nodes, devices, **more)


def _attribute(name: str, value: Any) -> DeviceAttribute:
    kind = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "string"
    return DeviceAttribute(name, kind, ("true" if value else "") if kind == "bool" else str(value))
