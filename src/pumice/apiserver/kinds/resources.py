"""Kinds of objects: a table of built-in ones, and how a definition becomes one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from pumice.model.manifest.reading.fields import Obj
from pumice.model.workloads.native_group import NATIVE_GROUP

CRDS: Final = "customresourcedefinitions.apiextensions.k8s.io"


class Column(Struct, frozen=True):
    """A column of ``kubectl get``. With a ``priority`` above 0, only ``-o wide`` shows it."""

    name: str
    type: str
    path: str
    priority: int = 0
    description: str = ""


class Resource(Struct, frozen=True):
    """A kind in one version of its group.

    ``status``: it has a status subresource. ``others``: further subresources. ``fields``: fields for field selectors,
    in addition to name and namespace. ``schema``: OpenAPI v3 schema, None if objects are not validated. ``shared``:
    table of the kind of which this one is another form. ``idle``: no part of this server acts on such objects.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    status: bool = False
    others: tuple[str, ...] = ()
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    fields: frozenset[str] = frozenset()
    schema: Obj | None = None
    columns: tuple[Column, ...] = ()
    shared: str = ""
    idle: bool = False
    custom: bool = False
    singular: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def table(self) -> str:
        """The table in the store. Versions of one kind share a table."""
        return self.shared or self.full_name

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def known_fields(self) -> frozenset[str]:
        return self.fields | _NAMING

    def key(self, namespace: str, name: str) -> str:
        return f"{namespace}/{name}" if self.namespaced else name


