"""Containers that ``kubectl debug`` adds to a pod: by a path of their own, and never changed."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.apiserver.cluster import Cluster
from pumice.apiserver.objects import Options
from pumice.apiserver.refusals import Refusal
from tests.unit.apiserver.worlds import create, pod, target


def add(world: Cluster, *containers: dict[str, Any], part: str = "ephemeralcontainers") -> dict[str, Any]:
    def edit(obj: dict[str, Any]) -> dict[str, Any]:
        return {**obj, "spec": {**obj["spec"], "ephemeralContainers": list(containers), "schedulerName": "x"}}

    return world.objects.change(target(world, "pods", "p", part=part), edit, Options())


def test_a_container_is_added_whole_and_nothing_else_changes(world: Cluster) -> None:
    before = create(world, pod("p"))
    spec = add(world, {"name": "d", "image": "i:1"})["spec"]
    (made,) = spec.pop("ephemeralContainers")
    assert made["imagePullPolicy"] == "IfNotPresent" and made["terminationMessagePolicy"] == "File"
    assert spec == before["spec"]


@pytest.mark.parametrize(
    ("second", "why"),
    [
        pytest.param({"name": "d", "image": "other"}, "may not be changed", id="another image"),
        pytest.param({"name": "e"}, "may not be changed", id="in its place"),
    ],
)
def test_one_that_is_there_stays(world: Cluster, second: dict[str, Any], why: str) -> None:
    create(world, pod("p"))
    add(world, {"name": "d", "image": "i:1"})
    with pytest.raises(Refusal, match=why):
        add(world, second)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"name": "c", "image": "i"}, "Duplicate value"),
        ({"image": "i"}, "name: Required value"),
        ({"name": "d"}, "image: Required value"),
        ({"name": "d", "image": "i", "ports": [{"containerPort": 1}]}, "ports: Forbidden"),
    ],
)
def test_what_cannot_be_added(world: Cluster, given: dict[str, Any], why: str) -> None:
    create(world, pod("p"))
    with pytest.raises(Refusal, match=why):
        add(world, given)


def test_two_without_a_name_are_no_fault_of_the_server(world: Cluster) -> None:
    """Found by ``make fuzz-input``: they were reported as duplicates, by a name that they do not have."""
    create(world, pod("p"))
    with pytest.raises(Refusal, match="name: Required value"):
        add(world, {"image": "i:1"}, {"image": "i:1"})


def test_a_pod_holds_so_many_and_no_more(world: Cluster) -> None:
    create(world, pod("p"))
    with pytest.raises(Refusal, match="at most 100 items"):
        add(world, *({"name": f"d{i}", "image": "i:1"} for i in range(101)))


def test_the_pod_itself_is_no_way_in(world: Cluster) -> None:
    create(world, pod("p", schedulerName="x"))
    with pytest.raises(Refusal, match="may not change ephemeralContainers"):
        add(world, {"name": "d", "image": "i:1"}, part="")


@pytest.mark.parametrize("spec", [5, [], {"ephemeralContainers": 5}, {"ephemeralContainers": [5]}, {}], ids=repr)
def test_nothing_that_is_sent_is_a_fault_of_the_server(world: Cluster, spec: object) -> None:
    """Each was an internal error once, or would have been."""
    create(world, pod("p"))
    where = target(world, "pods", "p", part="ephemeralcontainers")
    try:
        made = world.objects.change(where, lambda obj: {**obj, "spec": spec}, Options())
    except Refusal as refusal:
        assert refusal.code == 422
    else:
        assert "ephemeralContainers" not in made["spec"]
