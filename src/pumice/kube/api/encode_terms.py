"""Encode what objects of several kinds have: selectors, terms about nodes, tolerations, times."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from pumice.model.manifest.reading.fields import Obj
from pumice.model.pod import LabelSelector, NodeSelectorTerm, Requirement, Toleration


def nonempty(**fields: object) -> Obj:
    """Return the fields that are not None and not empty. Numbers and flags are kept."""
    return {name: value for name, value in fields.items() if value not in (None, "", {}, [], ())}


def instant_object(seconds: float) -> str:
    """Return seconds since the epoch as a time of the API, "" for 0. Fractions are kept, to the microsecond."""
    if not seconds:
        return ""
    digits = "seconds" if float(seconds).is_integer() else "microseconds"
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec=digits).replace("+00:00", "Z")


def selector_object(selector: LabelSelector | None) -> Obj | None:
    """Return a label selector. None and an empty one must differ: the former says nothing, the latter matches
    everything."""
    return None if selector is None else {"matchExpressions": _requirements(selector.requirements)}


def node_selector_object(terms: Iterable[NodeSelectorTerm]) -> Obj:
    """Return terms of which one must hold."""
    return {"nodeSelectorTerms": [node_term_object(term) for term in terms]}


def node_term_object(term: NodeSelectorTerm) -> Obj:
    return nonempty(matchExpressions=_requirements(term.labels), matchFields=_requirements(term.fields))


def toleration_objects(tolerations: Iterable[Toleration]) -> list[Obj]:
    """Return tolerations of a pod, or of a request for devices."""
    return [nonempty(key=t.key, operator=t.operator, value=t.value, effect=t.effect) for t in tolerations]


def _requirements(requirements: Iterable[Requirement]) -> list[Obj]:
    return [nonempty(key=r.key, operator=r.operator, values=list(r.values)) for r in requirements]
