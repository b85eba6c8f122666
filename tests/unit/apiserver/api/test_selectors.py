"""Selectors of labels and fields, as kubectl writes them."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.apiserver.api.selectors import TERMS_MAX, matches, selection
from pumice.apiserver.bounds import Work
from pumice.apiserver.refusals import Refusal

FIELDS = frozenset({"metadata.name", "spec.nodeName", "spec.unschedulable"})


def obj(**labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "x", "labels": labels}, "spec": {"nodeName": "n"}}


@pytest.mark.parametrize(
    ("labels", "selects"),
    [
        pytest.param("", True, id="nothing asked"),
        pytest.param("a=1", True, id="equal"),
        pytest.param("a==1", True, id="equal twice"),
        pytest.param("a=2", False, id="other value"),
        pytest.param("a!=2", True, id="not equal"),
        pytest.param("c!=2", True, id="not equal where absent"),
        pytest.param("a", True, id="exists"),
        pytest.param("c", False, id="does not exist"),
        pytest.param("!c", True, id="absent"),
        pytest.param("!a", False, id="not absent"),
        pytest.param("a in (1, 2)", True, id="in"),
        pytest.param("a in (2,3)", False, id="not in the set"),
        pytest.param("a notin (2,3)", True, id="notin"),
        pytest.param("c notin (2,3)", True, id="notin where absent"),
        pytest.param("a in (1,2),b=x,!c", True, id="all of several"),
        pytest.param("a in (1,2),b=y", False, id="not all of several"),
        pytest.param("example.com/k=v", False, id="a key with a domain"),
        pytest.param("a>0", True, id="above"),
        pytest.param("a<1", False, id="not below"),
        pytest.param("b=", False, id="empty value"),
    ],
)
def test_labels(labels: str, selects: bool) -> None:
    assert selection(labels, "", FIELDS)(obj(a="1", b="x")) is selects


@pytest.mark.parametrize("text", ["a b", "a in 1,2", "=x", "a=1,,", "a>x", "a in (1", "x" * 20_000])
def test_what_is_no_label_selector_is_reported(text: str) -> None:
    with pytest.raises(Refusal) as refused:
        selection(text, "", FIELDS)
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("fields", "selects"),
    [
        pytest.param("spec.nodeName=n", True, id="equal"),
        pytest.param("spec.nodeName!=n", False, id="not equal"),
        pytest.param("metadata.name=x,spec.nodeName=n", True, id="two"),
        pytest.param("spec.nodeName=", False, id="empty"),
        pytest.param("spec.unschedulable=", True, id="absent is empty"),
    ],
)
def test_fields(fields: str, selects: bool) -> None:
    assert selection("", fields, FIELDS)(obj()) is selects


@pytest.mark.parametrize("text", ["spec.image=x", "spec.nodeName", "spec.nodeName~x"])
def test_a_field_that_cannot_be_selected_by_is_reported(text: str) -> None:
    with pytest.raises(Refusal) as refused:
        selection("", text, FIELDS)
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("selector", "fits"),
    [
        pytest.param({}, True, id="empty fits all"),
        pytest.param({"matchLabels": {"a": "1"}}, True, id="label"),
        pytest.param({"matchLabels": {"a": "2"}}, False, id="other label"),
        pytest.param({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, True, id="In"),
        pytest.param({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, False, id="NotIn"),
        pytest.param({"matchExpressions": [{"key": "b", "operator": "Exists"}]}, False, id="Exists"),
        pytest.param({"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}, True, id="DoesNotExist"),
        pytest.param({"matchExpressions": [{"key": "a", "operator": "Like"}]}, False, id="unknown operator"),
    ],
)
def test_selectors_inside_objects(selector: dict[str, Any], fits: bool) -> None:
    assert matches(selector, {"a": "1"}, Work(100, "")) is fits


def test_a_selector_has_so_many_terms_at_most() -> None:
    selection(",".join(["a"] * TERMS_MAX), "", FIELDS)
    with pytest.raises(Refusal, match="more than 100 terms"):
        selection(",".join(["a"] * TERMS_MAX), "metadata.name=x", FIELDS)
