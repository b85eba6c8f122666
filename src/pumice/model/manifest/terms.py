"""Decode selectors, affinity, tolerations and spread constraints: terms that say where a pod may run."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from pumice.model.manifest.reading.fields import (
    INT32_MAX,
    FieldError,
    Obj,
    at,
    choice,
    maybe_table,
    shown,
    table,
    tables,
    text,
    text_map,
    texts,
    whole,
    wrong,
)
from pumice.model.pod import (
    NO_AFFINITY,
    Affinity,
    LabelSelector,
    NodeSelectorTerm,
    PodAffinityTerm,
    PreferredNodeTerm,
    Requirement,
    Toleration,
    TopologySpreadConstraint,
)

_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
# Gt and Lt exist for nodes only. Source: Kubernetes' core/v1.
_NODE_OPERATORS = (*_LABEL_OPERATORS, "Gt", "Lt")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


# As a value, because pods of one job share it, and a spec is read for a template that has no pod yet.
class Owner(Struct, frozen=True):
    """What terms of a pod refer to implicitly: its namespace and labels."""

    namespace: str
    labels: Mapping[str, str]


def required_text(obj: Obj, key: str, path: str) -> str:
    value = text(obj, key, path)
    if not value:
        raise wrong(obj, key, path, "a string that is not empty")
    return value


# With and without a default: a taint must have an effect, and a toleration without one is about all.
def effect(obj: Obj, path: str, default: str | None) -> str:
    return choice(obj, "effect", path, _EFFECTS, default)


def requirements(
    obj: Obj, key: str, path: str, operators: tuple[str, ...] = _LABEL_OPERATORS
) -> tuple[Requirement, ...]:
    """Return a list of ``{key, operator, values}``."""
    return tuple(
        _requirement(item, f"{at(path, key)}[{i}]", operators) for i, item in enumerate(tables(obj, key, path))
    )


def _requirement(obj: Obj, path: str, operators: tuple[str, ...]) -> Requirement:
    key = required_text(obj, "key", path)
    operator = choice(obj, "operator", path, operators)
    values = texts(obj, "values", path)
    # Rules of Kubernetes' validation, which a file has not passed: such a term would match nothing, or everything.
    if operator in ("In", "NotIn") and not values:
        raise wrong(obj, "values", path, f"at least one value with {operator}")
    if operator in ("Exists", "DoesNotExist") and values:
        raise wrong(obj, "values", path, f"no values with {operator}")
    if operator in ("Gt", "Lt") and (len(values) != 1 or not values[0].removeprefix("-").isdecimal()):
        raise wrong(obj, "values", path, f"one integer with {operator}")
    return Requirement(key, operator, values)


def maybe_label_selector(obj: Obj, key: str, path: str) -> LabelSelector | None:
    """Return a LabelSelector, or None. ``matchLabels`` become ``In`` with one value, sorted by key."""
    found = maybe_table(obj, key, path)
    if found is None:
        return None
    path = at(path, key)
    # Sorted by key, so that equal selectors are equal values, whatever order a client wrote.
    equal = tuple(Requirement(k, "In", (value,)) for k, value in sorted(text_map(found, "matchLabels", path).items()))
    return LabelSelector(equal + requirements(found, "matchExpressions", path))


def tolerations(spec: Obj, path: str) -> tuple[Toleration, ...]:
    return tuple(
        _toleration(item, f"{at(path, 'tolerations')}[{i}]") for i, item in enumerate(tables(spec, "tolerations", path))
    )


def _toleration(obj: Obj, path: str) -> Toleration:
    """Return a toleration. One without a key is about every taint, for which an API server admits only ``Exists``."""
    key, operator = text(obj, "key", path), choice(obj, "operator", path, ("Equal", "Exists"), "Equal")
    # With ``Equal`` and no key, it would tolerate nothing, and its user meant something else.
    if not key and operator != "Exists":
        raise FieldError(at(path, "operator"), shown(obj.get("operator")), "Exists if there is no key")
    return Toleration(
        key=key,
        operator=operator,
        value=text(obj, "value", path),
        # No effect means all effects. Source: Kubernetes' Toleration.
        effect=effect(obj, path, default=""),
    )


# -- affinity


def affinity(spec: Obj, path: str, owner: Owner) -> Affinity:
    # An empty affinity is none: it is written by clients and restricts nothing.
    found = maybe_table(spec, "affinity", path)
    if not found:
        return NO_AFFINITY
    path = at(path, "affinity")
    node, near, far = (table(found, key, path) for key in ("nodeAffinity", "podAffinity", "podAntiAffinity"))
    node_path, near_path, far_path = (at(path, key) for key in ("nodeAffinity", "podAffinity", "podAntiAffinity"))
    value = Affinity(
        node_required=_node_required(node, node_path),
        node_preferred=_node_preferred(node, node_path),
        pod_required=_pod_required(near, near_path, owner),
        pod_preferred=_pod_preferred(near, near_path, owner),
        anti_required=_pod_required(far, far_path, owner),
        anti_preferred=_pod_preferred(far, far_path, owner),
    )
    # One object for all pods without terms, of which there are thousands.
    return NO_AFFINITY if value == NO_AFFINITY else value


def _node_required(obj: Obj, path: str) -> tuple[NodeSelectorTerm, ...] | None:
    return node_selector(obj, _REQUIRED, path)


def node_selector(obj: Obj, key: str, path: str) -> tuple[NodeSelectorTerm, ...] | None:
    """Return terms of which one must hold, or None if there is no selector."""
    found = maybe_table(obj, key, path)
    if found is None:
        return None
    path = at(path, key)
    return tuple(
        _node_term(item, f"{path}.nodeSelectorTerms[{i}]")
        for i, item in enumerate(tables(found, "nodeSelectorTerms", path))
    )


def _node_preferred(obj: Obj, path: str) -> tuple[PreferredNodeTerm, ...]:
    terms = []
    for i, item in enumerate(tables(obj, _PREFERRED, path)):
        here = f"{at(path, _PREFERRED)}[{i}]"
        term = _node_term(table(item, "preference", here), at(here, "preference"))
        terms.append(PreferredNodeTerm(whole(item, "weight", here, 0, 1, 100), term))
    return tuple(terms)


def _node_term(obj: Obj, path: str) -> NodeSelectorTerm:
    labels = requirements(obj, "matchExpressions", path, _NODE_OPERATORS)
    fields = requirements(obj, "matchFields", path, ("In", "NotIn"))
    for i, field in enumerate(fields):
        # The only field that Kubernetes supports here.
        if field.key != "metadata.name":
            raise FieldError(f"{path}.matchFields[{i}].key", shown(field.key), "metadata.name")
    return NodeSelectorTerm(labels, fields)


def _pod_required(obj: Obj, path: str, owner: Owner) -> tuple[PodAffinityTerm, ...]:
    return tuple(
        _pod_term(item, f"{at(path, _REQUIRED)}[{i}]", owner) for i, item in enumerate(tables(obj, _REQUIRED, path))
    )


def _pod_preferred(obj: Obj, path: str, owner: Owner) -> tuple[PodAffinityTerm, ...]:
    terms = []
    for i, item in enumerate(tables(obj, _PREFERRED, path)):
        here = f"{at(path, _PREFERRED)}[{i}]"
        weight = whole(item, "weight", here, 0, 1, 100)
        terms.append(_pod_term(table(item, "podAffinityTerm", here), at(here, "podAffinityTerm"), owner, weight))
    return tuple(terms)


def _pod_term(obj: Obj, path: str, owner: Owner, weight: int = 0) -> PodAffinityTerm:
    """Return an inter-pod term. Without ``namespaces`` and ``namespaceSelector`` it means the pod's own namespace."""
    namespaces = texts(obj, "namespaces", path)
    namespace_selector = maybe_label_selector(obj, "namespaceSelector", path)
    # Written out, so that a term can be compared and kept without its pod.
    if not namespaces and namespace_selector is None:
        namespaces = (owner.namespace,)
    selector = maybe_label_selector(obj, "labelSelector", path)
    selector = _with_own(selector, texts(obj, "matchLabelKeys", path), "In", owner)
    selector = _with_own(selector, texts(obj, "mismatchLabelKeys", path), "NotIn", owner)
    return PodAffinityTerm(required_text(obj, "topologyKey", path), selector, namespaces, namespace_selector, weight)


