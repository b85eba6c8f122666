"""The store: one version for all, a history that can be followed and taken back, and its end."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.apiserver.refusals import Refusal
from pumice.apiserver.store import Store


def obj(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **more}


def names(store: Store, **how: Any) -> list[str]:
    return [row.key for row in store.rows("t", **how)]


def test_each_change_is_a_version_of_all() -> None:
    store = Store(10)
    assert store.put("t", "a", obj("a")).obj["metadata"]["resourceVersion"] == "11"
    assert store.put("u", "b", obj("b")).version == 12
    gone = store.remove("t", "a")
    assert (gone.version, gone.obj["metadata"]["resourceVersion"], store.version) == (13, "13", 13)
    assert store.find("t", "a") is None


def test_what_was_put_is_not_changed_by_its_version() -> None:
    store, mine = Store(), obj("a")
    store.put("t", "a", mine)
    assert mine == {"metadata": {"name": "a"}}


def test_rows_come_in_the_order_of_keys_within_a_prefix() -> None:
    store = Store()
    for key in ("b/2", "a/1", "b/1", "c/1", "b/10"):
        store.put("t", key, obj(key))
    assert names(store) == ["a/1", "b/1", "b/10", "b/2", "c/1"]
    assert names(store, prefix="b/") == ["b/1", "b/10", "b/2"]
    assert names(store, prefix="b/", after="b/1") == ["b/10", "b/2"]
    assert names(store, after="b/2") == ["c/1"]


def test_an_earlier_version_is_read_by_taking_changes_back() -> None:
    store = Store()
    for key in "abc":
        store.put("t", key, obj(key, n=1))
    then = store.version
    store.put("t", "b", obj("b", n=2))
    store.remove("t", "a")
    store.put("t", "d", obj("d"))
    store.put("t", "a", obj("a", n=3))
    assert {row.key: row.obj["n"] for row in store.rows("t", at=then)} == {"a": 1, "b": 1, "c": 1}
    assert names(store, at=then + 2) == ["b", "c"]
    assert names(store) == ["a", "b", "c", "d"]


def test_since_tells_changes_in_order() -> None:
    store = Store()
    start = store.version
    store.put("t", "a", obj("a"))
    store.put("u", "x", obj("x"))
    store.put("t", "a", obj("a", n=2))
    store.remove("t", "a")
    reports = store.since("t", start)
    assert [(c.before is not None, c.deleted) for c in reports] == [(False, False), (True, False), (True, True)]
    assert store.since("t", reports[0].version) == reports[1:]
    assert store.since("t", store.version) == []


def test_a_version_that_is_no_longer_kept_is_410() -> None:
    store = Store(history_max=10)
    start = store.version
    for _ in range(21):
        store.put("t", "a", obj("a"))
    for read in (lambda: store.since("t", start), lambda: list(store.rows("t", at=start))):
        with pytest.raises(Refusal) as refused:
            read()
        assert (refused.value.code, refused.value.reason) == (410, "Expired")
    assert len(store.since("t", store.version - 10)) == 10


def test_the_history_of_one_kind_does_not_push_out_that_of_another() -> None:
    store = Store(history_max=10)
    start = store.version
    store.put("quiet", "a", obj("a"))
    for _ in range(100):
        store.put("busy", "b", obj("b"))
    assert [change.now.key for change in store.since("quiet", start)] == ["a"]


def test_a_version_to_come_is_410() -> None:
    with pytest.raises(Refusal, match="too large resource version"):
        Store(5).since("t", 6)


def test_what_was_loaded_is_no_history() -> None:
    store = Store(5)
    store.load("t", "a", 90, obj("a"))
    store.load("t", "b", 91, obj("b"))
    store.unload("t", "b")
    store.loaded(92)
    assert (names(store), store.version) == (["a"], 92)
    assert store.since("t", 92) == []
    with pytest.raises(Refusal):
        store.since("t", 91)


def test_a_bell_rings_for_its_kind_only() -> None:
    store = Store()
    with store.woken_by("t") as woken:
        store.put("u", "a", obj("a"))
        assert not woken.is_set()
        store.put("t", "a", obj("a"))
        assert woken.is_set()
        woken.clear()
    store.put("t", "a", obj("a"))
    assert not woken.is_set()
