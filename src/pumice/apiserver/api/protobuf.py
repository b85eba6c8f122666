"""Decode bodies in Kubernetes' protobuf format, for kinds that kubectl itself writes so (``kubectl create namespace``).

Only requests are decoded; answers are JSON, which every client accepts. Source: the ``generated.proto`` files of
Kubernetes' API, whose field numbers never change.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from pumice.apiserver.refusals import bad_request, unsupported_media
from pumice.model.manifest.reading.fields import Obj

MEDIA: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_ENTRIES_MAX = 50_000  # limit of fields in one message

_BOUND: Final = {1: ("metadata", "ObjectMeta"), 2: ("subjects", "[]Subject"), 3: ("roleRef", "RoleRef")}
#: Messages that decide where pods run. An unknown field in them is refused and not ignored.
_WHOLE: Final = frozenset({"DeploymentSpec", "JobSpec", "PodSpec", "Container"})
_JSON_INSTEAD: Final = "application/json; kubectl has it so by --dry-run=client -o json | kubectl create -f -"
#: Message -> number of a field -> (name, type). ``type?``: zero is a value; ``[]type``: a list; ``{}type``: by name.
_MESSAGES: Final[dict[str, dict[int, tuple[str, str]]]] = {
    "Unknown": {1: ("typeMeta", "TypeMeta"), 2: ("raw", "raw")},
    "TypeMeta": {1: ("apiVersion", "string"), 2: ("kind", "string")},
    "ObjectMeta": {
        1: ("name", "string"),
        2: ("generateName", "string"),
        3: ("namespace", "string"),
        5: ("uid", "string"),
        6: ("resourceVersion", "string"),
        11: ("labels", "{}string"),
        12: ("annotations", "{}string"),
        13: ("ownerReferences", "[]OwnerReference"),
        14: ("finalizers", "[]string"),
    },
    "OwnerReference": {
        1: ("kind", "string"),
        3: ("name", "string"),
        4: ("uid", "string"),
        5: ("apiVersion", "string"),
        6: ("controller", "bool?"),
        7: ("blockOwnerDeletion", "bool?"),
    },
    "v1 Namespace": {1: ("metadata", "ObjectMeta")},
    "v1 ServiceAccount": {1: ("metadata", "ObjectMeta")},
    "v1 ConfigMap": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "{}string"),
        3: ("binaryData", "{}bytes"),
        4: ("immutable", "bool?"),
    },
    "v1 Secret": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "{}bytes"),
        3: ("type", "string"),
        4: ("stringData", "{}string"),
        5: ("immutable", "bool?"),
    },
    "v1 ResourceQuota": {1: ("metadata", "ObjectMeta"), 2: ("spec", "ResourceQuotaSpec")},
    "ResourceQuotaSpec": {1: ("hard", "{}Quantity"), 2: ("scopes", "[]string")},
    "v1 Binding": {1: ("metadata", "ObjectMeta"), 2: ("target", "ObjectReference")},
    "ObjectReference": {
        1: ("kind", "string"),
        2: ("namespace", "string"),
        3: ("name", "string"),
        4: ("uid", "string"),
        5: ("apiVersion", "string"),
        6: ("resourceVersion", "string"),
        7: ("fieldPath", "string"),
    },
    "scheduling.k8s.io/v1 PriorityClass": {
        1: ("metadata", "ObjectMeta"),
        2: ("value", "int?"),
        3: ("globalDefault", "bool"),
        4: ("description", "string"),
        5: ("preemptionPolicy", "string"),
    },
    "policy/v1 Eviction": {1: ("metadata", "ObjectMeta"), 2: ("deleteOptions", "DeleteOptions")},
    "policy/v1 PodDisruptionBudget": {1: ("metadata", "ObjectMeta"), 2: ("spec", "PodDisruptionBudgetSpec")},
    "PodDisruptionBudgetSpec": {
        1: ("minAvailable", "IntOrString"),
        2: ("selector", "LabelSelector"),
        3: ("maxUnavailable", "IntOrString"),
    },
    "LabelSelector": {1: ("matchLabels", "{}string"), 2: ("matchExpressions", "[]Requirement")},
    "Requirement": {1: ("key", "string"), 2: ("operator", "string"), 3: ("values", "[]string")},
    "DeleteOptions": {
        1: ("gracePeriodSeconds", "int?"),
        2: ("preconditions", "Preconditions"),
        4: ("propagationPolicy", "string"),
        5: ("dryRun", "[]string"),
    },
    "Preconditions": {1: ("uid", "string"), 2: ("resourceVersion", "string")},
    "coordination.k8s.io/v1 Lease": {1: ("metadata", "ObjectMeta"), 2: ("spec", "LeaseSpec")},
    "LeaseSpec": {
        1: ("holderIdentity", "string?"),
        2: ("leaseDurationSeconds", "int?"),
        3: ("acquireTime", "time"),
        4: ("renewTime", "time"),
        5: ("leaseTransitions", "int?"),
    },
    "authorization.k8s.io/v1 SelfSubjectAccessReview": {1: ("metadata", "ObjectMeta")},
    "authorization.k8s.io/v1 SelfSubjectRulesReview": {1: ("metadata", "ObjectMeta")},
    "authentication.k8s.io/v1 SelfSubjectReview": {1: ("metadata", "ObjectMeta")},
    "rbac.authorization.k8s.io/v1 Role": {1: ("metadata", "ObjectMeta"), 2: ("rules", "[]PolicyRule")},
    "rbac.authorization.k8s.io/v1 ClusterRole": {1: ("metadata", "ObjectMeta"), 2: ("rules", "[]PolicyRule")},
    "PolicyRule": {
        1: ("verbs", "[]string"),
        2: ("apiGroups", "[]string"),
        3: ("resources", "[]string"),
        4: ("resourceNames", "[]string"),
        5: ("nonResourceURLs", "[]string"),
    },
    "rbac.authorization.k8s.io/v1 RoleBinding": _BOUND,
    "rbac.authorization.k8s.io/v1 ClusterRoleBinding": _BOUND,
    "Subject": {1: ("kind", "string"), 2: ("apiGroup", "string"), 3: ("name", "string"), 4: ("namespace", "string")},
    "RoleRef": {1: ("apiGroup", "string"), 2: ("kind", "string"), 3: ("name", "string")},
    "v1 Service": {1: ("metadata", "ObjectMeta"), 2: ("spec", "ServiceSpec")},
    "ServiceSpec": {
        1: ("ports", "[]ServicePort"),
        2: ("selector", "{}string"),
        3: ("clusterIP", "string"),
        4: ("type", "string"),
        5: ("externalIPs", "[]string"),
        7: ("sessionAffinity", "string"),
        10: ("externalName", "string"),
    },
    "ServicePort": {
        1: ("name", "string"),
        2: ("protocol", "string"),
        3: ("port", "int"),
        4: ("targetPort", "IntOrString"),
        5: ("nodePort", "int"),
    },
    "apps/v1 Deployment": {1: ("metadata", "ObjectMeta"), 2: ("spec", "DeploymentSpec")},
    "DeploymentSpec": {
        1: ("replicas", "int?"),
        2: ("selector", "LabelSelector"),
        3: ("template", "PodTemplateSpec"),
        4: ("strategy", "DeploymentStrategy"),
        5: ("minReadySeconds", "int"),
        6: ("revisionHistoryLimit", "int?"),
        7: ("paused", "bool"),
        9: ("progressDeadlineSeconds", "int?"),
    },
    "DeploymentStrategy": {1: ("type", "string")},
    "batch/v1 Job": {1: ("metadata", "ObjectMeta"), 2: ("spec", "JobSpec")},
    "JobSpec": {
        1: ("parallelism", "int?"),
        2: ("completions", "int?"),
        3: ("activeDeadlineSeconds", "int?"),
        6: ("template", "PodTemplateSpec"),
        7: ("backoffLimit", "int?"),
        8: ("ttlSecondsAfterFinished", "int?"),
    },
    "PodTemplateSpec": {1: ("metadata", "ObjectMeta"), 2: ("spec", "PodSpec")},
    "PodSpec": {
        2: ("containers", "[]Container"),
        3: ("restartPolicy", "string"),
        4: ("terminationGracePeriodSeconds", "int?"),
        5: ("activeDeadlineSeconds", "int?"),
        6: ("dnsPolicy", "string"),
        7: ("nodeSelector", "{}string"),
        8: ("serviceAccountName", "string"),
        9: ("serviceAccount", "string"),
        10: ("nodeName", "string"),
        11: ("hostNetwork", "bool"),
        12: ("hostPID", "bool"),
        13: ("hostIPC", "bool"),
        16: ("hostname", "string"),
        17: ("subdomain", "string"),
        19: ("schedulerName", "string"),
        24: ("priorityClassName", "string"),
        25: ("priority", "int?"),
    },
    "Container": {
        1: ("name", "string"),
        2: ("image", "string"),
        3: ("command", "[]string"),
        4: ("args", "[]string"),
        5: ("workingDir", "string"),
        6: ("ports", "[]ContainerPort"),
        8: ("resources", "ResourceRequirements"),
        13: ("terminationMessagePath", "string"),
        14: ("imagePullPolicy", "string"),
        16: ("stdin", "bool"),
        17: ("stdinOnce", "bool"),
        18: ("tty", "bool"),
        20: ("terminationMessagePolicy", "string"),
    },
    "ContainerPort": {
        1: ("name", "string"),
        2: ("hostPort", "int"),
        3: ("containerPort", "int"),
        4: ("protocol", "string"),
        5: ("hostIP", "string"),
    },
    "ResourceRequirements": {1: ("limits", "{}Quantity"), 2: ("requests", "{}Quantity")},
    "Quantity": {1: ("text", "string")},
    "IntOrString": {1: ("type", "int"), 2: ("number", "int?"), 3: ("text", "string?")},
    "Time": {1: ("seconds", "int?"), 2: ("nanos", "int?")},
}
_KIND = {"v1 DeleteOptions": "DeleteOptions", "meta.k8s.io/v1 DeleteOptions": "DeleteOptions"}


def decoded(raw: bytes) -> Obj:
    """Return the object in a body. Raises: Refusal 400 for an invalid body, 415 for a kind that is not supported."""
    if not raw.startswith(_MAGIC):
        raise bad_request("the body is not Kubernetes protobuf")
    try:
        envelope = _message("Unknown", raw[len(_MAGIC) :])
        head = envelope.get("typeMeta", {})
        kind = f"{head.get('apiVersion', '')} {head.get('kind', '')}"
        name = _KIND.get(kind, kind)
        if " " in name and name not in _MESSAGES:
            raise unsupported_media(f"{MEDIA} of {kind}", _JSON_INSTEAD)
        return {**head, **_message(name, envelope.get("raw", b""))}
    except (IndexError, ValueError, OverflowError) as error:
        raise bad_request(f"the body is not Kubernetes protobuf: {error}") from None


def _message(name: str, raw: bytes) -> Obj:
    fields = _MESSAGES[name]
    found: Obj = {}
    for number, value in _entries(raw):
        if number not in fields:
            if name in _WHOLE and value:
                raise unsupported_media(f"{MEDIA} with field {number} of {name}", _JSON_INSTEAD)
            continue
        key, kind = fields[number]
        if kind.startswith("[]"):
            found.setdefault(key, []).append(_value(kind[2:], value))
        elif kind.startswith("{}"):
            pair = dict(_entries(_bytes(value)))
            found.setdefault(key, {})[_bytes(pair.get(1, b"")).decode()] = _value(kind[2:], pair.get(2, b""))
        elif (read := _value(kind.rstrip("?"), value)) or kind.endswith("?"):
            found[key] = read
    return found


def _value(kind: str, value: int | bytes) -> Any:
    if kind in ("int", "bool"):
        if not isinstance(value, int):
            raise ValueError("bytes where a number was wanted")
        return bool(value) if kind == "bool" else value - (1 << 64) if value >> 63 else value
    data = _bytes(value)
    match kind:
        case "string":
            return data.decode()
        case "bytes":
            return base64.b64encode(data).decode()
        case "raw":
            return data
        case "Quantity":
            return _message(kind, data).get("text", "0")
        case "IntOrString":
            read = _message(kind, data)
            return read.get("text", "") if read.get("type") else read.get("number", 0)
        case "time":
            read = _message("Time", data)
            moment = datetime.fromtimestamp(read.get("seconds", 0), UTC)
            return f"{moment:%Y-%m-%dT%H:%M:%S}.{read.get('nanos', 0) // 1000:06d}Z"
    return _message(kind, data)


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where bytes were wanted")
    return value


def _entries(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield (number, value) of each field, in order."""
    at = 0
    for _ in range(_ENTRIES_MAX):
        if at >= len(raw):
            return
        tag, at = _varint(raw, at)
        match tag & 7:
            case 0:
                value, at = _varint(raw, at)
                yield tag >> 3, value
            case 2:
                length, at = _varint(raw, at)
                if at + length > len(raw):
                    raise ValueError("it ends within a field")
                yield tag >> 3, raw[at : at + length]
                at += length
            case 1:
                at += 8
            case 5:
                at += 4
            case other:
                raise ValueError(f"wire type {other}")
    raise ValueError(f"a message of more than {_ENTRIES_MAX} fields")


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a number of more than ten bytes")
