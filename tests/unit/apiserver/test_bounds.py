"""What one client can make of a small request: bounded growth, bounded work, bounded memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from pumice.apiserver import bounds
from pumice.apiserver.api.lists import Shape
from pumice.apiserver.api.managed import applied_to
from pumice.apiserver.api.patches import json_patched, merge_patched, strategic_patched
from pumice.apiserver.api.requests import json_of
from pumice.apiserver.bounds import DEPTH_MAX, OBJECT_BYTES_MAX, VALUES_MAX, Work, check_object, check_value
from pumice.apiserver.cluster import Cluster
from pumice.apiserver.kinds.pods import evict
from pumice.apiserver.objects import Deletion, Options, Target
from pumice.apiserver.refusals import Refusal
from pumice.apiserver.store import Store
from tests.unit.apiserver.conftest import Client
from tests.unit.apiserver.worlds import cluster, create, found, node, pod, target

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def configmap(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


def refusal(do: Callable[[], object]) -> Refusal:
    with pytest.raises(Refusal) as refused:
        do()
    return refused.value


# -- patches


def test_copies_of_copies_are_refused_before_they_are_made() -> None:
    doubling = [{"op": "copy", "from": "/data", "path": f"/data/x{i}"} for i in range(64)]
    found = refusal(lambda: json_patched(configmap("a", data={"k": "v" * 100}), doubling))
    assert (found.code, found.reason) == (413, "RequestEntityTooLarge")


def test_copies_that_come_to_little_are_made() -> None:
    copies = [{"op": "copy", "from": "/data/k", "path": f"/data/x{i}"} for i in range(1000)]
    assert len(json_patched(configmap("a", data={"k": "v" * 100}), copies)["data"]) == 1001


def test_a_text_that_is_copied_counts_although_it_is_one_in_memory() -> None:
    copies = [{"op": "copy", "from": "/data/k", "path": f"/data/x{i}"} for i in range(100)]
    assert refusal(lambda: json_patched(configmap("a", data={"k": "v" * 1_000_000}), copies)).code == 413


def test_a_patch_that_nests_an_object_in_itself_is_refused() -> None:
    inward, path = [], "/x"
    for _ in range(20):
        inward.append({"op": "copy", "from": "/x", "path": f"{path}/a"})
        path += "/a"
    obj = configmap("a", x={})
    assert refusal(lambda: json_patched(obj, inward)).code in (400, 413, 422)
    deepening = [{"op": "add", "path": "/x" + "/a" * i, "value": {}} for i in range(1, 2 * DEPTH_MAX)]
    assert refusal(lambda: json_patched(obj, deepening)).code == 400


def test_pushing_a_long_list_along_again_and_again_is_refused() -> None:
    obj = configmap("a", x=[0] * 90_000)
    one = {"op": "add", "path": "/x/0", "value": 0}
    assert len(json_patched(obj, [one] * 10)["x"]) == 90_010
    for operation in (one, {"op": "remove", "path": "/x/0"}):
        assert refusal(lambda chosen=operation: json_patched(obj, [chosen] * 1000)).code == 413
    assert len(json_patched(obj, [{"op": "add", "path": "/x/-", "value": 0}] * 9_000)["x"]) == 99_000


class Counted(str):
    """A text that counts how often it is compared."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize(
    ("before", "patch"),
    [
        pytest.param(
            {"volumes": [{"name": Counted(f"a{i}")} for i in range(300)]},
            {"volumes": [{"name": Counted(f"b{i}")} for i in range(300)]},
            id="items by key",
        ),
        pytest.param(
            {"volumes": [{"name": Counted(f"a{i}")} for i in range(300)]},
            {"volumes": [{"name": Counted(f"a{i}"), "$patch": "delete"} for i in range(299)]},
            id="items deleted",
        ),
        pytest.param(
            {"finalizers": [Counted(f"a{i}") for i in range(300)]},
            {"finalizers": [Counted(f"b{i}") for i in range(300)]},
            id="sets",
        ),
        pytest.param(
            {"finalizers": [Counted(f"a{i}") for i in range(300)]},
            {"$deleteFromPrimitiveList/finalizers": [Counted(f"b{i}") for i in range(300)]},
            id="values deleted",
        ),
    ],
)
def test_a_strategic_merge_looks_at_each_item_once(before: dict[str, Any], patch: dict[str, Any]) -> None:
    Counted.comparisons = 0
    strategic_patched(before, patch, Shape(None))
    assert Counted.comparisons <= 1200  # 300 by 300 are 90,000


