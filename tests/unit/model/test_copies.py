"""A copy is what ``dataclasses.replace`` makes, and as frozen."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace

import pytest

from pumice.model.copies import Copies
from pumice.model.podgroup import PodGroup, PodGroupStatus

copy = Copies(PodGroup)


def test_a_copy_is_what_dataclasses_make() -> None:
    before = PodGroup("ns", "a", "u", labels={"l": "1"})
    other = PodGroup("other", "b", "w", "q", 3, {"r": 2}, creation=7.0, status=PodGroupStatus("Running"), unread=("x",))
    new = {field.name: getattr(other, field.name) for field in fields(PodGroup)}
    for name, value in new.items():
        assert copy(before, **{name: value}) == replace(before, **{name: value})
    assert copy(before, **new) == other
    assert before == PodGroup("ns", "a", "u", labels={"l": "1"})


def test_a_copy_is_one_of_the_class_and_refuses_to_be_written_to() -> None:
    found = copy(PodGroup("ns", "a", "u"), name="b")
    assert type(found) is PodGroup and hash(found.uid) and found.key == "ns/b"
    with pytest.raises(FrozenInstanceError):
        found.name = "c"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        copy(found, colour="red")
