"""Hints where pods may not go to the nodes that are there: labels, taints, cordons, ports, and other pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from pumice.algorithms.groups import distinct
from pumice.columns.dtypes import AnyArray, Bool
from pumice.explain.view import View
from pumice.explain.words import are, counted, is_free, joined, meant, names, number, unit, verb
from pumice.model.node import Taint
from pumice.model.pod import LabelSelector, PodAffinityTerm, PodSpec, Requirement
from pumice.model.selectors import matches
from pumice.placing.filters.nodes import BLOCKING, CORDON, node_affinity, tolerated, tolerates

_NOT_READY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_PLACES = ("zone", "region", "rack")
_VALUES_MAX = 3


def selected(view: View, spec: PodSpec) -> Bool:
    """Nodes that the node selector and the required node affinity let through (N,)."""
    return node_affinity(view.derived, spec)


def open_to(view: View, spec: PodSpec) -> Bool:
    """Nodes that are neither cordoned nor tainted for the pod (N,)."""
    found = tolerated(view.derived, spec.tolerations)
    if any(tolerates(toleration, CORDON) for toleration in spec.tolerations):
        return found
    return np.asarray(found & ~view.facts.unschedulable)


def blocking(view: View, spec: PodSpec, node: int) -> Taint | None:
    """The first taint of a node that the pod does not tolerate; a cordon is one."""
    obj = view.facts.objs[node]
    taints = [taint for taint in obj.taints if taint.effect in BLOCKING]
    for taint in [CORDON, *taints] if obj.unschedulable else taints:
        if not any(tolerates(toleration, taint) for toleration in spec.tolerations):
            return taint
    return None


# -- labels


def wanted_labels(spec: PodSpec) -> list[Requirement]:
    """What the node selector asks for, and the required node affinity where it is one term."""
    found = [Requirement(key, "In", (value,)) for key, value in spec.node_selector]
    terms = spec.affinity.node_required or ()
    return found + (list(terms[0].labels) if len(terms) == 1 else [])


def said(requirement: Requirement) -> str:
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


def no_such_node(view: View, spec: PodSpec) -> str:
    """No node has the labels."""
    wanted = wanted_labels(spec)
    for requirement in wanted:
        if not any(matches(LabelSelector((requirement,)), node.labels) for node in view.facts.objs):
            return _no_node_has(view, requirement)
    if not wanted:
        return "no node matches its required node affinity"
    return f"no node has {joined([said(each) for each in wanted])} together"


def _no_node_has(view: View, requirement: Requirement) -> str:
    column = view.derived.label(requirement.key)
    if requirement.operator not in ("In", "Exists"):
        return f"no node has {said(requirement)}"
    if not column.values:
        keys = sorted({key for node in view.facts.objs for key in node.labels})
        other = meant(requirement.key, keys)
        return f"no node has the label {requirement.key}" + (f"; {_have(view, other)} {other}" if other else "")
    counts = Counter({value: int(np.count_nonzero(column.codes == code)) for value, code in column.code_of.items()})
    there = [f"{count} {verb(count, 'has', 'have')} {requirement.key}={value}" for value, count in _most(counts)]
    place = requirement.key.rpartition("/")[2]
    if place in _PLACES and len(requirement.values) == 1:
        listed = [f"{count} {verb(count, 'is', 'are')} in {value}" for value, count in _most(counts)]
        rest = [each.replace(" is in ", " in ").replace(" are in ", " in ") for each in listed[1:]]
        return f"no node is in {place} {requirement.values[0]}; {', '.join([*listed[:1], *rest])}"
    other = meant(requirement.values[0], counts) if len(requirement.values) == 1 else None
    if other is not None:
        there = [f"{counts[other]} {verb(counts[other], 'has', 'have')} {requirement.key}={other}"]
    return f"no node has {said(requirement)}; {joined(there)}"


def _most(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:_VALUES_MAX]


def _have(view: View, key: str) -> str:
    count = int(np.count_nonzero(view.derived.label(key).codes >= 0))
    return f"{count} {verb(count, 'has', 'have')}"


def few_selected(view: View, spec: PodSpec, nodes: Bool, request: AnyArray) -> str:
    """Some nodes have the labels, and none of them has room."""
    count, rows = int(nodes.sum()), nodes.nonzero()[0]
    what = joined([said(each) for each in wanted_labels(spec)]) or "what its required node affinity wants"
    d = view.shortest(request, view.future[rows])
    name, room = view.axis.names[d], view.future[rows, d].clip(min=0).sum()
    total, ask = number(name, view.facts.allocatable[rows, d].sum()), number(name, request[d])
    of_all = f"{count} of {counted(len(view.facts), 'node')} {verb(count, 'has', 'have')} {what}"
    free = number(name, room)
    whose = "its" if count == 1 else "their"
    most = (
        "" if count == 1 or room < request[d] else f", at most {number(name, view.future[rows, d].max())} on one node"
    )
    share = f"{free} of {whose} {total} {unit(name, total)} {are(free)} free"
    return f"{of_all}: {share}{most}, it asks for {ask}"


# -- taints


def all_closed(view: View, spec: PodSpec, nodes: Bool) -> str:
    """Nodes that have the labels are all cordoned, not ready or tainted."""
    rows = nodes.nonzero()[0].tolist()
    found = Counter(taint for row in rows if (taint := blocking(view, spec, row)) is not None)
    barred = int((view.tables.nodes.barred_by[rows] > 0).sum())
    if not found:
        return f"{barred} of {counted(len(rows), 'node')} {verb(barred, 'holds', 'hold')} what cannot be read"
    parts: list[str] = []
    for taint, count in sorted(found.items(), key=lambda each: (-each[1], text_of(each[0])))[:_VALUES_MAX]:
        of_all = f"{count} of {counted(len(rows), 'node')}" if not parts else f"{count}"
        if taint == CORDON:
            parts.append(f"{of_all} {verb(count, 'is', 'are')} cordoned")
        elif taint.key in _NOT_READY:
            parts.append(f"{of_all} {verb(count, 'is', 'are')} not ready (taint {text_of(taint)})")
        else:
            parts.append(
                f"{of_all} {verb(count, 'has', 'have')} the taint {text_of(taint)}, which it does not tolerate"
            )
    return "; ".join(parts)


def text_of(taint: Taint) -> str:
    """``dedicated=ml:NoSchedule``, as kubectl writes it."""
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


def room_on_closed(view: View, spec: PodSpec, closed: Sequence[int], open_rows: AnyArray, request: AnyArray) -> str:
    """Nodes that have room are tainted or cordoned, the others have none."""
    taint = blocking(view, spec, closed[0])
    alike = [row for row in closed if blocking(view, spec, row) == taint]
    d = view.shortest(request, view.future[open_rows])
    name = view.axis.names[d]
    free, left = view.future[alike, d].clip(min=0).sum(), view.future[open_rows, d].clip(min=0).sum()
    where = names([view.facts.names[row] for row in alike], 2)
    if taint == CORDON:
        why = f"which {verb(len(alike), 'is', 'are')} cordoned; elsewhere"
    elif taint is None:
        why = f"which {verb(len(alike), 'holds', 'hold')} what cannot be read; elsewhere"
    else:
        why = f"which {verb(len(alike), 'has', 'have')} the taint {text_of(taint)}; without it,"
    rest = number(name, left)
    return f"{is_free(name, free)} on {where}, {why} {rest} {are(rest)} free"


# -- other pods


def ports(view: View, spec: PodSpec, nodes: Bool) -> str:
    """A host port is taken wherever there is room."""
    classes, tasks = view.tables.classes, view.tables.tasks
    for port in spec.host_ports:
        with_it = [
            row
            for row in classes.alive.nonzero()[0].tolist()
            if any((p.port, p.protocol) == (port.port, port.protocol) for p in classes.specs[row].host_ports)
        ]
        there = distinct(tasks.view_node[tasks.alive & np.isin(tasks.cls, with_it)])
        taken = np.isin(nodes.nonzero()[0], there)
        if taken.all():
            return f"port {port.port} is taken on {int(taken.sum())} of {counted(len(view.facts), 'node')}"
    return ""


def selector_text(selector: LabelSelector | None) -> str:
    """``app=x``"""
    return joined([said(each) for each in selector.requirements]) if selector and selector.requirements else "any label"


def near_nobody(view: View, spec: PodSpec, namespace: str) -> str:
    """No pod runs that it must be near."""
    for term in spec.affinity.pod_required:
        if not _pods_of(view, term, namespace):
            return f"no pod with {selector_text(term.selector)} runs, and it must be near one"
    return ""


def keeps_apart(view: View, spec: PodSpec, namespace: str, nodes: Bool, left: int, needed: int) -> str:
    """Each place has a pod, or would have one of its own gang, that it will not be near."""
    for term in spec.affinity.anti_required:
        column = view.derived.label(term.topology_key)
        places = {int(column.codes[row]) for row in nodes.nonzero()[0].tolist()} - {-1}
        host = term.topology_key == "kubernetes.io/hostname"
        what = counted(len(places), "node" if host else term.topology_key.rpartition("/")[2])
        rest = f"; {left} of {counted(needed, 'pod')} {verb(left, 'is', 'are')} left over" if left < needed else ""
        taken = {int(column.codes[node]) for node in _pods_of(view, term, namespace)}
        if places <= taken or left < needed:
            return f"each of {what} has a pod with {selector_text(term.selector)}, which it will not be near{rest}"
    return ""


def _pods_of(view: View, term: PodAffinityTerm, namespace: str) -> list[int]:
    """Nodes of the pods that a term is about, in the namespaces that it names."""
    tasks = view.tables.tasks
    rows = (tasks.alive & (tasks.view_node >= 0)).nonzero()[0].tolist()
    inside = None if term.namespace_selector is not None else frozenset(term.namespaces or (namespace,))
    return [
        int(tasks.view_node[row])
        for row in rows
        if term.selector is not None
        and (inside is None or tasks.pods[row].namespace in inside)
        and matches(term.selector, tasks.pods[row].labels)
    ]


def spread(view: View, spec: PodSpec, row: int, nodes: Bool, fits: Bool, placed: Sequence[int]) -> str:
    """Evenness over zones forbids what room there is. ``placed``: nodes that pods of the gang would have got."""
    pod, request = view.tables.tasks.pods[row], view.request(row)
    for rule in spec.spread:
        if rule.when_unsatisfiable != "DoNotSchedule":
            continue
        term, column = PodAffinityTerm(rule.topology_key, rule.selector), view.derived.label(rule.topology_key)
        counts = dict.fromkeys(sorted(set(column.codes[nodes].tolist()) - {-1}), 0)
        for node in [*_pods_of(view, term, pod.namespace), *placed]:
            if int(column.codes[node]) in counts:
                counts[int(column.codes[node])] += 1
        if len(counts) < 2:
            continue
        least = min(counts, key=lambda code: (counts[code], column.values[code]))
        with_room = sorted({int(code) for code in column.codes[nodes & fits].tolist()} - {-1})
        skews = [(counts[code] + 1 - counts[least], code) for code in with_room if code != least]
        if not skews or min(skews)[0] <= rule.max_skew:
            continue
        skew, most = min(skews)
        place, what = rule.topology_key.rpartition("/")[2], selector_text(rule.selector)
        d = view.scarcest(request, view.future[nodes & (column.codes == least)])
        name = view.axis.names[d]
        free = number(name, view.future[nodes & (column.codes == least), d].clip(min=0).sum())
        a, b = column.values[most], column.values[least]
        would = f"{place} {a} would have {counted(skew, 'more pod')} with {what} than {place} {b}"
        return f"{would}, at most {rule.max_skew} is allowed; {b} is full: {free} {unit(name, free)} free"
    return ""
