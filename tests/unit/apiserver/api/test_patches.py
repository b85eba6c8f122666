"""Patches: what they make of an object, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.apiserver.api.lists import Shape
from pumice.apiserver.api.patches import json_patched, merge_patched, strategic_patched
from pumice.apiserver.refusals import Refusal

TYPED = Shape(None)


def containers(*items: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": list(items)}}


A1, A2, B = {"name": "a", "image": "1"}, {"name": "a", "image": "2"}, {"name": "b", "image": "1"}


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        pytest.param({"a": {"b": 2}}, {"a": {"b": 2, "c": [1]}}, id="set"),
        pytest.param({"a": {"b": None}}, {"a": {"c": [1]}}, id="null removes"),
        pytest.param({"a": {"c": [2]}}, {"a": {"b": 1, "c": [2]}}, id="lists are replaced"),
        pytest.param({"d": {"e": None}}, {"a": {"b": 1, "c": [1]}, "d": {}}, id="null in a new object"),
    ],
)
def test_merge(patch: dict[str, Any], result: dict[str, Any]) -> None:
    assert merge_patched({"a": {"b": 1, "c": [1]}}, patch) == result


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        pytest.param({"op": "add", "path": "/b", "value": 2}, {"a": [1, 2], "x/y": 0, "b": 2}, id="add a field"),
        pytest.param({"op": "add", "path": "/a/-", "value": 3}, {"a": [1, 2, 3], "x/y": 0}, id="add at the end"),
        pytest.param({"op": "add", "path": "/a/0", "value": 0}, {"a": [0, 1, 2], "x/y": 0}, id="add before"),
        pytest.param({"op": "remove", "path": "/a/0"}, {"a": [2], "x/y": 0}, id="remove"),
        pytest.param({"op": "replace", "path": "/x~1y", "value": 5}, {"a": [1, 2], "x/y": 5}, id="escaped name"),
        pytest.param({"op": "move", "from": "/a/0", "path": "/b"}, {"a": [2], "x/y": 0, "b": 1}, id="move"),
        pytest.param({"op": "copy", "from": "/a", "path": "/b"}, {"a": [1, 2], "x/y": 0, "b": [1, 2]}, id="copy"),
        pytest.param({"op": "test", "path": "/a/1", "value": 2}, {"a": [1, 2], "x/y": 0}, id="test"),
    ],
)
def test_json_patch(operation: dict[str, Any], result: dict[str, Any]) -> None:
    before = {"a": [1, 2], "x/y": 0}
    assert json_patched(before, [operation]) == result
    assert before == {"a": [1, 2], "x/y": 0}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/b"},
        {"op": "remove", "path": "/a/7"},
        {"op": "replace", "path": "/b/c", "value": 1},
        {"op": "test", "path": "/a/1", "value": 9},
        {"op": "add", "path": "a", "value": 9},
        {"op": "add", "path": "/a/0/b", "value": 9},
        {"op": "add", "path": "/a/-1", "value": 9},
        {"op": "dance", "path": "/a"},
        {"op": "add", "path": "/a"},
        {"path": "/a"},
        {"op": "add", "path": 1, "value": 1},
    ],
    ids=str,
)
def test_json_patch_that_does_not_fit(operation: dict[str, Any]) -> None:
    with pytest.raises(Refusal) as refused:
        json_patched({"a": [1, 2]}, [operation])
    assert refused.value.code == 422


@pytest.mark.parametrize(
    "patch",
    [{}, "x", None, 1, [1], [{"op": "replace", "path": "", "value": 1}], [{"op": "remove", "path": ""}]],
    ids=str,
)
def test_what_is_no_json_patch(patch: Any) -> None:
    with pytest.raises(Refusal) as refused:
        json_patched({}, patch)
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        pytest.param(containers(A2), containers(A2, B), id="an item is merged by name"),
        pytest.param(containers({"name": "c"}), containers(A1, B, {"name": "c"}), id="a new item comes last"),
        pytest.param(containers({"name": "a", "$patch": "delete"}), containers(B), id="an item is deleted"),
        pytest.param(containers({"$patch": "replace"}, A2), containers(A2), id="the list is replaced"),
        pytest.param(
            {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}, containers(B, A1), id="order"
        ),
        pytest.param(
            {"spec": {"$patch": "replace", "nodeName": "n"}}, {"spec": {"nodeName": "n"}}, id="an object is replaced"
        ),
        pytest.param({"spec": {"containers": None}}, {"spec": {}}, id="null removes"),
        pytest.param({"spec": {"$retainKeys": ["x"], "x": 1}}, {"spec": {"x": 1}}, id="only what is retained stays"),
    ],
)
def test_strategic(patch: dict[str, Any], result: dict[str, Any]) -> None:
    assert strategic_patched(containers(A1, B), patch, TYPED) == result


def test_strategic_sets_and_atomic_lists() -> None:
    before = {"metadata": {"finalizers": ["x", "y"]}, "spec": {"tolerations": [{"key": "a"}]}}
    patch = {
        "metadata": {"finalizers": ["z"], "$deleteFromPrimitiveList/finalizers": ["x"]},
        "spec": {"tolerations": [{"key": "b"}]},
    }
    after = strategic_patched(before, patch, TYPED)
    assert sorted(after["metadata"]["finalizers"]) == ["y", "z"]
    assert after["spec"]["tolerations"] == [{"key": "b"}]


def test_strategic_needs_the_merge_key() -> None:
    with pytest.raises(Refusal, match="merge key"):
        strategic_patched(containers(A1), containers({"image": "2"}), TYPED)
