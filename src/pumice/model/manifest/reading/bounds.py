"""Bound the length of lists within one pod.

A tenant may write objects of up to 1 MB, and each entry of these lists costs work over all nodes, or over all pods, in
every cycle. Each bound holds for all lists of a kind together, and is far above what real pods have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pumice.model.manifest.reading.fields import FieldError, Obj, at

#: Terms of pod affinity and anti-affinity, required and preferred, and topology spread constraints.
POD_TERMS_MAX = 32
#: Terms of node affinity, required and preferred.
NODE_TERMS_MAX = 64
#: Entries of selectors (labels and expressions) and tolerations; and the values of expressions, and namespaces.
ENTRIES_MAX, VALUES_MAX = 128, 1_024
#: Containers and init containers; and their ports.
CONTAINERS_MAX, PORTS_MAX = 256, 256
#: Resource claims, and volumes that claim one; and scheduling gates.
CLAIMS_MAX, GATES_MAX = 64, 64

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_CLAIMING = {"persistentVolumeClaim", "ephemeral"}
_WRAPPED = ("podAffinityTerm", "preference")
_SELECTORS = ("labelSelector", "namespaceSelector")
_ENTRIES = ("matchLabels", "matchExpressions", "matchFields")
_VALUES = ("matchLabelKeys", "mismatchLabelKeys", "namespaces")


class _Count:
    """Counts entries of one kind."""

    __slots__ = ("found", "most", "what")

    def __init__(self, what: str, most: int) -> None:
        self.what, self.most, self.found = what, most, 0

    def add(self, entries: object, path: str) -> None:
        """Count the entries of a list or map at ``path``. Raises: FieldError if there are too many."""
        if not isinstance(entries, list | dict):
            return  # absent, or refused by the reader of the field
        self.found += len(entries)
        if self.found > self.most:
            raise FieldError(path, f"{self.found} {self.what} in one pod", f"at most {self.most}")


def check_lists(spec: Obj, path: str) -> None:
    """Raise FieldError for the first list of a pod's spec with which there are too many entries of its kind."""
    _Count("resource claims", CLAIMS_MAX).add(spec.get("resourceClaims"), at(path, "resourceClaims"))
    # Other volumes, such as ConfigMaps, cost no work in a cycle.
    claiming = [each for each in _objects(spec.get("volumes")) if each.keys() & _CLAIMING]
    _Count("volume claims", CLAIMS_MAX).add(claiming, at(path, "volumes"))
    containers, ports = _Count("containers", CONTAINERS_MAX), _Count("ports", PORTS_MAX)
    for key in ("containers", "initContainers"):
        containers.add(spec.get(key), at(path, key))
        for i, container in enumerate(_objects(spec.get(key))):
            ports.add(container.get("ports"), f"{at(path, key)}[{i}].ports")
    _check_terms(spec, path)


def check_gates(spec: Obj, path: str) -> None:
    """Raise FieldError for more scheduling gates than a pod may have."""
    _Count("scheduling gates", GATES_MAX).add(spec.get("schedulingGates"), at(path, "schedulingGates"))


def _check_terms(spec: Obj, path: str) -> None:
    """Check the bounds on terms and on the entries and values of their selectors."""
    pod_terms = _Count("terms about pods", POD_TERMS_MAX)
    node_terms = _Count("terms about nodes", NODE_TERMS_MAX)
    entries, values = _Count("selector entries", ENTRIES_MAX), _Count("selector values", VALUES_MAX)
    for key in ("nodeSelector", "tolerations"):
        entries.add(spec.get(key), at(path, key))
    for about_nodes, terms, here in _term_lists(spec, path):
        (node_terms if about_nodes else pod_terms).add(terms, here)
        for i, item in enumerate(_objects(terms)):
            place = f"{here}[{i}]"
            # Preferred terms wrap the term beside a weight.
            term = next((item[key] for key in _WRAPPED if isinstance(item.get(key), dict)), item)
            for key in _VALUES:
                values.add(term.get(key), place)
            for selector in (term, *_objects([term.get(key) for key in _SELECTORS])):
                for key in _ENTRIES:
                    entries.add(selector.get(key), place)
                    for expression in _objects(selector.get(key)):
                        values.add(expression.get("values"), place)


def _term_lists(spec: Obj, path: str) -> Iterator[tuple[bool, object, str]]:
    """Yield for each list of terms whether they are about nodes, the list, and its path."""
    affinity = _object(spec.get("affinity"))
    here = at(path, "affinity")
    # Anti-affinity first: it still counts when the pod is on a node, so an error in it is the one to report.
    for rule in (_REQUIRED, _PREFERRED):
        for side in ("podAntiAffinity", "podAffinity"):
            yield False, _object(affinity.get(side)).get(rule), f"{here}.{side}.{rule}"
    yield False, spec.get("topologySpreadConstraints"), at(path, "topologySpreadConstraints")
    node, here = _object(affinity.get("nodeAffinity")), f"{here}.nodeAffinity"
    yield True, _object(node.get(_REQUIRED)).get("nodeSelectorTerms"), f"{here}.{_REQUIRED}.nodeSelectorTerms"
    yield True, node.get(_PREFERRED), f"{here}.{_PREFERRED}"


def _object(value: object) -> Obj:
    return value if isinstance(value, dict) else {}


def _objects(values: object) -> Iterator[dict[str, Any]]:
    return (each for each in values if isinstance(each, dict)) if isinstance(values, list) else iter(())
