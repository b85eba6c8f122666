"""Fill the config maps from which the container of a pod that shares GPUs reads its devices.

KAI's admission webhook names the maps on the pod and lets the container read variables from them; a map or key that is
missing keeps the container from starting. Source: KAI's binder (gpusharing, hamicore, gpu_access).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import json

from pumice.kube.api.client import Client
from pumice.kube.api.errors import ApiError
from pumice.kube.api.kinds import CONFIG_MAPS, PODS
from pumice.model.devices.gpu import GpuShare, device_memory, gpu_portion, node_gpu_memory
from pumice.model.pod import Pod

_CONFIG_MAP_ANNOTATION = "runai/shared-gpu-configmap"
_CONTAINER_ANNOTATION = "gpu-fraction-container-name"


class NoContainer(Exception):
    """The container that a pod names for its share does not exist."""


async def write_config_maps(client: Client, pod: Pod, indices: Sequence[str], labels: Mapping[str, str]) -> None:
    """Write which devices and how much of each the pod has, if admission named config maps on it.

    ``labels``: of the node. Raises: NoContainer, KubeError.
    """
    prefix, share = pod.annotations.get(_CONFIG_MAP_ANNOTATION), pod.spec.gpu_share
    if not prefix or share is None:
        return
    name = f"{prefix}-{await _container(client, pod)}"
    visible = {"NVIDIA_VISIBLE_DEVICES": ",".join(indices)}
    # In both: a container reads it from the first where its specification names the variable, else from the second.
    await _write(client, pod, name, {**visible, **_amounts(share, indices, labels)})
    await _write(client, pod, f"{name}-evar", visible)


def _amounts(share: GpuShare, indices: Sequence[str], labels: Mapping[str, str]) -> Mapping[str, str]:
    portion = gpu_portion(share, node_gpu_memory(labels))
    found = {"GPU_PORTION": portion, "RUNAI_NUM_OF_GPUS": portion, "RUNAI-VISIBLE-DEVICES": ",".join(indices)}
    # KAI's binder writes it if its plugin hamicore is on. A container reads it only if the webhook's plugin of that
    # name is, so that no switch is needed here.
    if limit := int(device_memory(labels) * float(portion)):
        found["CUDA_DEVICE_MEMORY_LIMIT"] = f"{limit}m"
    return found


async def _container(client: Client, pod: Pod) -> str:
    """Return the place of the container that has the share, with an ``i`` before that of an init container."""
    name = pod.annotations.get(_CONTAINER_ANNOTATION)
    if name is None:
        return "0"
    # Names of containers decide nothing in a cycle, so that no pod is kept with them.
    spec = json.decode(await client.request("GET", PODS.path(pod.key)))["spec"]
    for kind, sign in (("initContainers", "i"), ("containers", "")):
        for i, container in enumerate(spec.get(kind) or ()):
            if container["name"] == name:
                return f"{sign}{i}"
    raise NoContainer(f"annotation {_CONTAINER_ANNOTATION}: the pod has no container {name!r:.80}")


async def _write(client: Client, pod: Pod, name: str, data: Mapping[str, str]) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
    metadata: dict[str, Any] = {"namespace": pod.namespace, "name": name, "ownerReferences": [owner]}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    try:
        await client.post(CONFIG_MAPS.namespace_path(pod.namespace), body)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        await client.patch(CONFIG_MAPS.path(f"{pod.namespace}/{name}"), {"data": data})
