"""Decode HyperNodes."""

from __future__ import annotations

from pumice.model.manifest.reading.fields import (
    INT32_MAX,
    FieldError,
    Obj,
    at,
    choice,
    instant,
    name,
    short_text,
    shown,
    table,
    tables,
    text,
    whole,
    wrong,
)
from pumice.model.manifest.terms import maybe_label_selector
from pumice.model.topology import HyperNode, HyperNodeMember


def read_hypernode(obj: Obj) -> HyperNode:
    metadata = table(obj, "metadata", "")
    spec = table(obj, "spec", "")
    # There is no safe default: a wrong tier would let gangs spread too far, or nowhere.
    if "tier" not in spec:
        raise wrong(spec, "tier", "spec", f"an integer from 0 to {INT32_MAX}")
    return HyperNode(
        name=name(metadata, "name", "metadata"),
        tier=whole(spec, "tier", "spec", 0, 0, INT32_MAX - 1),  # the virtual top is one tier higher
        members=tuple(_member(item, f"spec.members[{i}]") for i, item in enumerate(tables(spec, "members", "spec"))),
        tier_name=short_text(spec, "tierName", "spec"),
        creation=instant(metadata, "creationTimestamp", "metadata") or 0.0,
        resource_version=text(metadata, "resourceVersion", "metadata"),
    )


def _member(item: Obj, path: str) -> HyperNodeMember:
    kind = choice(item, "type", path, ("Node", "HyperNode"))
    selector = table(item, "selector", path)
    path = at(path, "selector")
    given = [key for key in ("exactMatch", "regexMatch", "labelMatch") if selector.get(key) is not None]
    # The CRD demands this too; with two selectors it would be unclear whether a node must match both.
    if len(given) != 1:
        found = " and ".join(given) or shown(item.get("selector"))
        raise FieldError(path, found, "one of exactMatch, regexMatch and labelMatch")
    return HyperNodeMember(
        type=kind,
        exact=_text_of(selector, "exactMatch", "name", path),
        regex=_text_of(selector, "regexMatch", "pattern", path),
        labels=maybe_label_selector(selector, "labelMatch", path),
    )


def _text_of(selector: Obj, key: str, field: str, path: str) -> str | None:
    # None and "" differ: an exact match of no name selects nothing, and none given leaves the choice to another
    # selector.
    if selector.get(key) is None:
        return None
    return text(table(selector, key, path), field, at(path, key))
