"""What pods ask for: containers, init containers and sidecars, resizes, pod-level amounts, overhead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.model.pod_request import nonzero_request, pod_limit, pod_request
from pumice.model.quantity import QuantityError
from pumice.model.resources import Resource

MI = 2.0**20
DEFAULTS = (100.0, 200 * MI)
GPU = "nvidia.com/gpu"


def container(requests: Mapping[str, Any] | None = None, limits: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"name": "main", "resources": {"requests": requests, "limits": limits}}


def cpu(quantity: str) -> dict[str, Any]:
    return container({"cpu": quantity}, {"cpu": quantity})


def sidecar(quantity: str) -> dict[str, Any]:
    return {**cpu(quantity), "restartPolicy": "Always"}


def spec(*containers: dict[str, Any], init: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    return {"containers": list(containers), "initContainers": init, **more}


@pytest.mark.parametrize(
    "empty",
    [
        {},
        {"containers": None, "initContainers": None, "resources": None, "overhead": None},
        {"containers": [{}], "initContainers": [{}], "resources": {}, "overhead": {}},
        {"containers": [{"resources": None}], "resources": {"requests": None, "limits": None}},
        {"containers": [container(None, None)]},
    ],
)
@pytest.mark.parametrize("status", [None, {}, {"containerStatuses": None, "conditions": None}])
def test_a_pod_that_asks_for_nothing(empty: dict[str, Any], status: dict[str, Any] | None) -> None:
    assert pod_request(empty, status) == Resource(scalars={"pods": 1.0})
    assert pod_limit(empty, status) == Resource()


#: init containers, milli-cores that all take together with one container of 1
INIT = [
    ([], 1000),
    ([cpu("5")], 5000),
    ([cpu("500m")], 1000),
    ([cpu("2"), cpu("3")], 3000),
    ([sidecar("1")], 2000),
    ([sidecar("1"), cpu("5")], 6000),
    ([cpu("5"), sidecar("1")], 5000),
    ([cpu("5"), sidecar("1"), sidecar("2"), sidecar("3")], 7000),
    ([cpu("5"), sidecar("1"), sidecar("2"), cpu("5"), sidecar("3")], 8000),
]


@pytest.mark.parametrize(("init", "milli"), INIT)
def test_init_containers_count_when_they_run(init: list[dict[str, Any]], milli: float) -> None:
    pod = spec(cpu("1"), init=init)
    assert pod_request(pod) == Resource(milli, 0.0, {"pods": 1.0})
    assert pod_limit(pod) == Resource(milli)
    assert nonzero_request(pod)[0] == milli


def test_containers_add_up_in_every_resource() -> None:
    pod = spec(container({"cpu": "1", "memory": "1Mi", GPU: 1}), container({"cpu": "500m", GPU: "2"}), cpu("1u"))
    assert pod_request(pod) == Resource(1501.0, MI, {GPU: 3000.0, "pods": 1.0})


def test_pod_level_amounts_replace_those_of_the_containers() -> None:
    level = {"requests": {"memory": "8Mi", "hugepages-2Mi": "2Mi", GPU: "9"}, "limits": {"cpu": "4"}}
    pod = spec(container({"cpu": "2", "memory": "9Mi"}, {"cpu": "9", GPU: "1"}), resources=level)
    scalars = {"hugepages-2Mi": 2000 * MI}
    assert pod_request(pod) == Resource(2000.0, 8 * MI, {**scalars, "pods": 1.0})
    assert pod_limit(pod) == Resource(4000.0, 0.0, {GPU: 1000.0})
    assert nonzero_request(pod) == (2000.0, 8 * MI)


def test_overhead_comes_on_top_and_limits_nothing_that_was_free() -> None:
    pod = spec(container({"cpu": "1"}, {"cpu": "2"}), init=[cpu("3")], overhead={"cpu": "250m", "memory": "1Mi"})
    assert pod_request(pod) == Resource(3250.0, MI, {"pods": 1.0})
    assert pod_limit(pod) == Resource(3250.0)
    assert nonzero_request(pod) == (3250.0, 201 * MI)


# ------------------------------------------------------------------------------------------------------- resizes


def running(requests: Any = None, allocated: Any = None, limits: Any = None) -> dict[str, Any]:
    current = {"name": "main", "resources": {"requests": requests, "limits": limits}, "allocatedResources": allocated}
    return {"containerStatuses": [current]}


INFEASIBLE = {"conditions": [{"type": "Ready"}, {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]}
DEFERRED = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]}

#: spec's cpu, status, milli-cores
RESIZED = [
    ("2", running({"cpu": "1"}), 2000),
    ("1", running({"cpu": "2"}), 2000),
    ("1", running({"cpu": "2"}, {"cpu": "3"}), 3000),
    ("2", running({"cpu": "1"}) | DEFERRED, 2000),
    ("2", running({"cpu": "1"}) | INFEASIBLE, 1000),
    ("3", running({"cpu": "1"}, {"cpu": "2"}) | INFEASIBLE, 2000),
    ("2", {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "9"}}]} | INFEASIBLE, 2000),
    ("2", {"containerStatuses": [{"name": "another", "resources": {"requests": {"cpu": "9"}}}]}, 2000),
]


@pytest.mark.parametrize(("declared", "status", "milli"), RESIZED)
def test_a_resize_counts_with_the_larger_until_it_is_refused(declared: str, status: Any, milli: float) -> None:
    assert pod_request(spec(cpu(declared)), status) == Resource(milli, 0.0, {"pods": 1.0})


def test_limits_are_resized_by_the_limits_of_the_status() -> None:
    assert pod_limit(spec(cpu("1")), running({"cpu": "9"}, {"cpu": "9"}, {"cpu": "2"})) == Resource(2000.0)


#: what the spec has of a sidecar, status, milli-cores of the pod beside a container of 1 core
RESIZED_SIDECAR = [
    ("2", {"cpu": "1"}, None, {}, 3000),
    ("1", {"cpu": "2"}, None, {}, 3000),
    ("1", {"cpu": "2"}, {"cpu": "3"}, DEFERRED, 4000),
    ("3", {"cpu": "1"}, {"cpu": "2"}, INFEASIBLE, 3000),
]


@pytest.mark.parametrize(("declared", "actual", "allocated", "more", "milli"), RESIZED_SIDECAR)
def test_a_resized_sidecar_counts_with_what_it_still_holds(
    declared: str, actual: Any, allocated: Any, more: Any, milli: float
) -> None:
    current = {"name": "side", "resources": {"requests": actual}, "allocatedResources": allocated}
    pod = spec(cpu("1"), init=[{**sidecar(declared), "name": "side"}])
    assert pod_request(pod, {"initContainerStatuses": [current], **more}) == Resource(milli, 0.0, {"pods": 1.0})


def test_an_init_container_that_ends_counts_as_its_spec_says() -> None:
    """The API refuses to resize it."""
    current = {"name": "first", "resources": {"requests": {"cpu": "9"}}}
    pod = spec(cpu("1"), init=[{**cpu("2"), "name": "first"}])
    assert pod_request(pod, {"initContainerStatuses": [current]}).milli_cpu == 2000


# ---------------------------------------------------------------------------------------------- non-zero requests

#: requests, what scores take the container to use
NONZERO = [
    (None, DEFAULTS),
    ({}, DEFAULTS),
    ({"cpu": "50m"}, (50.0, 200 * MI)),
    ({"memory": "1Mi"}, (100.0, MI)),
    ({"cpu": "0", "memory": 0}, (0.0, 0.0)),
    ({GPU: "1"}, DEFAULTS),
]


@pytest.mark.parametrize(("requests", "answer"), NONZERO)
def test_what_a_container_does_not_name_has_a_default(requests: Any, answer: tuple[float, float]) -> None:
    assert nonzero_request(spec(container(requests))) == answer
    assert nonzero_request(spec(container(requests), container(requests))) == (2 * answer[0], 2 * answer[1])


def test_defaults_hold_for_init_containers_and_sidecars_too() -> None:
    assert nonzero_request({}) == (0.0, 0.0)
    assert nonzero_request({"initContainers": [{}]}) == DEFAULTS
    assert nonzero_request(spec({}, init=[{"restartPolicy": "Always"}, {}])) == (200.0, 400 * MI)


# --------------------------------------------------------------------------------------------------------- laws

quantities = st.sampled_from(["0", "1m", "500m", "1", "3"])
containers = st.builds(lambda q, always: sidecar(q) if always else cpu(q), quantities, st.booleans())


@given(main=st.lists(st.builds(cpu, quantities), max_size=3), init=st.lists(containers, max_size=4))
def test_the_request_is_enough_at_every_step(main: list[dict[str, Any]], init: list[dict[str, Any]]) -> None:
    def milli(each: dict[str, Any]) -> float:
        return Resource.from_list(each["resources"]["requests"]).milli_cpu

    moments, sidecars = [], 0.0
    for each in init:
        moments.append(sidecars + milli(each))
        sidecars += milli(each) if "restartPolicy" in each else 0.0
    moments.append(sidecars + sum(map(milli, main)))
    assert pod_request(spec(*main, init=init)).milli_cpu == max(moments)


@st.composite
def resized_pods(draw: st.DrawFn) -> tuple[list[tuple[str, str, str | None, str | None]], bool]:
    """(kind, cpu of the spec, actual, allocated) of each container in order; whether the resize is refused."""
    maybe = st.none() | quantities
    first = draw(st.lists(st.sampled_from(["sidecar", "init"]), max_size=4))
    kinds = first + draw(st.lists(st.just("main"), max_size=3))
    return [(kind, draw(quantities), draw(maybe), draw(maybe)) for kind in kinds], draw(st.booleans())


@settings(max_examples=1000)
@given(resized_pods())
def test_a_resized_pod_is_counted_moment_by_moment(
    pod: tuple[list[tuple[str, str, str | None, str | None]], bool],
) -> None:
    """The slow way: who runs at each moment of the pod's life, and the most that any of them may hold then."""
    containers, refused = pod
    lists: dict[str, list[dict[str, Any]]] = {"containers": [], "initContainers": []}
    statuses: dict[str, list[dict[str, Any]]] = {"containerStatuses": [], "initContainerStatuses": []}
    moments, sidecars, mains = [0.0], 0.0, 0.0
    for i, (kind, declared, actual, allocated) in enumerate(containers):
        always = {"restartPolicy": "Always"} if kind == "sidecar" else {}
        lists["containers" if kind == "main" else "initContainers"].append({**cpu(declared), **always, "name": f"c{i}"})
        current = {"name": f"c{i}", "resources": None if actual is None else {"requests": {"cpu": actual}}}
        current["allocatedResources"] = None if allocated is None else {"cpu": allocated}
        statuses["containerStatuses" if kind == "main" else "initContainerStatuses"].append(current)
        spoken = [declared]
        if actual is not None and kind != "init":
            spoken = [actual, *([] if allocated is None else [allocated]), *([] if refused else [declared])]
        own = max(Resource.from_list({"cpu": each}).milli_cpu for each in spoken)
        if kind == "init":
            moments.append(sidecars + own)
        elif kind == "sidecar":
            sidecars += own
        else:
            mains += own
    status = {**statuses, **(INFEASIBLE if refused else {})}
    assert pod_request(lists, status).milli_cpu == max(*moments, sidecars + mains)


@pytest.mark.parametrize("read", [pod_request, pod_limit, nonzero_request])
def test_a_bad_quantity_is_named(read: Any) -> None:
    with pytest.raises(QuantityError, match="^memory: '1GiB' is not a quantity"):
        read(spec(container({"memory": "1GiB"}, {"memory": "1GiB"})))
