"""Objects of several kinds under one key: one of them counts, whatever the order of events."""

from __future__ import annotations

import logging

import pytest

from pumice.kube.api.kinds import NATIVE_POD_GROUPS, POD_GROUPS
from pumice.kube.informers.shared_keys import SharedKeys
from pumice.model.events import Event, Gone, Seen
from pumice.model.workloads.native_group import NativeGroup
from pumice.model.workloads.podgroup import PodGroup

NATIVE = PodGroup("n", "g", "u1", native=NativeGroup("scheduling.k8s.io/v1beta1"))
VOLCANO = PodGroup("n", "g", "u2")
OTHER = PodGroup("n", "other", "u3")
DELETED = Gone(PodGroup, "n/g")


def emitted(*steps: tuple[str, Event]) -> list[Event]:
    found: list[Event] = []
    shared = SharedKeys(found.extend, (NATIVE_POD_GROUPS, POD_GROUPS))
    sinks = {"native": shared.sink_of(NATIVE_POD_GROUPS), "volcano": shared.sink_of(POD_GROUPS)}
    for kind, event in steps:
        sinks[kind]([event])
    return found


@pytest.mark.parametrize(
    ("steps", "wanted"),
    [
        pytest.param([("volcano", Seen(VOLCANO)), ("native", Seen(NATIVE))], [VOLCANO, NATIVE], id="the first wins"),
        pytest.param([("native", Seen(NATIVE)), ("volcano", Seen(VOLCANO))], [NATIVE], id="the second is not told"),
        pytest.param(
            [("native", Seen(NATIVE)), ("volcano", Seen(VOLCANO)), ("volcano", DELETED)], [NATIVE], id="nor its end"
        ),
        pytest.param(
            [("native", Seen(NATIVE)), ("volcano", Seen(VOLCANO)), ("native", DELETED)],
            [NATIVE, VOLCANO],
            id="the second comes back",
        ),
        pytest.param([("volcano", Seen(VOLCANO)), ("volcano", DELETED)], [VOLCANO, None], id="the last one ends"),
        pytest.param([("volcano", Seen(OTHER)), ("native", Seen(NATIVE))], [OTHER, NATIVE], id="other keys"),
    ],
)
def test_what_counts(steps: list[tuple[str, Event]], wanted: list[PodGroup | None]) -> None:
    assert emitted(*steps) == [DELETED if each is None else Seen(each) for each in wanted]


def test_two_objects_of_one_key_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        emitted(("native", Seen(NATIVE)), ("volcano", Seen(VOLCANO)), ("volcano", Seen(VOLCANO)))
    (record,) = caplog.records
    assert record.getMessage() == (
        "n/g is there as podgroups.scheduling.k8s.io and as podgroups.scheduling.volcano.sh: the first counts"
    )
