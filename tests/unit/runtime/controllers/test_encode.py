"""PodGroups as controllers create them mean what their values mean."""

from __future__ import annotations

import pytest

from pumice.model.manifest import Decoder
from pumice.model.pod import LabelSelector, Requirement
from pumice.model.workloads.podgroup import PodGroup, SubGroupPolicy
from pumice.runtime.controllers.encode import podgroup_object


@pytest.mark.parametrize(
    "requirements",
    [
        pytest.param((Requirement("a", "In", ("b",)),), id="one"),
        pytest.param((Requirement("a", "In", ("b",)), Requirement("a", "NotIn", ("c",))), id="two about one label"),
        pytest.param((Requirement("a", "In", ("b",)), Requirement("a", "In", ("c",))), id="two that exclude"),
        pytest.param((Requirement("a", "In", ("b",)), Requirement("c", "Exists")), id="two labels"),
    ],
)
def test_a_selector_of_a_sub_group_keeps_all_its_requirements(requirements: tuple[Requirement, ...]) -> None:
    policy = SubGroupPolicy("s", sub_group_size=1, min_sub_groups=1, selector=LabelSelector(requirements))
    found = Decoder().decode(podgroup_object(PodGroup("ns", "g", "u", sub_groups=(policy,)), []))
    assert isinstance(found, PodGroup)
    (again,) = found.sub_groups
    assert again.selector is not None and again.selector.requirements == requirements
