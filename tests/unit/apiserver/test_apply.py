"""Server-side apply: merging, ownership, conflicts."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.apiserver.api.managed import applied_to
from pumice.apiserver.cluster import Cluster
from pumice.apiserver.objects import Options
from pumice.apiserver.refusals import Refusal
from tests.unit.apiserver.worlds import cluster, create, pod, queue, target

QUEUES = "queues.scheduling.volcano.sh"


def applied(world: Cluster, config: dict[str, Any], manager: str = "me", force: bool = False) -> dict[str, Any]:
    table = QUEUES if config["kind"] == "Queue" else "pods"
    where = target(world, table, config["metadata"]["name"])
    options = Options(manager=manager, force=force, applied=config)
    if world.store.find(table, where.key) is None:
        return world.objects.create(where, config, options)
    return world.objects.change(where, lambda old: applied_to(where.resource, old, config, options), options)


def owners(obj: dict[str, Any]) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", [])}


def labelled(name: str, labels: dict[str, str], **spec: Any) -> dict[str, Any]:
    found = queue(name, **spec)
    found["metadata"]["labels"] = labels
    return found


def test_what_an_owner_drops_goes_and_the_rest_stays() -> None:
    world = cluster()
    create(world, labelled("q", {"theirs": "1"}, weight=1))
    made = applied(world, labelled("q", {"a": "1", "b": "1"}))
    assert made["metadata"]["labels"] == {"theirs": "1", "a": "1", "b": "1"}
    made = applied(world, labelled("q", {"b": "2"}))
    assert made["metadata"]["labels"] == {"theirs": "1", "b": "2"}
    assert made["spec"]["weight"] == 1
    assert owners(made) == {"me": {"f:metadata": {"f:labels": {"f:b": {}}}}}


def test_a_field_of_another_owner_is_a_conflict_unless_forced() -> None:
    world = cluster()
    applied(world, queue("q", weight=1))
    with pytest.raises(Refusal) as refused:
        applied(world, queue("q", weight=2), "you")
    assert refused.value.code == 409
    assert [cause["field"] for cause in refused.value.status()["details"]["causes"]] == [".spec.weight"]
    made = applied(world, queue("q", weight=2), "you", force=True)
    assert (made["spec"]["weight"], list(owners(made))) == (2, ["you"])


def test_who_applies_the_same_value_shares_the_field() -> None:
    world = cluster()
    applied(world, queue("q", weight=1))
    assert list(owners(applied(world, queue("q", weight=1), "you"))) == ["me", "you"]
    made = applied(world, queue("q"))
    assert (made["spec"]["weight"], list(owners(made))) == (1, ["you"])


def test_an_ordinary_write_takes_the_field_over() -> None:
    world = cluster()
    applied(world, queue("q", weight=1))
    where = target(world, QUEUES, "q")
    options = Options(manager="editor")
    made = world.objects.change(where, lambda old: {**old, "spec": {**old["spec"], "weight": 5}}, options)
    assert owners(made) == {"editor": {"f:spec": {"f:weight": {}}}}
    with pytest.raises(Refusal, match='conflict with "editor"'):
        applied(world, queue("q", weight=1))


def test_items_of_a_list_are_owned_one_by_one() -> None:
    world = cluster()
    mine = pod("a", containers=[{"name": "c", "image": "i:1"}])
    applied(world, mine)
    made = applied(world, {**mine, "spec": {"containers": [{"name": "c", "image": "i:2"}]}})
    assert [c["image"] for c in made["spec"]["containers"]] == ["i:2"]
    place = owners(made)["me"]["f:spec"]["f:containers"]
    assert place == {'k:{"name":"c"}': {".": {}, "f:image": {}, "f:name": {}}}


def test_an_object_that_was_never_applied_has_no_owners() -> None:
    world = cluster()
    made = create(world, queue("q", weight=1), manager="someone")
    assert "managedFields" not in made["metadata"]


def test_what_was_applied_empty_and_filled_by_others_stays() -> None:
    world = cluster()
    applied(world, {**queue("q"), "spec": {}})
    where = target(world, QUEUES, "q")
    world.objects.change(where, lambda old: {**old, "spec": {"weight": 4}}, Options(manager="editor"))
    assert applied(world, queue("q"))["spec"]["weight"] == 4
