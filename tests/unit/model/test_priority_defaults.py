"""Which PriorityClass admission gives a pod of a file."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pumice.model.manifest.defaults.priorities import Priorities
from pumice.model.queue import PriorityClass
from pumice.testing.build import spec

CLASSES = (
    PriorityClass("vip", 9),
    PriorityClass("usual", 3, global_default=True, preemption_policy="Never"),
    PriorityClass("more", 5, global_default=True),
)


@pytest.mark.parametrize(
    ("name", "own", "priority", "policy"),
    [
        pytest.param("vip", None, 9, "", id="the class that it names"),
        pytest.param("", None, 3, "Never", id="the smaller of two global defaults"),
        pytest.param("gone", None, None, "", id="none in place of a class that does not exist"),
        pytest.param("", 7, 7, "", id="its own priority"),
    ],
)
def test_a_pod_has_the_priority_that_admission_gives_it(
    name: str, own: int | None, priority: int | None, policy: str
) -> None:
    found = Priorities(CLASSES).admitted(replace(spec(), priority_class_name=name, priority=own))
    assert (found.priority, found.preemption_policy) == (priority, policy)


def test_without_a_global_default_a_pod_without_a_class_stays_as_it_is() -> None:
    before = spec()
    assert Priorities(CLASSES[:1]).admitted(before) is before
