"""Bodies that are JSON and nothing more: each is refused or kept, none is a fault of the server."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.apiserver.api.lists import Shape
from pumice.apiserver.api.managed import applied_to, check_config
from pumice.apiserver.api.patches import json_patched, merge_patched, strategic_patched
from pumice.apiserver.api.requests import deletion_of
from pumice.apiserver.api.tables import table
from pumice.apiserver.cluster import Cluster
from pumice.apiserver.kinds.pods import bind, evict
from pumice.apiserver.objects import Deletion, Options, Target
from pumice.apiserver.refusals import Refusal
from tests.unit.apiserver.worlds import START, cluster, create, group, node, pod, queue, settle

SCALARS = (
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.sampled_from(["", "a", "b", "1", "50%", "∞"])
)
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner), max_leaves=6
)
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "things", "kind": "Thing", "shortNames": ["t"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "N", "type": "string", "jsonPath": ".spec.n"}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}},
            }
        ],
    },
}
PDB = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "p"},
    "spec": {
        "minAvailable": 1,
        "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In"}]},
    },
}
EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "e"},
    "involvedObject": {"name": "x"},
    "series": {"count": 1},
}
CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "c"},
    "value": 1,
    "globalDefault": True,
}
FULL_POD = pod(
    "a",
    labels={"a": "b"},
    annotations={"pumice.dev/duration": "1s"},
    owners=["u"],
    nodeName="n",
    tolerations=[{"key": "k"}],
    schedulingGates=[],
    initContainers=[{"name": "i", "image": "i"}],
    containers=[{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}, "ports": [{"containerPort": 1}]}],
)
FULL_NODE = node("n") | {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": True}}
SOUND = [FULL_POD, FULL_NODE, queue("q", weight=1), group("g", minMember=1), CRD, PDB, EVENT, CLASS]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        found += places(part, (*path, key))
    return found


@st.composite
def spoilt(draw: st.DrawFn, sound: dict[str, Any]) -> dict[str, Any]:
    """A sound object with one or two parts replaced by anything. Group and kind stay: they are the path's."""
    obj: dict[str, Any] = copy.deepcopy(sound)
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from([p for p in places(obj) if p[0] not in ("apiVersion", "kind")]))
        at: Any = obj
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = draw(ANYTHING)
    return obj


@given(sound=st.sampled_from(SOUND), data=st.data())
def test_any_object(sound: dict[str, Any], data: st.DataObject) -> None:
    world = cluster()
    create(world, pod("other", nodeName="n", labels={"a": "b"}))
    before = world.store.version
    try:
        create(world, data.draw(spoilt(sound)))
    except Refusal as refusal:
        assert 400 <= refusal.code < 500
        assert world.store.version == before
    create(world, node("m"))
    settle(world)
    shown(world)
    try:
        evict(world.objects, Target(resource(world, "pods"), "default", "other"), {}, Deletion())
    except Refusal as refusal:
        assert refusal.code == 429


@given(sound=st.sampled_from(SOUND), data=st.data())
def test_any_change(sound: dict[str, Any], data: st.DataObject) -> None:
    world = cluster()
    made = create(world, sound)
    kind = world.registry.of_kind(sound["apiVersion"], sound["kind"])
    assert kind is not None
    where = Target(
        kind,
        made["metadata"].get("namespace", ""),
        made["metadata"]["name"],
        data.draw(st.sampled_from(["", "status"])),
    )
    body = data.draw(spoilt(sound) | ANYTHING)
    shape = Shape.of(kind)
    config: Any = body if isinstance(body, dict) else {}
    options = Options(manager="m", applied=config)
    operation = {
        "op": "replace",
        "path": "/" + data.draw(st.sampled_from(["spec", "metadata", "status", "a"])),
        "value": body,
    }
    edits = [
        lambda old: merge_patched(old, body),
        lambda old: strategic_patched(old, body, shape),
        lambda old: json_patched(old, [operation]),
        lambda old: body if isinstance(body, dict) else old,
    ]
    try:
        world.objects.change(where, data.draw(st.sampled_from(edits)), Options())
    except Refusal as refusal:
        assert 400 <= refusal.code < 500
    try:
        check_config(config, "m")
        world.objects.change(where, lambda old: applied_to(kind, old, config, options), options)
    except Refusal as refusal:
        assert 400 <= refusal.code < 500
    settle(world)
    shown(world)


@given(body=st.dictionaries(st.sampled_from(["target", "metadata", "a"]), ANYTHING))
def test_any_binding(body: dict[str, Any]) -> None:
    world = cluster()
    create(world, pod("a"))
    try:
        bind(world.objects, Target(resource(world, "pods"), "default", "a"), body)
    except Refusal as refusal:
        assert 400 <= refusal.code < 500
    settle(world)


@pytest.mark.parametrize("metadata", ["x", 5, True, ["a"], {"name": 5}], ids=str)
def test_metadata_that_is_no_object_is_refused_wherever_it_is_sent(metadata: Any) -> None:
    world = cluster()
    create(world, pod("a"))
    at = Target(resource(world, "pods"), "default", "a")
    with pytest.raises(Refusal) as refused:
        evict(world.objects, at, {"metadata": metadata}, Deletion())
    assert refused.value.code == 400
    if not isinstance(metadata, dict):
        with pytest.raises(Refusal) as refused:
            bind(world.objects, at, {"target": {"name": "n"}, "metadata": metadata})
        assert refused.value.code == 400


@pytest.mark.parametrize(
    "body",
    [
        *("x", 5, ["a"], None),
        *({"preconditions": 5}, {"preconditions": {"uid": 5}}, {"preconditions": {"resourceVersion": ["1"]}}),
        *({"gracePeriodSeconds": True}, {"gracePeriodSeconds": "5"}),
        *({"propagationPolicy": ["Orphan"]}, {"propagationPolicy": {}, "dryRun": 5}),
        *({"dryRun": 5}, {"dryRun": {"a": "b"}}, {"dryRun": [5]}, {"dryRun": ["All", "All"]}),
    ],
    ids=str,
)
def test_options_of_a_deletion_that_are_none(body: Any) -> None:
    with pytest.raises(Refusal) as refused:
        deletion_of({}, body)
    assert refused.value.code == 400


def resource(world: Cluster, plural: str) -> Any:
    return world.registry.find("", "v1", plural)


def shown(world: Cluster) -> None:
    """Everything that was kept can be printed."""
    for kind in world.registry.resources():
        table(kind, [row.obj for row in world.store.rows(kind.table)] if not kind.shared else [], {}, START, "Object")
