"""Priority class and preemptibility of workloads that name none, by the kind of their owner."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pumice.model.manifest.reading.fields import FieldError
from pumice.runtime.controllers.kai.kind_defaults import has_kind_defaults, read_kind_defaults
from tests.unit.runtime.controllers.test_kai_groups import Obj, owner, pod, spec_of

SET = owner("apps/v1", "StatefulSet")
JOB = owner("batch/v1", "Job", "j")
TRAIN_JOB = owner("trainer.kubeflow.org/v1alpha1", "TrainJob", "t")
LISTED = [
    {"typeName": "StatefulSet", "priorityName": "of-any-set"},
    {"typeName": "StatefulSet", "group": "apps", "priorityName": "of-sets", "preemptibility": "Non-Preemptible"},
    {"typeName": "Job", "priorityName": "gone", "preemptibility": "never"},
    {"typename": "TrainJob", "priorityname": "of-train-jobs", "preemptibility": "preemptible"},
]


def config_map(listed: Any) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "data": {"types": json.dumps(listed)}}


DEFAULTS = read_kind_defaults(config_map(LISTED))


def labelled(obj: Obj, **labels: str) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


def class_of(of: Obj, *owners: Obj) -> tuple[str, str | None]:
    """The class and the preemptibility of its group, where no class is called ``gone``."""
    spec = spec_of(of, *owners, defaults=DEFAULTS, class_exists=lambda name: name != "gone")
    return spec["priorityClassName"], spec.get("preemptibility")


@pytest.mark.parametrize(
    ("of", "owners", "found"),
    [
        pytest.param(pod(), (SET,), ("of-sets", "non-preemptible"), id="a kind with its group before the kind alone"),
        pytest.param(
            pod(), (owner("x.io/v1", "StatefulSet"),), ("of-any-set", None), id="the kind alone for another group"
        ),
        pytest.param(pod(), (owner("x.io/v1", "Any"),), ("train", None), id="a kind that is not listed"),
        pytest.param(
            pod(priorityClassName="own"), (SET,), ("own", "non-preemptible"), id="the pod's class before the kind's"
        ),
        pytest.param(
            labelled(pod(), **{"kai.scheduler/preemptibility": "preemptible"}),
            (SET,),
            ("of-sets", "preemptible"),
            id="the pod's label before the kind's",
        ),
        pytest.param(
            pod(priorityClassName="gone"), (SET,), ("of-sets", "non-preemptible"), id="a class that does not exist"
        ),
        pytest.param(
            pod(), (JOB,), ("train", None), id="a default that does not exist, and a preemptibility that is none"
        ),
        pytest.param(
            pod(), (SET, owner("x.io/v1", "Any")), ("of-sets", "non-preemptible"), id="an owner below the top"
        ),
        pytest.param(
            pod(),
            (JOB, labelled(TRAIN_JOB, priorityClassName="mine")),
            ("of-train-jobs", "preemptible"),
            id="a wrapper's kind before the wrapper's label, as in KAI",
        ),
        pytest.param(
            pod(),
            (labelled(JOB, priorityClassName="mine"), TRAIN_JOB),
            ("mine", "preemptible"),
            id="the label of what is wrapped before the wrapper's kind",
        ),
    ],
)
def test_the_kind_of_an_owner_says_what_nothing_else_says(
    of: Obj, owners: tuple[Obj, ...], found: tuple[str, str | None]
) -> None:
    assert class_of(of, *owners) == found


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "data.types: found nothing, wanted a JSON list of kinds"),
        ({"types": "[{"}, "data.types: found no JSON"),
        ({"types": "{}"}, "data.types: found"),
        ({"types": "[1]"}, "data.types[0]: found 1, wanted an object with typeName"),
        ({"types": '[{"typeName": 1}]'}, "data.types[0].typeName: found 1"),
        ({"types": json.dumps([{}] * 1001)}, "data.types: found 1001 kinds, wanted at most 1000"),
        ({"types": "[" * 100_000}, "data.types: found no JSON"),
    ],
)
def test_other_contents_are_refused(data: Obj, said: str) -> None:
    with pytest.raises(FieldError) as refused:
        read_kind_defaults({"data": data})
    assert str(refused.value).startswith(said)


def test_a_config_map_is_known_by_its_list() -> None:
    assert has_kind_defaults(config_map(LISTED))
    for other in ({}, {"data": {"types": "a, b"}}, {"data": {"types": "[1]"}}, {"data": None}):
        assert not has_kind_defaults(other)
