"""The parts of objects that are read. Everything else is skipped while decoding and never becomes a Python object.

These are dictionaries, not structs: they go to ``model.manifest``, so that there is one reading of manifests. Whatever
a reader asks for must be named here; ``tests/unit/kube/api/test_codec.py`` compares both. Fields are ``Any`` if the
reader checks them, because its messages name path, found and wanted.
"""

from __future__ import annotations

from typing import Any, TypedDict


class Meta(TypedDict, total=False):
    name: Any
    namespace: Any
    uid: Any
    resourceVersion: Any
    creationTimestamp: Any
    deletionTimestamp: Any
    labels: Any
    annotations: Any
    ownerReferences: Any


class OnlyMeta(TypedDict, total=False):
    metadata: Meta | None


class _ConfigMapRef(TypedDict, total=False):
    name: Any
    optional: Any


class _Source(TypedDict, total=False):
    configMap: _ConfigMapRef | None
    configMapRef: _ConfigMapRef | None
    configMapKeyRef: _ConfigMapRef | None


class _Variable(TypedDict, total=False):
    valueFrom: _Source | None


class _Mount(TypedDict, total=False):
    name: Any


class _Projected(TypedDict, total=False):
    sources: list[_Source] | None


class _Container(TypedDict, total=False):
    env: list[_Variable] | None
    envFrom: list[_Source] | None
    volumeMounts: list[_Mount] | None
    name: Any
    image: Any
    resources: Any
    ports: Any
    restartPolicy: Any


class _Volume(TypedDict, total=False):
    name: Any
    persistentVolumeClaim: Any
    ephemeral: Any
    configMap: _ConfigMapRef | None
    projected: _Projected | None


class _PodSpec(TypedDict, total=False):
    containers: list[_Container] | None
    initContainers: list[_Container] | None
    volumes: list[_Volume] | None
    nodeSelector: Any
    affinity: Any
    tolerations: Any
    topologySpreadConstraints: Any
    resources: Any
    overhead: Any
    resourceClaims: Any
    hostNetwork: Any
    priority: Any
    priorityClassName: Any
    preemptionPolicy: Any
    schedulerName: Any
    nodeName: Any
    schedulingGates: Any
    schedulingGroup: Any
    workloadRef: Any


class _Terminated(TypedDict, total=False):
    finishedAt: Any


class _ContainerState(TypedDict, total=False):
    terminated: _Terminated | None


class _ContainerStatus(TypedDict, total=False):
    name: Any
    state: _ContainerState | None
    resources: Any
    allocatedResources: Any


class _PodStatus(TypedDict, total=False):
    phase: Any
    startTime: Any
    nominatedNodeName: Any
    conditions: Any
    containerStatuses: list[_ContainerStatus] | None
    initContainerStatuses: list[_ContainerStatus] | None
    resourceClaimStatuses: Any


class ConfigMap(OnlyMeta):
    """Without its contents, which may be large."""


class Pod(TypedDict, total=False):
    metadata: Meta | None
    spec: _PodSpec | None
    status: _PodStatus | None


class _NodeSpec(TypedDict, total=False):
    taints: Any
    unschedulable: Any


class _NodeStatus(TypedDict, total=False):
    allocatable: Any
    capacity: Any
    images: Any


class Node(TypedDict, total=False):
    metadata: Meta | None
    spec: _NodeSpec | None
    status: _NodeStatus | None


class PriorityClass(TypedDict, total=False):
    metadata: Meta | None
    value: Any
    globalDefault: Any
    preemptionPolicy: Any


class StorageClass(TypedDict, total=False):
    metadata: Meta | None
    provisioner: Any
    volumeBindingMode: Any
    allowedTopologies: Any


class CSIStorageCapacity(TypedDict, total=False):
    metadata: Meta | None
    storageClassName: Any
    nodeTopology: Any
    capacity: Any
    maximumVolumeSize: Any


class Other(TypedDict, total=False):
    """Small objects: only what the server adds for itself is left out."""

    metadata: Meta | None
    spec: Any
    status: Any
