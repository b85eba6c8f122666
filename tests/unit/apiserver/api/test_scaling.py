"""The scale of what has replicas."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.apiserver.api.scaling import scale_of, scaled
from pumice.apiserver.refusals import Refusal

WORKLOAD: dict[str, Any] = {"metadata": {"name": "w"}, "spec": {"selector": {"matchLabels": {"b": "2", "a": "1"}}}}


def test_a_scale_says_how_many_and_whose() -> None:
    scale = scale_of(WORKLOAD)
    assert scale["spec"] == {"replicas": 1} and scale["status"] == {"replicas": 0, "selector": "a=1,b=2"}


def test_only_the_number_changes() -> None:
    made = scaled(WORKLOAD, lambda scale: {**scale, "spec": {"replicas": 3}, "metadata": {"name": "other"}})
    assert made == {**WORKLOAD, "spec": {**WORKLOAD["spec"], "replicas": 3}}


@pytest.mark.parametrize("spec", ["many", 5, [1], {"replicas": -1}, {"replicas": True}, {"replicas": 2**31}], ids=repr)
def test_what_is_no_number_of_pods_is_refused(spec: object) -> None:
    """A spec that is none was an internal error."""
    with pytest.raises(Refusal, match="wanted a number from 0 to"):
        scaled(WORKLOAD, lambda scale: {**scale, "spec": spec})
