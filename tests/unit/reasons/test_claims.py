"""Hints about claims of volumes and devices say what they need, for all pods that wait."""

from __future__ import annotations

import pytest

from pumice.model.blockers import NodeFilter
from pumice.model.blockers.changes import AttachMore, Change, OfferDevices, OfferVolume
from pumice.reasons.nodes import for_pods
from pumice.reasons.sentences import sentence


@pytest.mark.parametrize(
    ("change", "needs"),
    [
        (OfferDevices("gpu.com", 1), "1 free device of class gpu.com"),
        (OfferDevices("gpu.com", 2), "2 free devices of class gpu.com"),
        (OfferVolume("local", 5.0 * 1024**3), "1 volume of class local with 5 GiB"),
        (AttachMore("csi.com", 1), "nodes that can attach 1 more volume of csi.com"),
    ],
)
def test_a_hint_names_what_claims_need(change: Change, needs: str) -> None:
    assert sentence(NodeFilter("predicates", 2, 3, "no", (change,))) == f"2 of 3 nodes: no; it needs {needs}"


def test_each_pod_that_waits_needs_as_much() -> None:
    found = NodeFilter("predicates", 2, 3, "no", (OfferDevices("gpu.com", 2), OfferVolume("local", 1.0)))
    assert for_pods(found, 3).lift == (OfferDevices("gpu.com", 6), OfferVolume("local", 1.0, 3))
    plain = NodeFilter("predicates", 2, 3, "no")
    assert for_pods(plain, 3) is plain
