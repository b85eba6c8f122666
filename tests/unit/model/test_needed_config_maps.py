"""The ConfigMaps that pods need. Source: KAI ``config_maps_test.go``."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.model.manifest.needed_config_maps import SHARED_GPU_ANNOTATION, needed_config_maps


def container(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", **fields}]}


def variable(name: str, **more: Any) -> dict[str, Any]:
    return {"name": "V", "valueFrom": {"configMapKeyRef": {"name": name, "key": "k", **more}}}


MOUNTED = container(volumeMounts=[{"name": "v", "mountPath": "/v"}])


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        pytest.param({}, (), id="nothing"),
        pytest.param(container(env=[{"name": "V", "value": "x"}]), (), id="a variable with a value"),
        pytest.param(container(env=[variable("b"), variable("a")]), ("a", "b"), id="variables"),
        pytest.param(container(env=[variable("a", optional=True)]), (), id="an optional variable"),
        pytest.param(
            container(env=[variable("a", optional=True), variable("a")]), ("a",), id="an optional variable and another"
        ),
        pytest.param(container(envFrom=[{"configMapRef": {"name": "a"}}]), ("a",), id="all variables"),
        pytest.param(container(envFrom=[{"secretRef": {"name": "a"}}]), (), id="variables of a Secret"),
        pytest.param({"initContainers": container(env=[variable("a")])["containers"]}, ("a",), id="init container"),
        pytest.param({**MOUNTED, "volumes": [{"name": "v", "configMap": {"name": "a"}}]}, ("a",), id="volume"),
        pytest.param(
            {**MOUNTED, "volumes": [{"name": "v", "configMap": {"name": "a", "optional": True}}]},
            (),
            id="optional volume",
        ),
        pytest.param({**MOUNTED, "volumes": [{"name": "w", "configMap": {"name": "a"}}]}, (), id="not mounted"),
        pytest.param(
            {**MOUNTED, "volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": "a"}}]}}]},
            ("a",),
            id="projected volume",
        ),
        pytest.param({"containers": [7], "volumes": {"name": "v"}}, (), id="no containers"),
        pytest.param(container(env=[variable(7), 7], envFrom="x", volumeMounts=None), (), id="of another form"),  # type: ignore[arg-type]
    ],
)
def test_the_needed_ones_are_named(spec: dict[str, Any], names: tuple[str, ...]) -> None:
    assert needed_config_maps(spec, {}) == names


def test_those_that_the_binder_makes_are_not_needed() -> None:
    spec = container(env=[variable("gpu-0"), variable("other")])
    assert needed_config_maps(spec, {SHARED_GPU_ANNOTATION: "gpu"}) == ("other",)
