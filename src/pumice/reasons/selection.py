"""Blockers of nodes that pods may not use: labels, taints, cordons, ports, and other pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.dtypes import AnyArray, Bool
from pumice.model.blockers import (
    CORDONED,
    NOT_READY,
    TAINTED,
    UNREADABLE,
    Amount,
    Closed,
    KeptApart,
    NearNone,
    NoSuchNode,
    PortTaken,
    RoomOnClosed,
    Taints,
)
from pumice.model.node import Taint
from pumice.model.pod import HostPort, LabelSelector, NodeSelectorTerm, Pod, PodAffinityTerm, PodSpec, Requirement
from pumice.model.selectors import matches
from pumice.placing.filters.nodes import BLOCKING, CORDON, node_affinity, node_term, tolerated, tolerates
from pumice.reasons.view import View
from pumice.reasons.words import joined, meant

_NOT_READY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_PLACES = ("zone", "region", "rack")
_VALUES_MAX = 3
_NO_ROWS = np.zeros(0, dtype=np.int64)


def selected(view: View, spec: PodSpec) -> Bool:
    """Return the nodes that the node selector and the required node affinity let through. Shape (N,)."""
    return node_affinity(view.derived, spec)


def open_to(view: View, spec: PodSpec) -> Bool:
    """Return the nodes that are neither cordoned nor tainted for the pod. Shape (N,)."""
    found = tolerated(view.derived, spec.tolerations)
    if any(tolerates(toleration, CORDON) for toleration in spec.tolerations):
        return found
    return np.asarray(found & ~view.facts.unschedulable)


def blocking(view: View, spec: PodSpec, node: int) -> Taint | None:
    """Return the first taint of a node that the pod does not tolerate; a cordon is one."""
    obj = view.facts.objs[node]
    taints = [taint for taint in obj.taints if taint.effect in BLOCKING]
    for taint in [CORDON, *taints] if obj.unschedulable else taints:
        if not any(tolerates(toleration, taint) for toleration in spec.tolerations):
            return taint
    return None


# -- labels


def wanted_labels(spec: PodSpec) -> list[Requirement]:
    """Return what the node selector asks for, and the required node affinity where it is one term."""
    found = [Requirement(key, "In", (value,)) for key, value in spec.node_selector]
    terms = spec.affinity.node_required or ()
    return found + (list(terms[0].labels) if len(terms) == 1 else [])


def requirement_text(requirement: Requirement) -> str:
    """``gpu-type=a100``"""
    key, values = requirement.key, requirement.values
    match requirement.operator:
        case "In" if len(values) == 1:
            return f"{key}={values[0]}"
        case "In":
            return f"{key} in ({', '.join(values[:_VALUES_MAX])}{', …' if len(values) > _VALUES_MAX else ''})"
        case "Exists":
            return f"the label {key}"
        case "DoesNotExist":
            return f"no label {key}"
        case "NotIn":
            return f"{key} not in ({', '.join(values[:_VALUES_MAX])}{', …' if len(values) > _VALUES_MAX else ''})"
        case operator:
            return f"{key} {operator} {' '.join(values)}"


def no_such_node(view: View, spec: PodSpec) -> NoSuchNode:
    """Return the labels that no node has, together or one of them."""
    wanted = wanted_labels(spec)
    texts = tuple(requirement_text(each) for each in wanted)
    for requirement, text in zip(wanted, texts, strict=True):
        if not node_term(view.derived, NodeSelectorTerm((requirement,))).any():
            return _on_no_node(view, requirement, text)
    return NoSuchNode(texts)


def _on_no_node(view: View, requirement: Requirement, text: str) -> NoSuchNode:
    key, values = requirement.key, requirement.values
    if requirement.operator not in ("In", "Exists"):
        return NoSuchNode((text,))
    column, value = view.derived.label(key), values[0] if len(values) == 1 else ""
    if not column.values:
        other = meant(key, sorted({key for node in view.facts.objs for key in node.labels}))
        count = 0 if other is None else int(np.count_nonzero(view.derived.label(other).codes >= 0))
        return NoSuchNode((text,), key, found=((other, count),) if other else (), is_label=True)
    counts = Counter({value: int(np.count_nonzero(column.codes == code)) for value, code in column.code_of.items()})
    most = tuple(sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:_VALUES_MAX])
    place = key.rpartition("/")[2]
    if place in _PLACES and value:
        return NoSuchNode((text,), key, value, most, place)
    other = meant(value, counts) if value else None
    return NoSuchNode((text,), key, value, most if other is None else ((other, counts[other]),))


# -- taints


def all_closed(view: View, spec: PodSpec, nodes: Bool) -> Closed:
    """Return what keeps the pod off nodes that have the labels."""
    rows = nodes.nonzero()[0].tolist()
    found = Counter(taint for row in rows if (taint := blocking(view, spec, row)) is not None)
    if not found:
        return Closed(len(rows), (Taints(UNREADABLE, "", int((view.tables.nodes.quarantined_by[rows] > 0).sum())),))
    by = sorted(found.items(), key=lambda each: (-each[1], text_of(each[0])))
    return Closed(len(rows), tuple(taints(taint, count) for taint, count in by[:_VALUES_MAX]))


def taints(taint: Taint | None, nodes: int) -> Taints:
    """Return what keeps the pod off so many nodes; None for what cannot be read."""
    if taint is None:
        return Taints(UNREADABLE, "", nodes)
    kind = CORDONED if taint == CORDON else NOT_READY if taint.key in _NOT_READY else TAINTED
    return Taints(kind, text_of(taint), nodes)


def text_of(taint: Taint) -> str:
    """``dedicated=ml:NoSchedule``, as kubectl writes it."""
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


def room_on_closed(
    view: View, spec: PodSpec, closed: Sequence[int], open_rows: AnyArray, request: AnyArray
) -> RoomOnClosed:
    """Return which nodes have room and are tainted or cordoned, where the others have none."""
    taint = blocking(view, spec, closed[0])
    equal = [row for row in closed if blocking(view, spec, row) == taint]
    d = view.shortest(request, view.future[open_rows])
    free, left = view.future[equal, d].clip(min=0).sum(), view.future[open_rows, d].clip(min=0).sum()
    names = tuple(view.facts.names[row] for row in equal)
    return RoomOnClosed(taints(taint, len(equal)), names, Amount(view.axis.names[d], float(free)), float(left))


# -- other pods


def ports(view: View, spec: PodSpec, nodes: Bool, others: AnyArray) -> PortTaken | None:
    """Return a host port of the pod that ``others`` (rows of pods) have wherever there is room, or None."""
    for port in spec.host_ports:
        there = with_port(view, port, others)
        taken = np.isin(nodes.nonzero()[0], there)
        if taken.all():
            return PortTaken(port.port, port.protocol, int(taken.sum()), len(view.facts))
    return None


def with_port(view: View, port: HostPort, rows: AnyArray) -> AnyArray:
    """Return the nodes of those pods that have a host port."""
    classes, tasks = view.tables.classes, view.tables.tasks
    with_it = [
        cls
        for cls in distinct(tasks.cls[rows]).tolist()
        if any((p.port, p.protocol) == (port.port, port.protocol) for p in classes.specs[cls].host_ports)
    ]
    return distinct(tasks.view_node[rows[np.isin(tasks.cls[rows], with_it)]])


def selector_text(selector: LabelSelector | None) -> str:
    """``app=x``"""
    if selector is None or not selector.requirements:
        return "any label"
    return joined([requirement_text(each) for each in selector.requirements])


def near_none(view: View, spec: PodSpec, namespace: str) -> NearNone | None:
    """Return the labels of pods near which the pod must be, and of which none runs, or None."""
    for term in spec.affinity.pod_required:
        if not pods_of(view, term, namespace):
            return NearNone(selector_text(term.selector))
    return None


def keeps_apart(view: View, pod: Pod, nodes: Bool, others: AnyArray, wanted: int) -> KeptApart | None:
    """Return a label of which each place with room has one of the ``others`` (rows of pods), near which the pod may not
    be, or None. ``wanted``: how many pods like this one have to be placed."""
    for term in pod.spec.affinity.anti_required:
        column = view.derived.label(term.topology_key)
        places = {int(column.codes[row]) for row in nodes.nonzero()[0].tolist()} - {-1}
        taken = {int(column.codes[node]) for node in pods_of(view, term, pod.namespace, others)}
        if places <= taken:
            return KeptApart(term.topology_key, len(places), selector_text(term.selector), wanted=wanted)
    return None


def pods_of(view: View, term: PodAffinityTerm, namespace: str, rows: AnyArray | None = None) -> list[int]:
    """Return the nodes of the pods that a term is about, in the namespaces that it names. ``rows``: of these pods only,
    which are on nodes."""
    tasks, selector = view.tables.tasks, term.selector
    if selector is None:
        return []
    inside = None if term.namespace_selector is not None else frozenset(term.namespaces or (namespace,))
    # Both lead to few of all pods in most cases, and hints ask this for each of many jobs.
    few = [] if inside is None else [[view.by_namespace.get(each, _NO_ROWS) for each in inside]]
    few += [
        [view.by_label.get((requirement.key, value), _NO_ROWS) for value in requirement.values]
        for requirement in selector.requirements
        if requirement.operator == "In"
    ]
    found = (tasks.alive & (tasks.view_node >= 0)).nonzero()[0] if rows is None else rows
    for each in few:
        which = np.zeros(tasks.capacity, dtype=bool)
        which[np.concatenate([_NO_ROWS, *each])] = True
        found = found[which[found]]
    return [int(tasks.view_node[row]) for row in found.tolist() if matches(selector, tasks.pods[row].labels)]
