"""Pods with long lists, as a tenant may write them.

Each list is a function of the pod's number and the number of entries. No two pods have equal entries, so that nothing
that is computed for one of them serves another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pumice.model.manifest.reading.bounds import (
    CLAIMS_MAX,
    CONTAINERS_MAX,
    ENTRIES_MAX,
    GATES_MAX,
    NODE_TERMS_MAX,
    POD_TERMS_MAX,
    PORTS_MAX,
    VALUES_MAX,
)

Spec = dict[str, Any]

_HOSTNAME = "kubernetes.io/hostname"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def _selector(i: int, k: int) -> Spec:
    return {"matchLabels": {"app": f"a{i}-{k}"}}


def _pod_terms(side: str, rule: str, *, by_key: bool) -> Callable[[int, int], Spec]:
    def made(i: int, count: int) -> Spec:
        terms: list[Any] = [
            {"labelSelector": _selector(i, 0 if by_key else k), "topologyKey": f"k{i}-{k}" if by_key else _HOSTNAME}
            for k in range(count)
        ]
        if rule == _PREFERRED:
            terms = [{"weight": 1 + k % 100, "podAffinityTerm": term} for k, term in enumerate(terms)]
        return {"affinity": {side: {rule: terms}}}

    return made


def _spread(kind: str, *, by_key: bool) -> Callable[[int, int], Spec]:
    return lambda i, count: {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": f"k{i}-{k}" if by_key else _HOSTNAME,
                "whenUnsatisfiable": kind,
                "labelSelector": _selector(i, k),
            }
            for k in range(count)
        ]
    }


def _node_terms(i: int, count: int) -> Spec:
    terms = [{"matchExpressions": [{"key": f"k{i}-{k}", "operator": "DoesNotExist"}]} for k in range(count)]
    return {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}}}


def _node_preferences(i: int, count: int) -> Spec:
    return {
        "affinity": {
            "nodeAffinity": {
                _PREFERRED: [
                    {"weight": 1, "preference": {"matchExpressions": [{"key": f"k{i}-{k}", "operator": "Exists"}]}}
                    for k in range(count)
                ]
            }
        }
    }


def _node_expressions(i: int, count: int) -> Spec:
    each = [{"key": _HOSTNAME, "operator": "NotIn", "values": [f"x{i}-{k}"]} for k in range(count)]
    return {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": each}]}}}}


def _node_values(i: int, count: int) -> Spec:
    each = [{"key": _HOSTNAME, "operator": "NotIn", "values": [f"x{i}-{k}" for k in range(count)]}]
    return {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": each}]}}}}


def _anti(*terms: Spec) -> Spec:
    return {"affinity": {"podAntiAffinity": {_REQUIRED: list(terms)}}}


def _anti_not(i: int, count: int) -> Spec:
    """Return terms about every pod, so that no label tells which of them to examine."""
    without = [
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [f"n{i}-{k}"]}]} for k in range(count)
    ]
    return _anti(*({"labelSelector": selector, "topologyKey": _HOSTNAME} for selector in without))


def _namespaces(i: int, count: int) -> Spec:
    names = [f"n{i}-{k}" for k in range(count)]
    return _anti({"labelSelector": _selector(i, 0), "topologyKey": _HOSTNAME, "namespaces": names})


def _tolerations(i: int, count: int) -> Spec:
    return {"tolerations": [{"key": f"t{i}-{k}", "operator": "Exists"} for k in range(count)]}


def _claims(i: int, count: int) -> Spec:
    return {"resourceClaims": [{"name": f"r{k}", "resourceClaimName": f"r{i}-{k}"} for k in range(count)]}


def _volumes(i: int, count: int) -> Spec:
    claims = [{"claimName": f"v{i}-{k}"} for k in range(count)]
    return {"volumes": [{"name": f"v{k}", "persistentVolumeClaim": claim} for k, claim in enumerate(claims)]}


def _ports(i: int, count: int) -> Spec:
    ports = [{"containerPort": 80, "hostPort": 1 + (i + 7 * k) % 65_535} for k in range(count)]
    return {"containers": [{"name": "c", "image": "x", "ports": ports}]}


def _containers(i: int, count: int) -> Spec:
    return {"containers": [{"name": f"c{k}", "image": f"x{i}-{k}"} for k in range(count)]}


def _in_selector(key: str, operator: str, *, valued: bool) -> Callable[[int, int], Spec]:
    """Return a function that makes one required anti-affinity term with a long selector, of values or of
    expressions."""

    def made(i: int, count: int) -> Spec:
        names = [f"x{i}-{k}" for k in range(count)]
        several = [{"key": name, "operator": operator} for name in names]
        each = [{"key": key, "operator": operator, "values": names}] if valued else several
        return _anti({"labelSelector": {"matchExpressions": each}, "topologyKey": _HOSTNAME})

    return made


#: By name: the largest count that is read, and a function for the spec of pod ``i`` with so many entries.
LISTS: dict[str, tuple[int, Callable[[int, int], Spec]]] = {
    "anti": (POD_TERMS_MAX, _pod_terms("podAntiAffinity", _REQUIRED, by_key=False)),
    "anti-keys": (POD_TERMS_MAX, _pod_terms("podAntiAffinity", _REQUIRED, by_key=True)),
    "anti-not": (POD_TERMS_MAX, _anti_not),
    "near": (POD_TERMS_MAX, _pod_terms("podAffinity", _REQUIRED, by_key=False)),
    "near-keys": (POD_TERMS_MAX, _pod_terms("podAffinity", _REQUIRED, by_key=True)),
    "preferred": (POD_TERMS_MAX, _pod_terms("podAffinity", _PREFERRED, by_key=False)),
    "preferred-keys": (POD_TERMS_MAX, _pod_terms("podAntiAffinity", _PREFERRED, by_key=True)),
    "spread": (POD_TERMS_MAX, _spread("DoNotSchedule", by_key=False)),
    "spread-keys": (POD_TERMS_MAX, _spread("DoNotSchedule", by_key=True)),
    "spread-preferred": (POD_TERMS_MAX, _spread("ScheduleAnyway", by_key=False)),
    "spread-preferred-keys": (POD_TERMS_MAX, _spread("ScheduleAnyway", by_key=True)),
    "node-terms": (NODE_TERMS_MAX, _node_terms),
    "node-preferred": (NODE_TERMS_MAX, _node_preferences),
    "node-expressions": (ENTRIES_MAX, _node_expressions),
    "node-selector": (ENTRIES_MAX, lambda i, count: {"nodeSelector": {f"k{i}-{k}": "v" for k in range(count)}}),
    "pod-expressions": (ENTRIES_MAX, _in_selector("app", "DoesNotExist", valued=False)),
    "tolerations": (ENTRIES_MAX, _tolerations),
    "node-values": (VALUES_MAX, _node_values),
    "pod-values": (VALUES_MAX, _in_selector("app", "In", valued=True)),
    "namespaces": (VALUES_MAX, _namespaces),
    "ports": (PORTS_MAX, _ports),
    "containers": (CONTAINERS_MAX, _containers),
    "claims": (CLAIMS_MAX, _claims),
    "volumes": (CLAIMS_MAX, _volumes),
    "gates": (GATES_MAX, lambda i, count: {"schedulingGates": [{"name": f"g{i}-{k}"} for k in range(count)]}),
}
