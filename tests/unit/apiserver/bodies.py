"""The smallest whole object of each kind that is served, as a real server would take it."""

from __future__ import annotations

from typing import Any, Final

from pumice.apiserver.kinds.resources import Resource

_CONTAINERS: Final = [{"name": "c", "image": "i:1"}]
_LABELS: Final = {"app": "x"}
_POD: Final = {"containers": _CONTAINERS}
_TEMPLATE: Final = {"metadata": {"labels": _LABELS}, "spec": _POD}
_WORKLOAD: Final = {"spec": {"selector": {"matchLabels": _LABELS}, "template": _TEMPLATE}}
_ONCE: Final = {**_POD, "restartPolicy": "Never"}
_JOB: Final = {"minAvailable": 1, "tasks": [{"name": "t", "replicas": 1, "template": {"spec": _ONCE}}]}
_ABOUT: Final = {"kind": "Pod", "name": "p", "namespace": "default"}
_ROLE: Final = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}
_WIDGET: Final = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}

_BODIES: Final[dict[tuple[str, str], dict[str, Any]]] = {
    ("", "Event"): {"involvedObject": _ABOUT, "reason": "r", "message": "m", "type": "Normal"},
    ("", "PersistentVolume"): {
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    },
    ("", "PersistentVolumeClaim"): {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    ("", "Pod"): {"spec": _POD},
    ("", "LimitRange"): {"spec": {"limits": [{"type": "Container"}]}},
    ("", "Service"): {"spec": {"ports": [{"port": 80}]}},
    ("apiextensions.k8s.io", "CustomResourceDefinition"): {
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [_WIDGET],
        }
    },
    ("apps", "DaemonSet"): _WORKLOAD,
    ("apps", "Deployment"): _WORKLOAD,
    ("apps", "ReplicaSet"): _WORKLOAD,
    ("apps", "StatefulSet"): {"spec": {**_WORKLOAD["spec"], "serviceName": "s"}},
    ("batch", "CronJob"): {"spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": _ONCE}}}}},
    ("batch", "Job"): {"spec": {"template": {"spec": _ONCE}}},
    ("batch.volcano.sh", "CronJob"): {"spec": {"schedule": "@daily", "jobTemplate": {"spec": _JOB}}},
    ("batch.volcano.sh", "Job"): {"spec": _JOB},
    ("flow.volcano.sh", "JobFlow"): {"spec": {"flows": [{"name": "t"}], "jobRetainPolicy": "retain"}},
    ("flow.volcano.sh", "JobTemplate"): {"spec": _JOB},
    ("bus.volcano.sh", "Command"): {
        "action": "AbortJob",
        "target": {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "name": "j",
            "uid": "u",
            "controller": True,
        },
    },
    ("events.k8s.io", "Event"): {
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "c",
        "reportingInstance": "i",
        "action": "a",
        "reason": "r",
        "regarding": _ABOUT,
        "type": "Normal",
    },
    ("policy", "PodDisruptionBudget"): {"spec": {"minAvailable": 1, "selector": {"matchLabels": _LABELS}}},
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): {"roleRef": _ROLE},
    ("rbac.authorization.k8s.io", "RoleBinding"): {"roleRef": _ROLE},
    ("resource.k8s.io", "DeviceClass"): {"spec": {}},
    ("resource.k8s.io", "ResourceClaim"): {"spec": {}},
    ("resource.k8s.io", "ResourceClaimTemplate"): {"spec": {"spec": {}}},
    ("resource.k8s.io", "ResourceSlice"): {
        "spec": {"driver": "d", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}
    },
    ("scheduling.k8s.io", "PodGroup"): {"spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}},
    ("scheduling.k8s.io", "CompositePodGroup"): {
        "spec": {
            "schedulingPolicy": {"gang": {"minGroupCount": 1}},
            "workloadRef": {"workloadName": "w", "templateName": "t"},
        }
    },
    ("scheduling.k8s.io", "PriorityClass"): {"value": 1},
    ("scheduling.k8s.io", "Workload"): {
        "spec": {"podGroupTemplates": [{"name": "t", "schedulingPolicy": {"basic": {}}}]},
    },
    ("scheduling.volcano.sh", "PodGroup"): {"spec": {"minMember": 1}},
    ("scheduling.volcano.sh", "Queue"): {"spec": {"weight": 1}},
    ("shard.volcano.sh", "NodeShard"): {"spec": {"nodesDesired": ["n"]}},
    ("storage.k8s.io", "CSIDriver"): {"spec": {}},
    ("storage.k8s.io", "CSINode"): {"spec": {"drivers": []}},
    ("storage.k8s.io", "CSIStorageCapacity"): {"storageClassName": "s"},
    ("storage.k8s.io", "StorageClass"): {"provisioner": "p"},
    ("topology.volcano.sh", "HyperNode"): {
        "spec": {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "n"}}}]}
    },
}


def body(resource: Resource) -> dict[str, Any]:
    name = "widgets.example.com" if resource.kind == "CustomResourceDefinition" else "mine"
    metadata = {"name": name, **({"namespace": "default"} if resource.namespaced else {})}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        **_BODIES.get((resource.group, resource.kind), {}),
    }