def test_an_apply_looks_at_each_item_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the steps of the program: twice the items take about twice as many, with conflicts and without."""
    world = cluster()
    services = world.registry.find("", "v1", "services")
    assert services is not None

    def apply(name: str, manager: str, count: int, value: int, force: bool = False) -> None:
        config = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {"volumes": [{"name": f"{i}", "v": value} for i in range(count)]},
        }
        where, options = Target(services, "default", name), Options(manager=manager, applied=config, force=force)
        if world.store.find("services", f"default/{name}") is None:
            world.objects.create(where, config, options)
            return
        world.objects.change(where, lambda old: applied_to(services, old, config, options), options)

    def steps(count: int) -> int:
        calls = 0

        def trace(*_: object) -> None:
            nonlocal calls
            calls += 1

        name = f"s{count}"
        apply(name, "first", count, 1)
        sys.setprofile(trace)
        try:
            apply(name, "second", count, 1)
            with pytest.raises(Refusal, match="conflicts"):
                apply(name, "third", count, 2)
            apply(name, "third", count, 2, force=True)
            apply(name, "second", 0, 1)
        finally:
            sys.setprofile(None)
        return calls

    assert steps(800) < 3 * steps(400)


# -- bodies and objects


@pytest.mark.parametrize("depth", [DEPTH_MAX + 1, 970, 5_000], ids=["a little", "much", "for any stack"])
def test_what_is_nested_too_deep_is_refused_where_it_comes_in(depth: int) -> None:
    raw = b'{"a":' * depth + b"1" + b"}" * depth
    assert refusal(lambda: json_of(raw)).code == 400
    assert json_of(b'{"a":' * DEPTH_MAX + b"1" + b"}" * DEPTH_MAX) == nested(DEPTH_MAX)


def test_a_text_full_of_brackets_is_no_nesting() -> None:
    text = "[{," * 100_000
    assert json_of(json.dumps({"a": text}).encode()) == {"a": text}
    check_object(configmap("a", data={"a": text}))


def test_what_holds_too_many_values_is_refused() -> None:
    raw = json.dumps([0] * VALUES_MAX).encode()
    assert refusal(lambda: json_of(raw)).code == 413
    assert refusal(lambda: check_value([[]] * VALUES_MAX, b"[" * VALUES_MAX)).code == 413


@pytest.mark.parametrize("how", ["create", "merge", "json", "strategic", "apply"])
def test_no_way_leads_to_an_object_that_is_too_large(how: str) -> None:
    world = cluster()
    half = {"k": "v" * (OBJECT_BYTES_MAX * 2 // 3)}
    first, more = configmap("a", data=half), {"l": half["k"]}
    kind = world.registry.find("", "v1", "configmaps")
    assert kind is not None
    if how == "create":
        assert refusal(lambda: create(world, configmap("b", data=half | more))).code == 413
        return
    create(world, first)
    before = world.store.version
    edits: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "merge": lambda obj: merge_patched(obj, {"data": more}),
        "json": lambda obj: json_patched(obj, [{"op": "copy", "from": "/data/k", "path": "/data/l"}]),
        "strategic": lambda obj: strategic_patched(obj, {"data": more}, Shape.of(kind)),
        "apply": lambda obj: applied_to(kind, obj, configmap("a", data=more), Options(manager="m")),
    }
    where = target(world, "configmaps", "a")
    assert refusal(lambda: world.objects.change(where, edits[how], Options())).code == 413
    assert world.store.version == before


def test_all_objects_together_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    world = cluster()
    monkeypatch.setattr("pumice.apiserver.objects.STORE_BYTES_MAX", world.store.bytes + 10_000)
    create(world, configmap("a", data={"k": "v" * 5_000}))
    full = refusal(lambda: create(world, configmap("b", data={"k": "v" * 5_000})))
    assert (full.code, full.reason) == (507, "InsufficientStorage")
    where = target(world, "configmaps", "a")
    world.objects.change(where, lambda obj: merge_patched(obj, {"data": {"k": "v"}}), Options())
    create(world, configmap("b", data={"k": "v" * 5_000}))
    world.objects.delete(where, Deletion())
    assert found(world, "configmaps", "default/a") is None


def test_the_bytes_of_a_store_are_those_of_its_objects() -> None:
    store = Store()
    for i in range(200):
        store.put("t", f"{i % 7}", {"metadata": {"name": "x"}, "n": "x" * (i % 31)})
        if i % 5 == 0:
            store.remove("t", f"{i % 7}")
    store.load("t", "more", 5, {"metadata": {"name": "x"}})
    store.load("t", "more", 6, {"metadata": {"name": "xyz"}})
    store.unload("t", "0")
    assert store.bytes == sum(len(row.raw) for row in store.rows("t"))


# -- history, watches, lists


def test_history_is_bounded_by_what_it_takes_in_memory() -> None:
    store = Store(history_bytes_max=1 << 20)
    for i in range(50):
        store.put("small", "a", {"metadata": {"name": "a"}, "n": i})
    for i in range(400):
        store.put("large", "a", {"metadata": {"name": "a"}, "n": i, "k": "v" * 100_000})
    kept = sum(len(change.now.raw) for change in store._tables["large"].history)
    assert 0 < kept <= 1 << 20
    assert store._history_bytes <= 1 << 20
    assert len(store.since("small", 1)) == 50  # the largest goes first
    assert refusal(lambda: store.since("large", 60)).code == 410
    assert store.since("large", store.version - 1)[0].version == store.version


def test_what_an_old_state_takes_counts_in_history() -> None:
    """Large objects, each made small: what is kept of them is what they were."""
    store = Store(history_bytes_max=1 << 20)
    for i in range(40):
        store.put("t", f"{i}", {"metadata": {"name": "a"}, "k": "v" * 100_000})
    for i in range(40):
        store.put("t", f"{i}", {"metadata": {"name": "a"}})
    assert sum(len(c.before.raw) for c in store._tables["t"].history if c.before is not None) <= 1 << 20


async def test_a_long_list_is_whole(client: Client, world: Cluster) -> None:
    for i in range(40):
        create(world, configmap(f"c{i:02}", data={"k": "v" * 30_000}))
    for accept in ("application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"):
        async with client.get(CONFIGMAPS, headers={"Accept": accept}, params={"includeObject": "Object"}) as answer:
            listed = await answer.json()
        items = listed.get("items") or [row["object"] for row in listed["rows"]]
        assert [item["metadata"]["name"] for item in items] == [f"c{i:02}" for i in range(40)]
        assert all(len(item["data"]["k"]) == 30_000 for item in items)


async def test_the_lines_of_a_watch_come_in_bounded_batches(client: Client, world: Cluster) -> None:
    """Twenty large objects and their changes: all of them are sent, and never all at once."""
    for i in range(20):
        create(world, configmap(f"c{i:02}", data={"k": "v" * 100_000}))
    async with client.get(CONFIGMAPS, params={"watch": "1"}) as answer:
        names = [json.loads(await answer.content.readline())["object"]["metadata"]["name"] for _ in range(20)]
        assert names == [f"c{i:02}" for i in range(20)]
        for i in range(20):
            where = target(world, "configmaps", f"c{i:02}")
            world.objects.change(where, lambda obj: merge_patched(obj, {"data": {"n": "1"}}), Options())
        for i in range(20):
            event = json.loads(await answer.content.readline())
            assert (event["type"], event["object"]["metadata"]["name"]) == ("MODIFIED", f"c{i:02}")


# -- schemas: their authors are clients too


def defined(world: Cluster, schema: dict[str, Any]) -> None:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"x": schema}}},
    }
    create(
        world,
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Cluster",
                "names": {"plural": "things", "kind": "Thing"},
                "versions": [version],
            },
        },
    )


def doubled(depth: int) -> dict[str, Any]:
    return {"type": "integer"} if depth == 0 else {"anyOf": [doubled(depth - 1), doubled(depth - 1)]}


OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
MANY = {f"k{i}": 1 for i in range(1000)}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        pytest.param(
            {"type": "array", "items": doubled(10)}, ["x"] * 1000, id="alternatives of alternatives, for each item"
        ),
        pytest.param({"type": "array", "items": {"enum": [f"e{i}" for i in range(5000)]}}, ["e4999"] * 5000, id="enum"),
        pytest.param(
            {"type": "array", "items": {"type": "object", "properties": {"d": {**OPEN, "default": MANY}}}},
            [{}] * 5000,
            id="defaults",
        ),
        pytest.param(
            {"type": "array", "items": {"type": "object", "properties": {f"p{i}": {} for i in range(5000)}}},
            [{}] * 5000,
            id="properties",
        ),
        pytest.param({"type": "string", "pattern": "((a?){30}){30}$"}, "abb" * 200_000, id="a pattern"),
    ],
)
def test_judging_by_a_schema_is_bounded(schema: dict[str, Any], value: Any) -> None:
    world = cluster()
    defined(world, schema)
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "x": value}
    assert refusal(lambda: create(world, thing)).code in (413, 422)


def test_the_path_of_a_field_does_not_grow_with_long_names() -> None:
    world = cluster()
    defined(world, {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": doubled(0)}})
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}}
    found = refusal(lambda: create(world, thing | {"x": {"k" * 500_000: {f"{i}": "x" for i in range(5000)}}}))
    assert found.code == 422
    assert len(json.dumps(found.status())) < 50_000


# -- budgets


def test_what_disruption_budgets_make_of_an_eviction_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    world = cluster()
    monkeypatch.setattr("pumice.apiserver.kinds.pods.BUDGET_STEPS_MAX", 1000)
    create(world, node("n"))
    for i in range(20):
        create(world, pod(f"p{i}", labels={"a": "b"}))
    terms = [{"key": "a", "operator": "In", "values": ["b"] * 100}]
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
    create(world, budget | {"spec": {"minAvailable": 1, "selector": {"matchExpressions": terms}}})
    row = world.store.find("pods", "default/p0")
    assert row is not None
    world.store.put("pods", row.key, {**row.obj, "status": {"phase": "Running"}})
    where = target(world, "pods", "p0", part="eviction")
    assert refusal(lambda: evict(world.objects, where, {}, Deletion())).code == 413


def test_work_is_counted_down_to_nothing() -> None:
    work = Work(3, "it")
    work.spend(3)
    assert refusal(lambda: work.spend(1)).message == "it is more than this server does for one request"


def test_bounds_fit_each_other() -> None:
    """What a client may send, or an object may be, is judged within the steps that there are for it."""
    assert bounds.VALUES_MAX < bounds.JUDGING_STEPS_MAX
    assert bounds.OBJECT_BYTES_MAX <= bounds.COPIED_BYTES_MAX
    assert sys.getrecursionlimit() > 6 * bounds.DEPTH_MAX
