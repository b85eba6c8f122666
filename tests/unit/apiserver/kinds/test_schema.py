"""Objects against schemas: defaults, unknown fields, and what is wrong by which keyword."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.apiserver.kinds.resources import Resource
from pumice.apiserver.kinds.schema import conformed
from pumice.apiserver.objects import Options
from pumice.apiserver.refusals import Refusal


def kind(**spec: Any) -> Resource:
    properties = {"spec": {"type": "object", "properties": spec}}
    return Resource("g", "v1", "things", "Thing", schema={"type": "object", "properties": properties}, custom=True)


def judged(resource: Resource, **spec: Any) -> dict[str, Any]:
    obj = {"apiVersion": "g/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}
    found: dict[str, Any] = conformed(resource, obj, Options(unknown_fields="Ignore"))["spec"]
    return found


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        pytest.param({"type": "integer", "minimum": 1}, 0, id="minimum"),
        pytest.param({"type": "integer", "maximum": 1}, 2, id="maximum"),
        pytest.param({"type": "integer"}, "1", id="a text for an integer"),
        pytest.param({"type": "integer"}, True, id="a truth for an integer"),
        pytest.param({"type": "integer"}, 1.5, id="a fraction for an integer"),
        pytest.param({"type": "boolean"}, 1, id="a number for a truth"),
        pytest.param({"type": "string"}, 1, id="a number for a text"),
        pytest.param({"type": "array"}, {}, id="an object for a list"),
        pytest.param({"type": "object"}, [], id="a list for an object"),
        pytest.param({"type": "string", "enum": ["a", "b"]}, "c", id="enum"),
        pytest.param({"type": "string", "pattern": "^a+$"}, "ab", id="pattern"),
        pytest.param({"type": "string", "minLength": 2}, "a", id="minLength"),
        pytest.param({"type": "string", "maxLength": 2}, "abc", id="maxLength"),
        pytest.param({"type": "array", "minItems": 1}, [], id="minItems"),
        pytest.param({"type": "array", "maxItems": 1}, [1, 2], id="maxItems"),
        pytest.param({"type": "array", "items": {"type": "string"}}, ["a", 1], id="items"),
        pytest.param({"type": "array", "x-kubernetes-list-type": "set"}, ["a", "a"], id="set"),
        pytest.param(
            {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
            [{"name": "a"}, {"name": "a"}],
            id="map",
        ),
        pytest.param({"type": "object", "required": ["a"]}, {}, id="required"),
        pytest.param(
            {"type": "object", "maxProperties": 0, "additionalProperties": True}, {"a": 1}, id="maxProperties"
        ),
        pytest.param({"type": "object", "additionalProperties": {"type": "string"}}, {"a": 1}, id="additional"),
        pytest.param({"x-kubernetes-int-or-string": True}, 1.5, id="int or string"),
        pytest.param({"anyOf": [{"type": "string"}, {"type": "integer"}]}, [], id="anyOf"),
        pytest.param({"oneOf": [{"minimum": 1}, {"maximum": 5}]}, 3, id="oneOf"),
        pytest.param({"allOf": [{"minimum": 1}, {"maximum": 5}]}, 7, id="allOf"),
        pytest.param({"not": {"enum": ["x"]}}, "x", id="not"),
        pytest.param({"type": "string"}, None, id="null in a list", marks=()),
    ],
)
def test_what_is_wrong(schema: dict[str, Any], value: Any) -> None:
    resource = kind(f={"type": "array", "items": schema})
    with pytest.raises(Refusal) as refused:
        judged(resource, f=[value])
    status = refused.value.status()
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["details"]["causes"][0]["field"].startswith("spec.f[0]")


def test_defaults_fill_what_is_absent_also_inside_defaults() -> None:
    inner = {"type": "object", "properties": {"b": {"type": "integer", "default": 3}}, "default": {}}
    assert judged(kind(a=inner)) == {"a": {"b": 3}}
    assert judged(kind(a=inner), a={"b": 1}) == {"a": {"b": 1}}
    assert judged(kind(a=inner), a=None) == {"a": {"b": 3}}


def test_null_stays_where_it_is_allowed() -> None:
    assert judged(kind(a={"type": "string", "nullable": True}), a=None) == {"a": None}
    assert judged(kind(a={"type": "string"}), a=None) == {}


def test_unknown_fields_are_dropped_unless_the_schema_keeps_them() -> None:
    open_ = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert judged(kind(a=open_), a={"x": {"y": 1}}, b=2) == {"a": {"x": {"y": 1}}}


def test_a_pattern_that_backtracks_takes_no_time() -> None:
    resource = kind(a={"type": "string", "pattern": "^(a+)+$"})
    with pytest.raises(Refusal):
        judged(resource, a="a" * 5_000 + "b")


def test_a_kind_without_a_schema_takes_anything() -> None:
    resource = Resource("", "v1", "things", "Thing")
    obj = {"metadata": {"name": "t"}, "anything": [1, {}]}
    assert conformed(resource, obj, Options()) == obj
