"""Claims of devices that a tenant may write so that they are costly to answer, and the devices of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pumice.model.devices.claims import Device, DeviceAttribute, DeviceClass, ResourceSlice

Raw = dict[str, Any]

DRIVER, CLASS = "device.example.com", "device"
#: By language what its groups of pods are.
GROUP_API = {"volcano": "scheduling.volcano.sh/v1beta1", "kai": "scheduling.run.ai/v2alpha2"}
_ON_A_NODE = 8
#: Requests of a claim, in turn; devices of a node agree in an attribute by halves.
_REQUESTS = (6, 7, 8, 9)


def device_slices(nodes: int) -> Iterator[ResourceSlice | DeviceClass]:
    """Yield a class, and devices of each node: half of them agree in an attribute, and no two of the cluster are
    equal."""
    yield DeviceClass(CLASS, ())
    for i in range(nodes):
        devices = tuple(_device(i, k) for k in range(_ON_A_NODE))
        yield ResourceSlice(f"slice-{i}", DRIVER, f"pool-{i}", f"node-{i:05d}", (), devices)


def _device(i: int, k: int) -> Device:
    return Device(
        f"device-{k}",
        (
            DeviceAttribute("half", "string", f"{i}-{k % 2}"),
            DeviceAttribute("number", "int", str(_ON_A_NODE * i + k)),
        ),
    )


def _agreeing(namespace: str, i: int) -> Raw:
    """Return a claim with more requests that must agree in an attribute than devices of a node do."""
    requests = [
        {"name": f"r{i}-{k}", "exactly": {"deviceClassName": CLASS}} for k in range(_REQUESTS[i % len(_REQUESTS)])
    ]
    # Two attributes, so that counting the values of one is not all there is to it.
    constraints = [{"matchAttribute": f"{DRIVER}/half"}]
    return _claim(namespace, i, {"requests": requests, "constraints": constraints})


def _selecting(namespace: str, i: int) -> Raw:
    """Return a claim with selectors that no other claim has: a loop within a loop, behind a comment; one that fails;
    long ones."""
    numbers = ", ".join(str(each) for each in range(i, i + 200))
    expressions = (
        f"[{numbers}].exists( // (\n a, [{numbers}].exists(b, a == b && b < 0))",
        f"device.attributes['{DRIVER}'].number / ({i} - {i}) == 0",
        f"[{numbers}].exists(a, device.attributes['{DRIVER}'].number == a)",
        " || ".join(f"device.attributes['{DRIVER}'].number == {1_000_000 + i + k}" for k in range(30)),
    )
    return _selected(namespace, i, expressions[i % len(expressions)])


def _matching(namespace: str, i: int) -> Raw:
    """Return a claim with patterns that no other claim has: one about as large as it may be; one that is larger; many
    in one selector; one for each of 200 numbers."""
    value, numbers = f"device.attributes['{DRIVER}'].half", ", ".join(map(str, range(200)))
    expressions = (
        f"{value}.matches(r'\\pL{{8}}{i}')",
        f"{value}.matches(r'\\pL{{100}}{i}')",
        " || ".join(f"{value}.matches('[a-z]{{{30 + k}}}{i}')" for k in range(25)),
        f"[{numbers}].exists(a, {value}.matches('[a-z]{{30}}{i}') && a < 0)",
    )
    return _selected(namespace, i, expressions[i % len(expressions)])


def _selected(namespace: str, i: int, expression: str) -> Raw:
    """Return a claim for one device that a selector takes."""
    exactly = {"deviceClassName": CLASS, "selectors": [{"cel": {"expression": expression}}]}
    return _claim(namespace, i, {"requests": [{"name": "r", "exactly": exactly}]})


def _claim(namespace: str, i: int, devices: Raw) -> Raw:
    name = f"claim-{i}"
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"namespace": namespace, "name": name, "uid": name},
        "spec": {"devices": devices},
    }


#: By kind the claim with a number.
DEVICES: dict[str, Callable[[str, int], Raw]] = {"claims": _agreeing, "cel": _selecting, "patterns": _matching}