_NAMING = frozenset({"metadata.name", "metadata.namespace"})
_POD_FIELDS = frozenset(
    {"spec.nodeName", "spec.schedulerName", "spec.restartPolicy", "spec.serviceAccountName", "spec.hostNetwork"}
    | {"status.phase", "status.podIP", "status.nominatedNodeName"}
)
_EVENT_FIELDS = frozenset(
    {
        f"involvedObject.{key}"
        for key in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    }
    | {"reason", "reportingComponent", "source", "type"}
)
_NEW_EVENT_FIELDS = frozenset(
    {f"regarding.{key}" for key in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")}
    | {"reason", "reportingController", "type"}
)


def _core(plural: str, kind: str, **more: object) -> Resource:
    return Resource("", "v1", plural, kind, **more)  # type: ignore[arg-type]  # the fields of Resource, by name


def _wide(group: str, plural: str, kind: str, *short: str, status: bool = False, version: str = "v1") -> Resource:
    return Resource(group, version, plural, kind, namespaced=False, short=short, status=status)


def _idle(group: str, plural: str, kind: str, *short: str) -> Resource:
    others = ("scale",) if plural in ("deployments", "replicasets", "statefulsets") else ()
    return Resource(group, "v1", plural, kind, status=True, others=others, short=short, categories=("all",), idle=True)


_RBAC, _STORAGE, _DEVICES = "rbac.authorization.k8s.io", "storage.k8s.io", "resource.k8s.io"

BUILT_IN: Final[tuple[Resource, ...]] = (
    _core(
        "pods",
        "Pod",
        status=True,
        others=("binding", "ephemeralcontainers", "eviction"),
        short=("po",),
        categories=("all",),
        fields=_POD_FIELDS,
    ),
    _core("nodes", "Node", namespaced=False, status=True, short=("no",), fields=frozenset({"spec.unschedulable"})),
    _core("namespaces", "Namespace", namespaced=False, status=True, short=("ns",), fields=frozenset({"status.phase"})),
    _core("events", "Event", short=("ev",), fields=_EVENT_FIELDS),
    _core("configmaps", "ConfigMap", short=("cm",)),
    _core("secrets", "Secret", fields=frozenset({"type"})),
    _core("serviceaccounts", "ServiceAccount", short=("sa",)),
    _core("services", "Service", status=True, short=("svc",), categories=("all",), idle=True),
    _core("resourcequotas", "ResourceQuota", status=True, short=("quota",)),
    _core("limitranges", "LimitRange", short=("limits",), idle=True),
    _core("persistentvolumeclaims", "PersistentVolumeClaim", status=True, short=("pvc",), idle=True),
    _core("persistentvolumes", "PersistentVolume", namespaced=False, status=True, short=("pv",), idle=True),
    Resource("events.k8s.io", "v1", "events", "Event", short=("ev",), fields=_NEW_EVENT_FIELDS, shared="events"),
    Resource("coordination.k8s.io", "v1", "leases", "Lease", fields=frozenset({"spec.holderIdentity"})),
    Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", short=("netpol",), idle=True),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", status=True, short=("pdb",)),
    _wide("scheduling.k8s.io", "priorityclasses", "PriorityClass", "pc"),
    # All versions share a table, as those of one kind do: an object is served in each.
    *(
        Resource(NATIVE_GROUP, version, "podgroups", "PodGroup", status=True)
        for version in ("v1beta1", "v1alpha3", "v1alpha2")
    ),
    Resource(NATIVE_GROUP, "v1alpha3", "compositepodgroups", "CompositePodGroup", status=True),
    *(Resource(NATIVE_GROUP, version, "workloads", "Workload", idle=True) for version in ("v1beta1", "v1alpha3")),
    # In a table of its own: its fields are not those of later versions, and objects are not converted.
    Resource(NATIVE_GROUP, "v1alpha1", "workloads", "Workload", shared=f"workloads.v1alpha1.{NATIVE_GROUP}"),
    _wide("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", "crd", "crds", status=True),
    _wide(_STORAGE, "storageclasses", "StorageClass", "sc"),
    _wide(_STORAGE, "csinodes", "CSINode"),
    _wide(_STORAGE, "csidrivers", "CSIDriver"),
    Resource(_STORAGE, "v1", "csistoragecapacities", "CSIStorageCapacity"),
    Resource(_DEVICES, "v1", "resourceclaims", "ResourceClaim", status=True),
    Resource(_DEVICES, "v1", "resourceclaimtemplates", "ResourceClaimTemplate"),
    _wide(_DEVICES, "resourceslices", "ResourceSlice"),
    _wide(_DEVICES, "deviceclasses", "DeviceClass"),
    _wide(_RBAC, "clusterroles", "ClusterRole"),
    _wide(_RBAC, "clusterrolebindings", "ClusterRoleBinding"),
    Resource(_RBAC, "v1", "roles", "Role"),
    Resource(_RBAC, "v1", "rolebindings", "RoleBinding"),
    _idle("apps", "deployments", "Deployment", "deploy"),
    _idle("apps", "replicasets", "ReplicaSet", "rs"),
    _idle("apps", "statefulsets", "StatefulSet", "sts"),
    _idle("apps", "daemonsets", "DaemonSet", "ds"),
    Resource("batch", "v1", "jobs", "Job", status=True, categories=("all",)),
    Resource("batch", "v1", "cronjobs", "CronJob", status=True, short=("cj",), categories=("all",)),
)


def defined(crd: Obj) -> list[Resource]:
    """Return the resources that a CustomResourceDefinition defines: one for each served version."""
    spec = crd["spec"]
    names = spec["names"]
    return [
        Resource(
            group=spec["group"],
            version=version["name"],
            plural=names["plural"],
            kind=names["kind"],
            namespaced=spec.get("scope") == "Namespaced",
            status="status" in (version.get("subresources") or {}),
            short=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            fields=frozenset(each["jsonPath"].lstrip(".") for each in version.get("selectableFields") or ()),
            schema=(version.get("schema") or {}).get("openAPIV3Schema"),
            columns=tuple(_columns(version.get("additionalPrinterColumns") or ())),
            custom=True,
            singular=names.get("singular") or names["kind"].lower(),
        )
        for version in spec["versions"]
        if version.get("served")
    ]


def _columns(given: Iterable[Obj]) -> list[Column]:
    return [
        Column(c["name"], c.get("type", "string"), c["jsonPath"], c.get("priority", 0), c.get("description", ""))
        for c in given
    ]
