"""A copy is what ``dataclasses.replace`` makes, and as frozen."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace

import pytest

from pumice.model.copies import copier
from pumice.model.podgroup import PodGroup, PodGroupStatus


def test_a_copy_is_what_dataclasses_make() -> None:
    before = PodGroup("ns", "a", "u", labels={"l": "1"})
    other = PodGroup("other", "b", "w", "q", 3, {"r": 2}, creation=7.0, status=PodGroupStatus("Running"), unread=("x",))
    new = {field.name: getattr(other, field.name) for field in fields(PodGroup)}
    for name, value in new.items():
        assert copier(PodGroup, name)(before, **{name: value}) == replace(before, **{name: value})
    assert copier(PodGroup, *new)(before, **new) == other
    assert before == PodGroup("ns", "a", "u", labels={"l": "1"})


def test_a_copy_is_one_of_the_class_and_refuses_to_be_written_to() -> None:
    found = copier(PodGroup, "name")(PodGroup("ns", "a", "u"), name="b")
    assert type(found) is PodGroup and hash(found.uid) and found.key == "ns/b"
    with pytest.raises(FrozenInstanceError):
        found.name = "c"  # type: ignore[misc]


def test_a_copy_differs_in_the_fields_that_were_named_and_in_no_other() -> None:
    with pytest.raises(ValueError, match="PodGroup has no field colour: wanted some of namespace, name"):
        copier(PodGroup, "colour")
    with pytest.raises(TypeError, match="uid"):
        copier(PodGroup, "name")(PodGroup("ns", "a", "u"), uid="w")
    with pytest.raises(TypeError, match="name"):
        copier(PodGroup, "name")(PodGroup("ns", "a", "u"))
