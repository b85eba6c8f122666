"""kube-scheduler 1.36 over objects, one node and one pod at a time: the slow, plain reading of the rules."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from pumice.model.node import Node
from pumice.model.pod import Pod, PodAffinityTerm, TopologySpreadConstraint
from pumice.model.selectors import holds, matches

Placed = Sequence[tuple[Pod, Node]]


def about(term: PodAffinityTerm, pod: Pod) -> bool:
    if term.selector is None or not matches(term.selector, pod.labels):
        return False
    if pod.namespace in term.namespaces:
        return True
    selector = term.namespace_selector
    return selector is not None and matches(selector, {"kubernetes.io/metadata.name": pod.namespace})


def node_matches(pod: Pod, node: Node) -> bool:
    if any(node.labels.get(key) != value for key, value in pod.spec.node_selector):
        return False
    terms = pod.spec.affinity.node_required
    if terms is None:
        return True
    return any((t.labels or t.fields) and all(holds(r, node.labels) for r in t.labels) for t in terms)


def untolerated(pod: Pod, node: Node, effects: tuple[str, ...]) -> int:
    count = 0
    for taint in node.taints:
        covered = any(
            (not t.key or t.key == taint.key)
            and (not t.effect or t.effect == taint.effect)
            and (t.operator == "Exists" or t.value == taint.value)
            for t in pod.spec.tolerations
        )
        count += taint.effect in effects and not covered
    return count


# -- filters


def inter_pod(pod: Pod, node: Node, placed: Placed) -> str | None:
    affinity = pod.spec.affinity
    near: Counter[tuple[str, str]] = Counter()
    for other, where in placed:
        if affinity.pod_required and all(about(t, other) for t in affinity.pod_required):
            near.update(
                (t.topology_key, where.labels[t.topology_key])
                for t in affinity.pod_required
                if t.topology_key in where.labels
            )
    if not all(t.topology_key in node.labels for t in affinity.pod_required):
        return "node(s) didn't match pod affinity rules"
    found = all(near[t.topology_key, node.labels[t.topology_key]] for t in affinity.pod_required)
    first = not near and all(about(t, pod) for t in affinity.pod_required)
    if not found and not first:
        return "node(s) didn't match pod affinity rules"
    for term in affinity.anti_required:
        for other, where in placed:
            if about(term, other) and same_domain(term.topology_key, node, where):
                return "node(s) didn't match pod anti-affinity rules"
    for other, where in placed:
        for term in other.spec.affinity.anti_required:
            if about(term, pod) and same_domain(term.topology_key, node, where):
                return "node(s) didn't satisfy existing pods anti-affinity rules"
    return None


def same_domain(key: str, one: Node, other: Node) -> bool:
    return key in one.labels and one.labels[key] == other.labels.get(key)


def counted(constraint: TopologySpreadConstraint, pod: Pod, node: Node, keys: list[str]) -> bool:
    if not all(key in node.labels for key in keys):
        return False
    if constraint.node_affinity_policy == "Honor" and not node_matches(pod, node):
        return False
    return constraint.node_taints_policy != "Honor" or not untolerated(pod, node, ("NoSchedule", "NoExecute"))


def crowd(constraint: TopologySpreadConstraint, pod: Pod, node: Node, placed: Placed) -> int:
    selector = constraint.selector
    if selector is None or not selector.requirements:
        return 0
    here = [p for p, where in placed if where is node and p.namespace == pod.namespace and p.deletion is None]
    return sum(matches(selector, p.labels) for p in here)


def spread(pod: Pod, node: Node, nodes: Sequence[Node], placed: Placed) -> str | None:
    constraints = [c for c in pod.spec.spread if c.when_unsatisfiable == "DoNotSchedule"]
    keys = [c.topology_key for c in constraints]
    for constraint in constraints:
        if constraint.topology_key not in node.labels:
            return "node(s) didn't match pod topology spread constraints (missing required label)"
        domains: Counter[str] = Counter()
        for other in nodes:
            if counted(constraint, pod, other, keys):
                domains[other.labels[constraint.topology_key]] += crowd(constraint, pod, other, placed)
        least = min(domains.values(), default=2**31)
        if len(domains) < constraint.min_domains:
            least = 0
        own = constraint.selector is not None and matches(constraint.selector, pod.labels)
        if domains[node.labels[constraint.topology_key]] + own - least > constraint.max_skew:
            return "node(s) didn't match pod topology spread constraints"
    return None


def ports(pod: Pod, node: Node, placed: Placed) -> str | None:
    taken = [port for other, where in placed if where is node for port in other.spec.host_ports]
    for mine in pod.spec.host_ports:
        for port in taken:
            same = mine.port == port.port and mine.protocol == port.protocol
            if same and (mine.ip == port.ip or "0.0.0.0" in (mine.ip, port.ip)):
                return "node(s) didn't have free ports for the requested pod ports"
    return None


def pod_reasons(pod: Pod, node: Node, nodes: Sequence[Node], placed: Placed) -> list[str]:
    found = [ports(pod, node, placed), inter_pod(pod, node, placed)]
    if found[1] != "node(s) didn't match pod affinity rules":
        found.append(spread(pod, node, nodes, placed))
    return [reason for reason in found if reason]


# -- scores


def least_allocated(asked: list[int], held: list[int], room: list[int]) -> int:
    parts = [
        0 if r > a else (a - r) * 100 // a
        for r, a in zip(map(sum, zip(asked, held, strict=True)), room, strict=True)
        if a
    ]
    return 50 * sum(parts) // (50 * len(parts)) if parts else 0


def most_allocated(asked: list[int], held: list[int], room: list[int]) -> int:
    parts = [min(r, a) * 100 // a for r, a in zip(map(sum, zip(asked, held, strict=True)), room, strict=True) if a]
    return sum(parts) // len(parts) if parts else 0


def balanced(asked: list[int], held: list[int], room: list[int]) -> int:
    """What the pod changes, 75 for nothing. The third resource counts only when it is asked for."""
    if not any(asked):
        return 0
    counted = [(a, h, r) for i, (a, h, r) in enumerate(zip(asked, held, room, strict=True)) if r and (i < 2 or a)]
    after = evenness([min((a + h) / r, 1.0) for a, h, r in counted])
    before = evenness([min(h / r, 1.0) for _, h, r in counted])
    return 50 + (50 + after - before) // 2


def evenness(shares: list[float]) -> int:
    sigma = 0.0
    if len(shares) == 2:
        sigma = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        total = 0.0
        for share in shares:
            total += share
        mean, squares = total / len(shares), 0.0
        for share in shares:
            squares += (share - mean) * (share - mean)
        sigma = math.sqrt(squares / len(shares))
    return int((1 - sigma) * 100)


def scaled(raw: list[int], *, reverse: bool = False) -> list[int]:
    top = max(raw, default=0)
    if not top:
        return [100 if reverse else 0] * len(raw)
    return [100 - 100 * r // top if reverse else 100 * r // top for r in raw]


def taint_scores(pod: Pod, candidates: Sequence[Node]) -> list[int]:
    return scaled([untolerated(pod, n, ("PreferNoSchedule",)) for n in candidates], reverse=True)


def inter_pod_scores(pod: Pod, candidates: Sequence[Node], placed: Placed, hard_weight: int) -> list[int]:
    topology: Counter[tuple[str, str]] = Counter()

    def prefer(term: PodAffinityTerm, meant: Pod, where: Node, weight: int) -> None:
        if about(term, meant) and term.topology_key in where.labels:
            topology[term.topology_key, where.labels[term.topology_key]] += weight

    for other, where in placed:
        mine, theirs = pod.spec.affinity, other.spec.affinity
        for term in mine.pod_preferred:
            prefer(term, other, where, term.weight)
        for term in mine.anti_preferred:
            prefer(term, other, where, -term.weight)
        for term in theirs.pod_required:
            prefer(term, pod, where, hard_weight)
        for term in theirs.pod_preferred:
            prefer(term, pod, where, term.weight)
        for term in theirs.anti_preferred:
            prefer(term, pod, where, -term.weight)
    raw = [sum(topology[pair] for pair in node.labels.items()) for node in candidates]
    apart = max(raw) - min(raw)
    return [int(100 * ((r - min(raw)) / apart)) if apart else 0 for r in raw]


def spread_scores(pod: Pod, candidates: Sequence[Node], nodes: Sequence[Node], placed: Placed) -> list[int]:
    constraints = [c for c in pod.spec.spread if c.when_unsatisfiable == "ScheduleAnyway"]
    keys = [c.topology_key for c in constraints]
    if not constraints:
        return [0] * len(candidates)
    part = [n for n in candidates if all(key in n.labels for key in keys)]
    raw = {}
    for node in part:
        score = 0.0
        for c in constraints:
            if c.topology_key == "kubernetes.io/hostname":
                count, size = crowd(c, pod, node, placed), len(part)
            else:
                value = node.labels[c.topology_key]
                inside = [n for n in nodes if counted(c, pod, n, keys) and n.labels[c.topology_key] == value]
                count = sum(crowd(c, pod, n, placed) for n in inside)
                size = len({n.labels[c.topology_key] for n in part})
            score += count * math.log(size + 2) + (c.max_skew - 1)
        raw[node.name] = math.floor(score + 0.5)
    top, low = max(raw.values(), default=0), min(raw.values(), default=0)
    return [0 if n.name not in raw else 100 if not top else 100 * (top + low - raw[n.name]) // top for n in candidates]