def _with_own(
    selector: LabelSelector | None, keys: tuple[str, ...], operator: str, owner: Owner
) -> LabelSelector | None:
    """Return the selector with the pod's own values of ``keys``. The API server merges them, but a file has not passed
    one."""
    if selector is None or not keys:
        return selector
    # Keys that the pod does not have are ignored, as the API server does.
    own = (Requirement(key, operator, (owner.labels[key],)) for key in keys if key in owner.labels)
    return LabelSelector(selector.requirements + tuple(term for term in own if term not in selector.requirements))


# -- spread


def spread(spec: Obj, path: str, owner: Owner) -> tuple[TopologySpreadConstraint, ...]:
    key = "topologySpreadConstraints"
    return tuple(
        _spread_constraint(item, f"{at(path, key)}[{i}]", owner) for i, item in enumerate(tables(spec, key, path))
    )


def _spread_constraint(obj: Obj, path: str, owner: Owner) -> TopologySpreadConstraint:
    selector = maybe_label_selector(obj, "labelSelector", path)
    # Required by the API, and without a default that would be safe.
    if "maxSkew" not in obj:
        raise wrong(obj, "maxSkew", path, f"an integer from 1 to {INT32_MAX}")
    # Policies and minimum have the defaults of the API server, which a file has not passed.
    return TopologySpreadConstraint(
        max_skew=whole(obj, "maxSkew", path, 1, 1),
        topology_key=required_text(obj, "topologyKey", path),
        when_unsatisfiable=choice(obj, "whenUnsatisfiable", path, ("DoNotSchedule", "ScheduleAnyway")),
        selector=_with_own(selector, texts(obj, "matchLabelKeys", path), "In", owner),
        min_domains=whole(obj, "minDomains", path, 1, 1),
        node_affinity_policy=choice(obj, "nodeAffinityPolicy", path, ("Honor", "Ignore"), "Honor"),
        node_taints_policy=choice(obj, "nodeTaintsPolicy", path, ("Honor", "Ignore"), "Ignore"),
    )
