"""Objects that cannot be read: each is reported once, again when it changes, and none hides the others."""

from __future__ import annotations

import logging

import pytest

from pumice.kube.api.codec import BadObject
from pumice.kube.api.kinds import POD_GROUPS, Kind
from pumice.kube.informers.unparsable import Unparsable, UnparsableObjects


class Case:
    def __init__(self) -> None:
        self.now = 0.0
        self.reports: list[str] = []
        self.objects = UnparsableObjects(POD_GROUPS, self._tell, lambda: self.now)

    def _tell(self, kind: Kind, unparsable: Unparsable) -> None:
        assert kind is POD_GROUPS
        self.reports.append(f"{unparsable.key} {unparsable.version} {unparsable.why}")

    def note(self, key: str, version: int, why: str = "wrong", uid: str = "u") -> None:
        self.objects.note(BadObject(key, str(version), why, uid))


def test_one_object_does_not_mute_the_others() -> None:
    case = Case()
    for version in range(100):
        case.note("ns/noisy", version)
    case.note("ns/quiet", 1)
    assert case.reports == ["ns/noisy 0 wrong", "ns/quiet 1 wrong"]
    assert case.objects.count == 101


def test_an_object_is_reported_again_when_it_has_changed() -> None:
    case = Case()
    case.note("ns/a", 1)
    case.note("ns/a", 2, "wrong otherwise")
    case.note("ns/a", 3, "wrong otherwise")
    case.now = 60.0
    case.note("ns/a", 4, "wrong otherwise")
    case.note("ns/a", 1, "wrong otherwise", uid="another")
    assert case.reports == [
        "ns/a 1 wrong",
        "ns/a 2 wrong otherwise",
        "ns/a 4 wrong otherwise",
        "ns/a 1 wrong otherwise",
    ]


def test_the_same_version_is_not_reported_again_when_it_is_listed_again() -> None:
    case = Case()
    case.note("ns/a", 1)
    case.now = 3600.0
    case.note("ns/a", 1)
    assert len(case.reports) == case.objects.count == 1


def test_that_an_object_can_be_read_again_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pumice")
    case = Case()
    case.note("ns/a", 1)
    case.objects.read("ns/a")
    case.objects.read("ns/a")
    assert caplog.messages[1:] == ["podgroups.scheduling.volcano.sh: readable again: ns/a"]
    case.note("ns/a", 3)
    assert len(case.reports) == 2


def test_only_what_is_there_is_kept() -> None:
    case = Case()
    for name in "abc":
        case.note(f"ns/{name}", 1)
    case.objects.gone("ns/a")
    case.objects.keep(["ns/b", "ns/x"])
    assert [each.key for each in case.objects.current()] == ["ns/b"]
