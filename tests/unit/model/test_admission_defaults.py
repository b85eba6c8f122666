"""What admission fills in of pods and templates in files: LimitRanges and RuntimeClasses."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.model.manifest.defaults.admission import LIMIT_RANGE, RUNTIME_CLASS, AdmissionDefaults
from pumice.model.manifest.reading.fields import FieldError

POD = ("v1", "Pod")


def defaults(*items: dict[str, Any], namespace: str = "default") -> AdmissionDefaults:
    found = AdmissionDefaults()
    limits = [{"type": "Container", **item} for item in items]
    found.note(LIMIT_RANGE, {"metadata": {"name": "sizes", "namespace": namespace}, "spec": {"limits": limits}})
    return found


def pod(resources: dict[str, Any] | None = None, **metadata: str) -> dict[str, Any]:
    container = {"name": "c"} if resources is None else {"name": "c", "resources": resources}
    return {"metadata": {"name": "x", **metadata}, "spec": {"containers": [container]}}


def resources_of(obj: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    found = obj["spec"]["containers"][0].get("resources") or {}
    return found.get("requests") or {}, found.get("limits") or {}


@pytest.mark.parametrize(
    ("item", "own", "requests", "limits"),
    [
        ({"defaultRequest": {"cpu": "2"}, "default": {"cpu": "4"}}, None, {"cpu": "2"}, {"cpu": "4"}),
        ({"default": {"cpu": "4"}}, None, {"cpu": "4"}, {"cpu": "4"}),
        ({"max": {"cpu": "8"}}, None, {"cpu": "8"}, {"cpu": "8"}),
        ({"min": {"cpu": "1"}}, None, {"cpu": "1"}, {}),
        ({"min": {"cpu": "1"}, "default": {"cpu": "4"}}, None, {"cpu": "4"}, {"cpu": "4"}),
        ({"defaultRequest": {"cpu": "2"}}, {"requests": {"cpu": "3"}}, {"cpu": "3"}, {}),
        # A limit of its own becomes the request before admission, so the default request does not count.
        ({"defaultRequest": {"cpu": "2"}}, {"limits": {"cpu": "6"}}, {"cpu": "6"}, {"cpu": "6"}),
        ({"type": "Pod", "max": {"cpu": "8"}}, None, {}, {}),
    ],
)
def test_a_container_gets_the_amounts_that_it_does_not_name(
    item: dict[str, Any], own: dict[str, Any] | None, requests: dict[str, Any], limits: dict[str, Any]
) -> None:
    assert resources_of(defaults(item).admitted(POD, pod(own))) == (requests, limits)


def test_other_namespaces_and_pods_of_an_api_server_stay_as_they_are() -> None:
    found = defaults({"defaultRequest": {"cpu": "2"}}, namespace="a")
    for obj in (pod(), pod(namespace="b"), pod(namespace="a", resourceVersion="7")):
        assert found.admitted(POD, obj) == obj


def test_templates_of_jobs_are_filled_in() -> None:
    found = defaults({"defaultRequest": {"cpu": "2"}})
    template = {"template": {"spec": pod()["spec"]}}
    job = found.admitted(
        ("batch.volcano.sh/v1alpha1", "Job"), {"metadata": {"name": "j"}, "spec": {"tasks": [template]}}
    )
    assert resources_of(job["spec"]["tasks"][0]["template"])[0] == {"cpu": "2"}


def test_a_runtime_class_adds_overhead_labels_and_tolerations() -> None:
    found = AdmissionDefaults()
    toleration = {"key": "vm", "operator": "Exists"}
    scheduling = {"nodeSelector": {"vm": "yes", "zone": "a"}, "tolerations": [toleration]}
    overhead = {"podFixed": {"cpu": "250m"}}
    found.note(RUNTIME_CLASS, {"metadata": {"name": "kata"}, "overhead": overhead, "scheduling": scheduling})
    obj = pod()
    obj["spec"] |= {"runtimeClassName": "kata", "nodeSelector": {"zone": "b"}, "tolerations": [toleration]}
    spec = found.admitted(POD, obj)["spec"]
    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["nodeSelector"] == {"vm": "yes", "zone": "b"}
    assert spec["tolerations"] == [toleration]
    assert found.admitted(POD, pod()) == pod()


@pytest.mark.parametrize(
    "spec", [{"containers": 3}, {"containers": [1]}, {"containers": [{"resources": []}]}, {"containers": None}, []]
)
def test_what_cannot_be_read_stays_as_it_is(spec: object) -> None:
    obj = {"metadata": {"name": "x"}, "spec": spec}
    assert defaults({"default": {"cpu": "1"}}).admitted(POD, obj) == obj


def test_a_wrong_amount_names_its_field() -> None:
    with pytest.raises(FieldError, match=r"spec.limits\[0\].default.cpu"):
        defaults({"default": {"cpu": "many"}})
