"""Options of a case that are about its cluster."""

from __future__ import annotations

import pytest

from pumice.model.volumes import CSINode
from tests.conformance.runner.case import case_of
from tests.conformance.runner.result import NotYet
from tests.conformance.runner.world import World

DRIVERS = ("csi.example.com", "slow.example.com", "rancher.io/local-path")
CSI_NODE = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "CSINode",
    "metadata": {"name": "n1"},
    "spec": {"drivers": [{"name": name, "nodeID": "n1", "allocatable": {"count": 2}} for name in DRIVERS]},
}


@pytest.mark.parametrize(
    ("options", "counted"),
    [
        ({}, ["csi.example.com", "slow.example.com"]),
        ({"ignored-provisioners": ["slow.example.com"]}, ["csi.example.com"]),
    ],
)
def test_volumes_of_ignored_drivers_are_not_counted(options: dict[str, object], counted: list[str]) -> None:
    world = World(
        case_of("f", {"kind": "cycle", "conf": {"actions": "allocate"}, "options": options, "objects": [CSI_NODE]})
    )
    (found,) = (each for kept in world.store.beside().values() for each in kept if isinstance(each, CSINode))
    assert [driver for driver, _ in found.limits] == counted


def test_an_option_that_is_not_known_is_not_passed_over() -> None:
    with pytest.raises(NotYet, match="option no-such"):
        World(
            case_of("f", {"kind": "cycle", "conf": {"actions": "allocate"}, "options": {"no-such": 1}, "objects": []})
        )
